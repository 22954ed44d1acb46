"""Timestamps of every type, order and ties."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import EventError

DAY = datetime(2024, 3, 30, 12)  # the night after, Berlin's clocks go forward
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def found(times, pattern, **options):
    table = pa.table({"ts": times, "type": ["A"] + ["B"] * (len(times) - 1)})
    return cep.match(table, pattern, output="indices", **options)["b"].to_pylist()


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers(kind):
    times = pa.array([0, 5, 100], kind)
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 4") == []
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 5") == [1]
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 100 s", strategy="skip_till_any_match", time_unit="s") == [1, 2]


def test_unsigned_integers_beyond_int64():
    with pytest.raises(EventError, match=f"column 'ts'.*{2**63}"):
        found(pa.array([0, 2**63], pa.uint64()), "PATTERN SEQ(A a, B b)")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats(kind):
    times = pa.array([-0.5, 0.0, 0.25]).cast(kind)
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 0.5") == [1]
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 0.4") == []
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 750 ms", strategy="skip_till_any_match", time_unit="s") == [1, 2]


def test_negative_zero_ties_with_zero_and_infinity_is_a_time():
    assert found(pa.array([0.0, -0.0, 1.0]), "PATTERN SEQ(A a, B b) WITHIN 9") == [2]
    assert found(pa.array([-math.inf, 0.0, math.inf]), "PATTERN SEQ(A a, B b) WITHIN 9") == []
    assert found(pa.array([-math.inf, 0.0, math.inf]), "PATTERN SEQ(A a, B b)") == [1]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_measure_elapsed_time(unit, zone):
    moments = [DAY, DAY + timedelta(hours=24), DAY + timedelta(hours=24, seconds=1)]
    times = pa.array([moment.replace(tzinfo=UTC) if zone else moment for moment in moments], pa.timestamp(unit, zone))
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 1 day") == [1]
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 86399 s") == []
    assert found(times.take([0, 2]), "PATTERN SEQ(A a, B b) WITHIN 1 day") == []
    assert found(times.take([0, 2]), "PATTERN SEQ(A a, B b) WITHIN 86401000 ms") == [1]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates(kind):
    times = pa.array([DAY, DAY + timedelta(1), DAY + timedelta(3)]).cast(pa.timestamp("s")).cast(kind, safe=False)
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 1 day") == [1]
    assert found(times, "PATTERN SEQ(A a, B b) WITHIN 23 hours") == []
    assert found(times.take([0, 2]), "PATTERN SEQ(A a, B b) WITHIN 72 hours") == [1]


@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.float64(), pa.timestamp("s")], ids=str)
def test_input_in_no_order(kind):
    table = pa.table({"ts": pa.array([3, 1, 2]).cast(kind), "x": [30, 10, 20]})
    matches = cep.match(table, "PATTERN SEQ(a, b) WHERE a.x + 10 = b.x", output="indices").to_pylist()
    assert matches == [{"a": 1, "b": 2}, {"a": 2, "b": 0}]


TIED = pa.table({"ts": [1, 1, 1, 2], "x": [3, None, 1, 0], "y": ["b", "b", "a", "c"], "z": [math.nan, 2.0, None, 1.0]})


@pytest.mark.parametrize(
    ("order_by", "order"),
    [
        (None, [0, 1, 2, 3]),
        ("x", [1, 2, 0, 3]),
        ("y", [2, 0, 1, 3]),
        ("z", [2, 1, 0, 3]),
        (["y", "x"], [2, 1, 0, 3]),
        (["y", "z"], [2, 1, 0, 3]),
    ],
)
@pytest.mark.parametrize("partition_by", [None, "k"])
def test_ties_by_position_follow_order_by(order_by, order, partition_by):
    table = TIED.append_column("k", [["k"] * 4])
    options = {"order_by": order_by, "ties": "position", "partition_by": partition_by, "output": "indices"}
    matches = cep.match(table, "PATTERN SEQ(a, b)", **options).to_pylist()
    assert matches == [{"a": a, "b": b} for a, b in zip(order, order[1:], strict=False)]
    bound = cep.match(table, "PATTERN a+", **options)["a"].to_pylist()
    assert bound == [order[place:] for place in range(4)]


@pytest.mark.parametrize("kind", [pa.float16(), pa.decimal32(5, 1), pa.decimal64(12, 2), pa.uint8()], ids=str)
def test_ties_follow_columns_of_any_type(kind):
    table = TIED.set_column(1, "x", pa.array(TIED["x"].to_pylist(), pa.int8()).cast(kind))
    assert cep.match(table, "PATTERN a+", order_by="x", ties="position", output="indices")["a"][0].as_py() == [1, 2, 0, 3]


def test_ties_that_only_nulls_could_order_stay_as_they_are():
    table = TIED.set_column(1, "x", pa.nulls(4))
    assert cep.match(table, "PATTERN a+", order_by="x", ties="position", output="indices")["a"][0].as_py() == [0, 1, 2, 3]


def test_strict_ties_are_not_before_each_other():
    matches = cep.match(TIED, "PATTERN SEQ(a, b)", order_by="x", output="indices").to_pylist()
    assert matches == [{"a": a, "b": 3} for a in (1, 2, 0)]


def test_windows_of_events_count_all_events_of_the_stream():
    table = pa.table({"ts": [1, 2, 3, 4, 5], "type": ["A", "X", "B", "A", "B"], "k": [1, 2, 1, 2, 2]})
    assert cep.match(table, "PATTERN SEQ(A a, B b) WITHIN 2 EVENTS", output="indices").to_pylist() == [{"a": 3, "b": 4}]
    assert cep.match(table, "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", output="count").to_pydict() == {"count": [2]}
    by_key = cep.match(table, "PATTERN SEQ(A a, B b) WITHIN 2 EVENTS", partition_by="k", output="indices")
    assert by_key.to_pylist() == [{"a": 0, "b": 2}, {"a": 3, "b": 4}]
    assert cep.match(table, "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 2 EVENTS", output="count").to_pydict() == {"count": [1]}


def test_a_quantified_variable_with_two_successors_among_ties():
    """Once c is bound, no event is left to a, and d need not be later than any that a might have bound."""
    table = pa.table({"ts": [0, 0, 1, 1, 1], "type": [*"ABCAD"]})
    found = cep.match(table, "PATTERN SEQ(AND(A a+, B b), AND(C c, D d)) WITHIN 1", output="indices")
    assert found.to_pylist() == [{"a": [0], "b": 1, "c": 2, "d": 4}]


@pytest.mark.parametrize("window", ["", " WITHIN 5"])
@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match"])
@pytest.mark.parametrize("pattern", ["B b", "AND(A a, B b)", "SEQ(A a, B b)", "AND(A a+, B b)"])
def test_infinite_times(pattern, strategy, window):
    inf = float("inf")
    events = pa.table({"ts": [1.0, inf, 2.0, inf, -inf, -inf], "type": list("ABAAAB")})
    found = [
        cep.match(events, f"PATTERN {pattern}{window}", strategy=strategy, output="indices", algorithm=algorithm)
        for algorithm in ("brute_force", "ses_automaton", "auto")
    ]
    assert found[1].equals(found[0])
    assert found[2].equals(found[0])
