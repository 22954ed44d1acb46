"""Streams give every output, and situations, as a batch does; nothing that was given is changed by what comes later."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.intervals import run
from gpu_cep.engine.streaming import decisive
from gpu_cep.errors import CepError, UnsupportedError
from gpu_cep.live import steps
from gpu_cep.live.steps import certain_matches, hold_events
from tests.api.streams.test_stream import AFTER_MATCH, EVENTS, PAIRS, TRADES, in_numbers, over_time, pushed, ticks_of
from tests.conformance.expectation import expected
from tests.conformance.test_intervals import expected as expected_situations
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.drawn.situations import situation_cases
from tests.effort import examples

OUTPUTS = ("matches", "events", "count", "indices")


def arrival(case: Case, data: st.DataObject) -> tuple[pa.Table, list[int]]:
    """The events in the order in which they come, and where they are cut."""
    times = ticks_of(case.events)
    order = data.draw(st.one_of(st.just("sorted"), st.randoms(use_true_random=False)), "order")
    rows = np.argsort(times, kind="stable")
    if order != "sorted":
        order.shuffle(rows)
    return case.events.take(rows), sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5), "cuts"))


def live_of(case: Case, data: st.DataObject, **keywords: Any) -> cep.Stream:
    unit = "" if in_numbers(case) else " seconds"
    lateness = data.draw(st.sampled_from((0, 1, 3)), "lateness")
    every = data.draw(st.sampled_from((None, None, 2)), "every")
    given = case.options | keywords
    try:
        return cep.stream(case.text, case.events.schema, lateness=f"{lateness}{unit}", every=every and f"{every}{unit}", **given)
    except UnsupportedError:
        reject()


def rows_of(tables: list[pa.Table], output: str) -> Counter[str]:
    """Each row with how often it is there; of counts, the sum of each stream."""
    rows = [row for table in tables for row in table.to_pylist()]
    if output != "count":
        return Counter(map(repr, rows))
    sums: Counter[str] = Counter()
    for row in rows:
        count = row.pop("count")
        # a stream with keys of -0.0 and 0.0 shows either
        sums[repr(row).replace("-0.0", "0.0")] += count
    return +sums


def check_output(case: Case, data: st.DataObject, output: str) -> None:
    live = live_of(case, data, output=output)
    events, cuts = arrival(case, data)
    fewest, large = data.draw(st.sampled_from((0, 0, 9)), "fewest"), data.draw(st.sampled_from((0, steps._LARGE)), "large")
    with patch.object(decisive, "_FEWEST", fewest), patch.multiple(steps, _LARGE=large, _FEWEST_BOUND=0):
        tables, late = pushed(live, events, cuts, saved=data.draw(st.booleans(), "saved"))
    batch = cep.match(events.filter(pa.array(~late)), case.text, output=output, **case.options)
    assert {table.schema for table in tables} == {batch.schema}
    if output == "indices":
        # rows are numbered among all events, of which some were late
        tables = [renumbered(table, np.cumsum(~late) - 1) for table in tables]
    assert rows_of(tables, output) == rows_of([batch], output)


def renumbered(table: pa.Table, numbers: np.ndarray) -> pa.Table:
    places = pa.array(numbers)

    def own(value: Any) -> Any:
        return None if value is None else [places[row].as_py() for row in value] if isinstance(value, list) else places[value].as_py()

    return pa.Table.from_pylist([{name: own(value) for name, value in row.items()} for row in table.to_pylist()], table.schema)


@examples(60, 300)
@given(whole_language(max_size=12, after_match=AFTER_MATCH), st.sampled_from(OUTPUTS), st.data())
def test_every_output_is_that_of_a_batch(case, output, data):
    case = over_time(case)
    expected(case)  # not too many
    check_output(case, data, output)


@examples(60, 300)
@given(trend_cases(tied=True, after_match=AFTER_MATCH), st.sampled_from(OUTPUTS), st.data())
def test_every_output_of_every_strategy_is_that_of_a_batch(case, output, data):
    case = over_time(case)
    expected(case)
    check_output(case, data, output)


def bounded(case: Case) -> Case:
    """The same question with a window."""
    if "WITHIN" in case.text:
        return case
    head, returns, items = case.text.partition("\nRETURN")
    return replace(case, text=f"{head}\nWITHIN 5{'' if in_numbers(case) else ' seconds'}{returns}{items}")


@examples(60, 300)
@given(situation_cases(), st.sampled_from(("matches", "count", "indices")), st.data())
def test_situations_are_those_of_a_batch(case, output, data):
    kind = case.events.schema.field("ts").type
    if pa.types.is_date64(kind) or kind == pa.float32():
        reject()
    case = bounded(case)
    with suppress(CepError):
        expected_situations(case)
    try:
        cep.match(case.events, case.text, **case.options)
    except CepError:
        reject()
    # few situations of a small table are recent, and so all joins begin with these
    with patch.object(run, "_RECENT", data.draw(st.sampled_from((0, 4)), "recent")):
        check_output(case, data, output)


@examples(60, 300)
@given(
    st.one_of(
        whole_language(max_size=10, after_match=AFTER_MATCH).map(over_time),
        trend_cases(max_size=10, after_match=AFTER_MATCH).map(over_time),
        situation_cases(returns=(False,)).map(bounded),
    ),
    st.data(),
)
def test_what_was_given_holds_whatever_comes_later(case, data):
    """Behind each watermark other events come than those that the case has; every match that was given is still there."""
    kind = case.events.schema.field("ts").type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        reject()
    if "DEFINE" not in case.text:
        expected(case)
    live, (events, cuts) = live_of(case, data, output="indices"), arrival(case, data)
    given, late = [], np.zeros(events.num_rows, np.bool_)
    for low, high in zip([0, *cuts], [*cuts, events.num_rows], strict=True):
        part = events.slice(low, high - low)
        if live.clock.watermark is not None:
            late[low:high] = ticks_of(part) <= live.clock.watermark
        given.append(live.push(part))
        on_time = np.flatnonzero(~late[:high])
        told = renumbered(pa.concat_tables(given), np.cumsum(~late) - 1)
        others = data.draw(st.lists(st.integers(0, max(0, len(late) - 1)), max_size=6), "others") if len(late) else []
        steps = data.draw(st.lists(st.integers(1, 3), min_size=len(others), max_size=len(others)), "steps")
        watermark = live.clock.watermark if live.clock.watermark is not None else 0
        if abs(watermark) > 2**31 - 10 and pa.types.is_integer(kind):
            reject()
        times = pa.array([watermark + step for step in steps], pa.int64()).cast(kind)
        more = events.take(pa.array(others, pa.int64())).set_column(events.schema.get_field_index("ts"), events.schema.field("ts"), times)
        later = pa.concat_tables([events.take(on_time), more])
        batch = cep.match(later, case.text, output="indices", **case.options)
        assert not rows_of([told], "indices") - rows_of([batch], "indices")


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("after_match", ["all", "skip_past_last"])
def test_it_is_known_how_many_matches_came_out(output, after_match):
    live = cep.stream(PAIRS, EVENTS, output=output, after_match=after_match, partition_by="k")
    for row in range(6):
        live.push(TRADES.slice(row, 1))
    live = cep.stream.load(live.save())
    live.finish()
    assert live.clock.reported == cep.match(TRADES, PAIRS, after_match=after_match, partition_by="k").num_rows


@pytest.mark.parametrize(
    "pattern",
    [
        # what comes last in one branch, or is bound at the end several times, may come before the end of another match
        "OR(SEQ(A a, B b), SEQ(A a, B b, C c))",
        "SEQ(A a, B b+)",
        "AND(A a, B b)",
        "SEQ(A a, B b, NOT(C c))",
        "SEQ(A a, NOT(C c), B b)",
    ],
)
@pytest.mark.parametrize("after_match", ["all", "skip_to_next", "skip_past_last"])
def test_what_ended_before_may_be_a_part_of_what_ends_later(pattern, after_match):
    query, options = f"PATTERN {pattern} WITHIN 9", {"strategy": "skip_till_any_match", "after_match": after_match, "output": "indices"}
    events = pa.table({"ts": range(6), "type": list("AABBCB"), "k": [1] * 6}, EVENTS)
    live = cep.stream(query, EVENTS, **options)
    given = [*(live.push(events.slice(row, 1)) for row in range(6)), live.finish()]
    assert rows_of(given, "indices") == rows_of([cep.match(events, query, **options)], "indices")


def test_events_are_numbered_on_over_pushes():
    live = cep.stream(PAIRS, EVENTS, output="events", partition_by="k")
    given = [live.push(TRADES.slice(row, 1)) for row in range(6)]
    live = cep.stream.load(live.save())
    found = pa.concat_tables([*given, live.finish()])
    batch = cep.match(TRADES, PAIRS, output="events", partition_by="k")
    assert found.sort_by([("k", "ascending"), ("match_id", "ascending")]) == batch.sort_by([("k", "ascending"), ("match_id", "ascending")])


def test_a_count_is_that_of_the_matches_which_have_become_certain():
    live = cep.stream(PAIRS, EVENTS, output="count")
    assert [live.push(TRADES.slice(row, 1))["count"].to_pylist() for row in range(6)] == [[0], [1], [0], [0], [1], [0]]
    live = cep.stream(PAIRS, EVENTS, output="count", every=4)
    assert live.push(TRADES.slice(0, 2))["count"].to_pylist() == [1]
    assert live.push(TRADES.slice(2, 1))["count"].to_pylist() == [0]


def test_a_window_of_a_number_of_events_keeps_as_many():
    live = cep.stream("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", EVENTS, output="indices")
    assert [live.push(TRADES.slice(row, 1)).to_pylist() for row in range(3)] == [[], [{"a": 0, "b": 1}], []]
    for row in range(3, 6):
        live.push(TRADES.slice(row, 1))
        assert live.kept_events == 2


def test_a_window_of_a_number_of_events_is_over_with_the_last_of_them():
    live = cep.stream("PATTERN SEQ(A a, NOT(C c)) WITHIN 2 EVENTS", EVENTS, output="indices")
    assert [live.push(TRADES.slice(row, 1)).to_pylist() for row in range(4)] == [[], [{"a": 0}], [], []]
    assert live.finish().to_pylist() == []


@pytest.mark.parametrize("window", ["3", "3 EVENTS"])
@pytest.mark.parametrize("after_match", ["all", "skip_past_last"])
def test_a_watermark_may_be_before_the_first_time_that_there_is(window, after_match):
    events = TRADES.set_column(0, "ts", pa.array([*range(-(2**63), 3 - 2**63), 1, 2, 3]))
    query, options = f"PATTERN SEQ(A a, B b, NOT(C c)) WITHIN {window}", {"after_match": after_match, "output": "indices"}
    live = cep.stream(query, EVENTS, lateness=5, **options)
    given = [*(live.push(events.slice(row, 1)) for row in range(6)), live.finish()]
    assert live.clock.late == 0
    assert pa.concat_tables(given) == cep.match(events, query, **options)


@pytest.mark.parametrize(("detect", "rows"), [("final", [0, 0, 0, 1]), ("early", [0, 0, 1, 0])])
def test_situations_come_out_when_they_are_detected(detect, rows):
    levels = pa.table({"ts": [1, 2, 3, 4], "k": [5, 5, 0, 5]})
    live = cep.stream("DEFINE H AS k > 1, L AS k <= 1 PATTERN H meets L WITHIN 5", levels.schema, detect=detect)
    assert [live.push(levels.slice(row, 1)).num_rows for row in range(4)] == rows


def test_a_situation_goes_on_however_long_its_stream_was_silent():
    query = "DEFINE H AS x > 1, L AS x <= 1 PATTERN H meets L WITHIN 5"
    levels = pa.table({"ts": [1, 50, 51, 52, 53], "k": [1, 2, 1, 1, 1], "x": [5, 0, 5, 0, 5]})
    live = cep.stream(query, levels.schema, partition_by="k")
    given = [live.push(levels.slice(row, 1)) for row in range(5)]
    # the situation has begun at 1, too long ago for the window
    assert pa.concat_tables([*given, live.finish()]) == cep.match(levels, query, partition_by="k")
    assert live.kept_events == 0


def test_a_negation_that_looks_back_over_a_number_of_events_gives_no_match_again():
    query = "PATTERN SEQ(NOT(C c), A a, B b+) WITHIN 3 EVENTS"
    events = pa.table({"ts": range(8), "type": list("AABBCABB"), "k": [1] * 8}, EVENTS)
    live = cep.stream(query, EVENTS, output="indices")
    given = [live.push(events.slice(row, 1)) for row in range(8)]
    assert live.kept_events == 4
    assert pa.concat_tables([*given, live.finish()]) == cep.match(events, query, output="indices")


def test_events_may_be_kept_elsewhere_between_runs():
    """As Spark does, which keeps the events of a stream beside the rest of its state."""
    live = cep.stream(PAIRS, EVENTS)
    for row in range(4):
        live.push(TRADES.slice(row, 1))
    query, state = live._live, live._state
    rest = hold_events(query, state, EVENTS.empty_table(), state.numbers[:0])
    assert not rest.times.size
    disordered = state.events.take(pa.array(range(len(state.times))[::-1])), state.numbers[::-1]
    again = hold_events(query, rest, *disordered)
    assert (again.times == state.times).all()
    assert again.events == state.events
    with pytest.raises(AssertionError, match="hold_events"):
        certain_matches(query, replace(rest, events=state.events))


@pytest.mark.parametrize("after_match", ["all", "skip_past_last"])
def test_a_stream_counts_zeros_of_either_sign_as_one_key(after_match):
    events = pa.table({"ts": range(6), "type": list("ABABAB"), "z": [-0.0, -0.0, 0.0, -0.0, math.nan, math.nan]})
    query = "PARTITION BY z PATTERN SEQ(A a, B b) WITHIN 1"
    live = cep.stream(query, events.schema, output="count", after_match=after_match)
    counted = [live.push(events.slice(row, 2)).to_pylist() for row in (0, 2, 4)]
    assert repr(counted) == repr([[{"z": key, "count": 1}] for key in (0.0, 0.0, math.nan)])
    assert repr(cep.match(events, query, output="count", after_match=after_match)["z"].to_pylist()) == repr([0.0, math.nan])
