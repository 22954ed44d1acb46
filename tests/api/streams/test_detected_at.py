"""Matches that say when they are certain: from that time on no further event changes them, and one before it may."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import PatternError, UnsupportedError
from tests.api.streams.test_stream import live_of, over_time, ticks_of
from tests.conformance.expectation import expected
from tests.drawn.queries import whole_language
from tests.effort import examples

EVENTS = pa.table({"ts": [1, 2, 3, 8, 9], "type": list("ABBAB"), "k": [1, 1, 1, 1, 1]})


@examples(60, 400)
@given(whole_language(max_size=12, after_match=("all", "skip_to_next")), st.data())
def test_a_match_comes_out_as_soon_as_the_watermark_is_at_its_time(case, data):
    case = over_time(replace(case, text=case.text.replace(" EVENTS", "")))
    expected(case)  # not too many
    live = live_of(case, detected_at=True)
    batch = cep.match(case.events, case.text, output="indices", detected_at=True, **case.options)
    rows = np.argsort(ticks_of(case.events), kind="stable")
    cuts, tables = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5), "cuts")), []
    # events of one time come in one push, so that none is late
    times = ticks_of(case.events)[rows]
    cuts = [int(np.searchsorted(times, times[cut])) if cut < len(times) else cut for cut in cuts]
    for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        before = live.clock.watermark
        tables.append(live.push(case.events.take(rows[low:high])))
        detected = ticks_of(tables[-1].select(["detected_at"]).rename_columns(["ts"]))
        assert (detected <= (0 if live.clock.watermark is None else live.clock.watermark)).all()
        assert before is None or (detected > before).all()
    found = pa.concat_tables([*tables, live.finish()])
    assert sorted(map(str, found.column("detected_at").to_pylist())) == sorted(map(str, batch.column("detected_at").to_pylist()))
    assert batch.drop_columns(["detected_at"]).equals(cep.match(case.events, case.text, output="indices", **case.options))


@pytest.mark.parametrize(
    ("pattern", "strategy", "detected"),
    [
        ("SEQ(A a, B b)", "skip_till_next_match", [2, 9]),
        ("SEQ(A a, B b+)", "skip_till_next_match", [5, 12]),
        ("SEQ(A a, B b+)", "strict_contiguity", [5, 12]),
        ("SEQ(A a, B b, NOT(C c))", "skip_till_next_match", [5, 12]),
        ("OR(SEQ(A a, B b), SEQ(A a, B b, B c, NOT(C d)))", "skip_till_next_match", [2, 5, 9]),
    ],
)
def test_the_time_is_that_of_the_last_event_or_of_the_windows_end(pattern, strategy, detected):
    found = cep.match(EVENTS, f"PATTERN {pattern} WITHIN 4", strategy=strategy, detected_at=True)
    assert found.column_names[-1] == "detected_at"
    assert found.column("detected_at").to_pylist() == detected


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.float32()])
@pytest.mark.parametrize("length", [2, 10])
def test_a_window_is_over_at_its_last_time_whatever_type_times_have(kind, length):
    events = pa.table({"ts": pa.array([1, 2], kind), "type": ["A", "B"]})
    text = f"PATTERN SEQ(A a, B b, NOT(C c)) WITHIN {length}"
    assert cep.match(events, text, detected_at=True)["detected_at"].to_pylist() == [1 + length]
    found = [cep.match(events, text, complete_until=until).num_rows for until in (length, 1 + length)]
    live = cep.stream(text, events.schema)
    assert [live.push(events).num_rows, live.advance(length).num_rows, live.advance(1 + length).num_rows] == [0, *found] == [0, 0, 1]


def test_files_in_slices_rule_sets_and_batches_say_the_same(tmp_path):
    size = 3_000
    events = pa.table({"ts": range(size), "type": list("ABC") * (size // 3), "k": [row % 7 for row in range(size)]})
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=200)
    text = "PATTERN SEQ(A a, B b+) WHERE [k] WITHIN 50 RETURN a.ts AS a"
    wanted = cep.match(events, text, detected_at=True)
    assert wanted.column("detected_at").to_pylist() == [first + 50 for first in wanted.column("a").to_pylist()]
    rows = wanted.sort_by("a").to_pylist()
    sliced = cep.match(str(tmp_path / "events.parquet"), text, detected_at=True, memory=40_000)
    assert sliced.sort_by("a").to_pylist() == rows
    reader = cep.match(iter(events.to_batches(max_chunksize=100)), text, detected_at=True, result="reader")
    assert reader.read_all().sort_by("a").to_pylist() == rows
    rules = {f"rule {k}": f"PATTERN SEQ(A a, B b+) WHERE [k] AND a.k = {k} WITHIN 50 RETURN a.ts AS a" for k in range(3)}
    found = cep.match_all(events, rules, detected_at=True, split=True)
    for name, rule in rules.items():
        assert found[name].equals(cep.match(events, rule, detected_at=True))


def test_timeouts_and_situations_have_the_column_anyway():
    text = "PATTERN SEQ(A a, B b) WITHIN 4"
    assert cep.match(EVENTS, text, timeouts=True, detected_at=True).equals(cep.match(EVENTS, text, timeouts=True))
    situations = "DEFINE H AS k > 0, L AS type = 'A' PATTERN H overlaps L WITHIN 9"
    assert cep.match(EVENTS, situations, detected_at=True).equals(cep.match(EVENTS, situations))


@pytest.mark.parametrize(
    ("pattern", "options", "told"),
    [
        ("SEQ(A a, B b) WITHIN 4 EVENTS", {}, "needs a window of time"),
        ("SEQ(A a, B b)", {}, "needs a window of time"),
        ("SEQ(A a, B b) WITHIN 4", {"output": "count"}, "not supported with output='count'; supported: matches, indices"),
        ("SEQ(A a, B b) WITHIN 4", {"algorithm": "brute_force"}, "not supported with algorithm='brute_force'"),
        ("SEQ(A a, B b+) WITHIN 4", {"after_match": "skip_past_last"}, "not supported with after_match='skip_past_last' where"),
    ],
)
def test_what_has_no_such_time_is_refused(pattern, options, told):
    with pytest.raises(UnsupportedError, match=told):
        cep.match(EVENTS, f"PATTERN {pattern}", detected_at=True, **options)


def test_a_column_of_that_name_is_refused():
    with pytest.raises(PatternError, match="detected_at"):
        cep.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 4 RETURN a.ts AS detected_at", detected_at=True)
    with pytest.raises(PatternError, match="detected_at must be True or False, not 1"):
        cep.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 4", detected_at=1)
