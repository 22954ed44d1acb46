"""Events that come batch by batch are matched while they are read, and events that are complete until a time as far as that."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pyarrow import csv
from pyarrow import parquet as pq

import gpu_cep as cep
from gpu_cep.errors import CepError, EventError, MatchLimitExceeded, PatternError, UnsupportedError
from gpu_cep.live import runs as live_runs
from tests.api.streams.test_outputs import OUTPUTS, bounded, rows_of
from tests.api.streams.test_stream import AFTER_MATCH, EVENTS, PAIRS, TRADES, over_time, ticks_of
from tests.conformance.expectation import expected
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.drawn.situations import situation_cases
from tests.effort import examples

ANY_CASES = st.one_of(
    whole_language(max_size=12, after_match=AFTER_MATCH).map(over_time),
    trend_cases(tied=True, after_match=AFTER_MATCH).map(over_time),
    situation_cases().map(bounded),
)


def refuse_hard(case: Case) -> None:
    """Leave out cases that fail in a batch, or have too many matches."""
    kind = case.events.schema.field("ts").type
    if pa.types.is_date64(kind) or kind == pa.float32():
        reject()
    try:
        if "DEFINE" not in case.text:
            expected(case)
        cep.match(case.events, case.text, **case.options)
    except CepError:
        reject()


@examples(60, 300)
@given(ANY_CASES, st.sampled_from(OUTPUTS), st.integers(1, 5), st.integers(1, 9))
def test_batches_in_order_have_the_matches_of_a_table(case, output, size, worth):
    refuse_hard(case)
    events = case.events.take(np.argsort(ticks_of(case.events), kind="stable"))
    reader = events.to_reader(max_chunksize=size)
    before = live_runs._WORTH_A_RUN
    live_runs._WORTH_A_RUN = worth
    try:
        read = cep.match(reader, case.text, output=output, result="reader", **case.options).read_all()
    finally:
        live_runs._WORTH_A_RUN = before
    batch = cep.match(events, case.text, output=output, **case.options)
    assert read.schema == batch.schema
    assert rows_of([read], output) == rows_of([batch], output)


@examples(60, 300)
@given(ANY_CASES, st.sampled_from(OUTPUTS), st.data())
def test_what_is_certain_at_a_time_is_what_a_stream_has_given_by_then(case, output, data):
    refuse_hard(case)
    if not len(case.events):
        reject()
    row = data.draw(st.integers(0, len(case.events) - 1))
    until = case.events["ts"][row]
    try:
        live = cep.stream(case.text, case.events.schema, output=output, **case.options)
    except UnsupportedError:
        with pytest.raises(UnsupportedError, match="complete_until="):
            cep.match(case.events, case.text, output=output, complete_until=until, **case.options)
        return
    known = ticks_of(case.events)
    pushed = live.push(case.events.filter(pa.array(known <= known[row])))
    found = cep.match(case.events, case.text, output=output, complete_until=until, **case.options)
    if output == "indices":
        assert len(pushed) == len(found)
    else:
        assert rows_of([pushed, live.advance(until)], output) == rows_of([found], output)


def test_only_a_window_of_events_is_kept_while_batches_are_read(monkeypatch):
    monkeypatch.setattr(live_runs, "_WORTH_A_RUN", 100)
    kept = []
    certain = live_runs.certain_matches

    def noting(*arguments: Any) -> Any:
        state, found = certain(*arguments)
        kept.append((state.clock.pushed, len(state.times)))
        return state, found

    monkeypatch.setattr(live_runs, "certain_matches", noting)
    parts = ({"ts": range(at, at + 50), "type": ["A", "B"] * 25, "k": range(50)} for at in range(0, 5_000, 50))
    batches = (pa.record_batch(part, schema=EVENTS) for part in parts)
    reader = cep.match(batches, "PATTERN SEQ(A a, B b) WITHIN 5", result="reader")
    # nothing is read before the result is
    assert not kept
    assert sum(batch.num_rows for batch in reader) == 2_500
    assert len(kept) > 30
    assert max(rows for _, rows in kept) <= 6


def test_an_iterator_of_batches_or_tables_is_a_table():
    expected_matches = cep.match(TRADES, PAIRS)
    assert cep.match(iter(TRADES.to_batches(max_chunksize=2)), PAIRS) == expected_matches
    assert cep.match((TRADES.slice(row, 2) for row in range(0, 6, 2)), PAIRS) == expected_matches
    with pytest.raises(EventError, match=r"the iterator gives no batch, and so no columns; give a pyarrow.RecordBatchReader"):
        cep.match(iter([]), PAIRS)
    with pytest.raises(EventError, match=r"the iterator gives int; expected pyarrow.RecordBatch or pyarrow.Table"):
        cep.match(iter([1]), PAIRS)


@pytest.mark.parametrize("match", [cep.match, lambda *asked: cep.match(*asked, result="reader").read_all()])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.int32(), "column 'k' of a batch is int32, and of the first batch int64; cast it to that"),
        (pa.float64(), "column 'k' of a batch is double, and of the first batch int64; cast it to that"),
        (None, "a batch of the iterator has not one column 'k', as the first batch has"),
    ],
)
def test_a_batch_of_other_columns_is_refused_and_not_read_as_what_it_is_not(kind, message, match):
    later = TRADES.slice(3).drop_columns(["k"])
    later = later if kind is None else later.append_column("k", TRADES["k"].slice(3).cast(kind))
    with pytest.raises(EventError, match=message):
        match(iter([TRADES.slice(0, 3), later]), PAIRS)


def test_columns_of_batches_are_those_of_the_first_by_name():
    later = TRADES.slice(3).select(["k", "ts", "type"]).append_column("more", pa.array(["x"] * 3))
    assert cep.match(iter([TRADES.slice(0, 3), later]), PAIRS) == cep.match(TRADES, PAIRS)


def test_a_batch_out_of_order_is_an_error_that_names_the_row():
    reader = cep.match(TRADES.take([0, 1, 4, 3]).to_reader(max_chunksize=1), PAIRS, result="reader")
    told = r"events: row 3 is of an earlier time than a row of a batch before it; result='reader' reads batches in order of time: sort"
    with pytest.raises(EventError, match=told):
        reader.read_all()
    # a batch may begin at the time at which the one before it ended, and need not be in order itself
    tied = TRADES.set_column(0, "ts", pa.array([2, 1, 2, 3, 4, 3]))
    assert cep.match(tied.to_reader(max_chunksize=2), PAIRS, result="reader").read_all().num_rows == cep.match(tied, PAIRS).num_rows


def test_a_query_without_a_window_reads_all_batches_first():
    query, backwards = "PATTERN SEQ(A a, B b) WHERE a.k = b.k", TRADES.take([5, 4, 3, 2, 1, 0])
    assert cep.match(backwards.to_reader(), query, result="reader").read_all() == cep.match(TRADES, query)


def test_bounds_are_those_of_all_batches():
    reader = cep.match(TRADES.to_reader(max_chunksize=1), PAIRS, result="reader", max_matches=2)
    assert reader.read_all().num_rows == 2
    for after_match in ("all", "skip_past_last"):
        with pytest.raises(MatchLimitExceeded):
            cep.match(TRADES.to_reader(max_chunksize=1), PAIRS, result="reader", max_matches=1, after_match=after_match).read_all()


@pytest.mark.parametrize(("until", "rows"), [(1, 0), (5, 0), (6, 1), (20, 1)])
def test_a_negation_at_the_end_waits_for_its_window(until, rows):
    events = pa.table({"ts": [1, 2, 30], "type": ["A", "B", "C"], "k": [1, 1, 1]}, EVENTS)
    assert cep.match(events, "PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 5", complete_until=until).num_rows == rows


def test_files_are_read_until_a_time(tmp_path):
    query, events = "PATTERN SEQ(A a, B b+) WHERE a.k = b.k WITHIN 3", TRADES.append_column("more", pa.array(["x"] * 6))
    certain = cep.match(events, query, complete_until=5)
    pq.write_table(events, tmp_path / "events.parquet")
    csv.write_csv(events, tmp_path / "events.csv")
    assert certain.num_rows == 1
    for name in ("events.parquet", "events.csv"):
        assert cep.match(tmp_path / name, query, complete_until=5) == certain
        assert cep.match(str(tmp_path / name), query, complete_until=5, result="reader").read_all() == certain
    with pytest.raises(UnsupportedError, match="the query needs about 1MiB for the events, more than memory=1 bytes"):
        cep.match(tmp_path / "events.csv", query, complete_until=5, memory=1)
    (tmp_path / "empty.csv").write_text("ts,type,k\n")
    assert cep.match(tmp_path / "empty.csv", query, complete_until=5).num_rows == 0


def test_a_time_may_be_text_and_is_checked():
    events = pa.table({"ts": pa.array([1, 2], pa.timestamp("s")), "type": ["A", "B"]})
    query = "PATTERN SEQ(A a, B b) WITHIN 5 seconds"
    assert cep.match(events, query, complete_until="1970-01-01 00:00:02").num_rows == 1
    assert cep.match(events, query, complete_until=datetime(1970, 1, 1, 0, 0, 1)).num_rows == 0
    # a day is its first moment
    assert [cep.match(events, query, complete_until=date(1970, 1, day)).num_rows for day in (1, 2)] == [0, 1]
    with pytest.raises(EventError, match=r"complete_until: 'noon' is no value of the column 'ts' of type timestamp\[s\]"):
        cep.match(events, query, complete_until="noon")
    with pytest.raises(UnsupportedError, match="complete_until= needs a window"):
        cep.match(events, "PATTERN SEQ(A a, B b)", complete_until=1)


def test_late_events_come_out_as_rows_if_that_is_asked_for():
    live = cep.stream(PAIRS, EVENTS, late="rows", partition_by="k")
    assert live.push(TRADES.slice(0, 2)).to_pylist() == [
        {"kind": "match", "k": 1, "match_start": 1, "match_end": 2, "a": 1, "b": 2, "event": None},
    ]
    late = live.push(TRADES.take([3, 0]))
    assert late.schema == live.schema == live.advance(9).schema == live.finish().schema
    nothing = dict.fromkeys(("k", "match_start", "match_end", "a", "b"))
    assert late.to_pylist() == [{"kind": "late", **nothing, "event": {"ts": 1, "type": "A", "k": 1}}]
    assert live.clock.late == 1


@pytest.mark.parametrize(
    ("query", "options", "fault", "message"),
    [
        (PAIRS, {"output": "indices"}, UnsupportedError, "late='rows' is not supported with output='indices'; supported: matches"),
        ("PATTERN SEQ(A kind, B b) WITHIN 5", {}, PatternError, "late='rows' adds a column 'kind', which matches have already"),
    ],
)
def test_late_rows_need_room_in_the_result(query, options, fault, message):
    with pytest.raises(fault, match=message):
        cep.stream(query, EVENTS, late="rows", **options)
