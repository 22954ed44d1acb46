"""A stream that is followed in several ways: the same events for all, and ratios that stand the right way round."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import gpu_cep as cep
from benchmarks.record import followed as record
from benchmarks.rivals import streams
from benchmarks.spark.streaming import QUERY, events


def test_events_in_order_are_those_of_all_micro_batches() -> None:
    table = streams.in_order(rows=400, batches=3, keys=5)
    whole = pa.concat_tables([events(400, 5, number) for number in range(3)])
    times = table["ts"].to_numpy()
    assert (np.diff(times) >= 0).all()
    assert table.group_by(["ts", "k"]).aggregate([]).num_rows == table.num_rows
    assert table.num_rows == whole.group_by(["ts", "k"]).aggregate([]).num_rows
    assert not table.join(whole, ["k", "x"], join_type="left anti").num_rows


def test_a_stream_in_the_process_has_the_matches_of_a_batch() -> None:
    table, text = streams.in_order(rows=2_000, batches=3, keys=20), QUERY.partition(" RETURN ")[0]
    followed, matches = streams.in_the_process(table, 20, text, repeats=1, push=700)
    assert followed.rows == len(table)
    assert matches == cep.match(table, text, time_unit="us", output="indices").num_rows > 0


def test_events_of_one_time_may_come_in_two_pushes() -> None:
    table = pa.table(
        {"ts": pa.array([1, 1, 2, 2, 3, 3], pa.int64()), "type": list("AABBCC"), "k": [0, 1, 0, 1, 0, 1], "x": [1.0, 1, 2, 2, 3, 3]}
    )
    assert streams.pushed(table, QUERY.partition(" RETURN ")[0], push=3) == 2


def test_ratios_say_how_much_faster_gpu_match_is() -> None:
    ours, other = record.Followed(record.OURS, 10, 100, rate=600.0, cores=2.0), record.Followed("other", 10, 100, rate=200.0, cores=10.0)
    assert record.table([ours, other]).splitlines()[-1] == "| 10 | other | 100 | 200 | 10.00 µs | 3.00 | 5.00 |"
