"""Keys with a time to live begin anew once they were silent for longer, and nothing is kept of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import PatternError, UnsupportedError
from tests.api.streams.test_stream import AFTER_MATCH, EVENTS, PAIRS, in_numbers, pushed, ticks_of
from tests.conformance.expectation import expected
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.effort import examples
from tests.results import matches_of

# a session need not have an event of each type
pytestmark = pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
HOUR = 3_600_000


def over_events(case: Case) -> Case:
    """The same question with a window of a number of events, of keys."""
    length = re.search(r"WITHIN (\d)", case.text)
    text = f"{re.sub(r'WITHIN .*$', '', case.text).rstrip()}\nWITHIN {length[1] if length else 4} EVENTS"
    return replace(case, text=text, options={"partition_by": ["k"]} | dict(case.options))


def lengths(case: Case, units: int) -> tuple[float | str, float]:
    """So many units of time as a keyword says them, and in ticks."""
    if not in_numbers(case):
        return f"{units} hours", units * HOUR
    of_seconds = pa.types.is_timestamp(case.events.schema.field("ts").type)
    return units, units * (1_000_000 if of_seconds else 1)


def sessions(events: pa.Table, keys: list[str], silence: float) -> Iterator[list[int]]:
    """The rows of each key between longer silences, in the order in which they came."""
    times, rows_of = ticks_of(events).tolist(), {}
    for row, key in enumerate(zip(*(events.column(name).to_pylist() for name in keys), strict=True)):
        # -0.0 and 0.0 are one key, and so are NaNs
        rows_of.setdefault(tuple("NaN" if value != value else value for value in key), []).append(row)
    for rows in rows_of.values():
        in_order = sorted(rows, key=lambda row: times[row])
        ends = [place for place in range(1, len(rows)) if times[in_order[place]] - times[in_order[place - 1]] > silence]
        for begin, end in zip([0, *ends], [*ends, len(rows)], strict=True):
            yield sorted(in_order[begin:end])


def matches_in(table: pa.Table, rows: Any) -> Counter[str]:
    """The matches of a table with row numbers, by the numbers that these rows have."""
    return Counter(repr({name: tuple(int(rows[row]) for row in own) for name, own in match.items()}) for match in matches_of(table))


def check_silences(case: Case, data: st.DataObject) -> None:
    case = over_events(case)
    expected(case)  # not too many
    told, ticks = lengths(case, data.draw(st.sampled_from((2, 1, 3)), "silence"))
    lateness, _ = lengths(case, data.draw(st.sampled_from((0, 1, 3)), "lateness"))
    every = data.draw(st.sampled_from((None, None, lengths(case, 2)[0])), "every")
    keywords = dict(case.options) | {"lateness": lateness, "every": every, "time_to_live": told, "output": "indices"}
    try:
        live = cep.stream(case.text, case.events.schema, **keywords)
    except UnsupportedError as refusal:
        if "() of these arguments is not supported" in str(refusal):
            reject()
        raise
    rows, order = np.argsort(ticks_of(case.events), kind="stable"), data.draw(st.booleans(), "in order")
    if not order:
        data.draw(st.randoms(use_true_random=False), "order").shuffle(rows)
    events = case.events.take(rows)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5), "cuts"))
    tables, late = pushed(live, events, cuts, saved=data.draw(st.booleans(), "saved"))
    on_time = np.flatnonzero(~late)
    batch: Counter[str] = Counter()
    for own in sessions(events.take(on_time), case.options["partition_by"], ticks):
        part = cep.match(events.take(on_time[own]), case.text, output="indices", **case.options)
        batch += matches_in(part, on_time[own])
    assert sum((matches_in(table, range(len(rows))) for table in tables), Counter()) == batch


@examples(40, 300)
@given(whole_language(max_size=12, after_match=AFTER_MATCH), st.data())
def test_a_stream_has_the_matches_of_each_session(case, data):
    check_silences(case, data)


@examples(40, 300)
@given(trend_cases(max_size=16, after_match=AFTER_MATCH), st.data())
def test_sessions_tell_strategies_apart(case, data):
    check_silences(case, data)


TRADES = pa.table({"ts": [1, 2, 3, 9, 10, 30], "type": list("ABABBB"), "k": [1, 1, 2, 2, 1, 3]}, EVENTS)
OF_KEYS = "PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 3 EVENTS"


def test_a_key_that_comes_back_in_time_goes_on():
    live = cep.stream(OF_KEYS, EVENTS, time_to_live=6)
    assert [live.push(TRADES.slice(row, 1)).num_rows for row in range(6)] == [0, 1, 0, 1, 0, 0]
    # a silence of 6 is not longer than 6; key 1 was silent for 8
    assert live.clock.expired == 3
    assert live.kept_events == 1


@pytest.mark.parametrize(("pattern", "rows"), [("SEQ(A a, B b, NOT(C c))", [0, 1]), ("SEQ(A a, B b+)", [0, 1]), ("SEQ(A a, B b)", [1, 0])])
def test_what_waits_for_further_events_comes_out_when_its_key_has_fallen_silent(pattern, rows):
    live = cep.stream(f"PARTITION BY k PATTERN {pattern} WITHIN 5 EVENTS", EVENTS, time_to_live=6)
    assert [live.push(TRADES.slice(0, 2)).num_rows, live.advance(7).num_rows] == [rows[0], 0]
    assert live.kept_events == 2
    assert live.advance(8).num_rows == rows[1]
    assert (live.kept_events, live.clock.expired) == (0, 1)


def test_what_is_kept_is_bounded_by_the_keys_that_speak():
    live = cep.stream("PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 8 EVENTS", EVENTS, time_to_live=10)
    sizes = []
    for begin in range(0, 4_000, 40):
        live.push(pa.table({"ts": np.arange(begin, begin + 40), "type": ["A"] * 40, "k": np.arange(begin, begin + 40) // 4}, EVENTS))
        sizes.append((live.kept_events, len(live.save())))
    assert max(kept for kept, _ in sizes) <= 14
    assert max(size for _, size in sizes[50:]) <= max(size for _, size in sizes[:50]) + 8
    assert live.clock.expired >= 990


@pytest.mark.parametrize("options", [{"output": "matches"}, {"output": "events"}, {"output": "count"}, {"after_match": "skip_past_last"}])
def test_results_look_as_without_sessions(options):
    live = cep.stream("PATTERN SEQ(A session, B b) WITHIN 3 EVENTS", EVENTS, partition_by="k", time_to_live=6, **options)
    found = pa.concat_tables([live.push(TRADES), live.finish()])
    batch = cep.match(TRADES.slice(0, 5), "PATTERN SEQ(A session, B b) WITHIN 3 EVENTS", partition_by="k", **options)
    assert found.schema == batch.schema
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, batch.to_pylist()))


def test_matches_of_a_key_are_numbered_on_from_session_to_session():
    twice = pa.table({"ts": [1, 2, 50, 51, 52, 53], "type": list("ABABAB"), "k": [1, 1, 1, 1, 2, 2]}, EVENTS)
    live = cep.stream("PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 2 EVENTS", EVENTS, time_to_live=6, output="events")
    found = pa.concat_tables([live.push(twice), live.finish()]).sort_by([("k", "ascending"), ("ts", "ascending")])
    assert found["match_id"].to_pylist() == [0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize("options", [{}, {"output": "count"}, {"after_match": "skip_past_last"}])
def test_a_key_may_be_called_match_id(options):
    events = pa.table({"ts": [1, 2, 3, 50, 51], "type": list("ABXAB"), "match_id": [77, 77, 78, 78, 78]})
    text = "PARTITION BY match_id PATTERN SEQ(A a, B b) WITHIN 3 EVENTS RETURN b.ts AS at"
    live = cep.stream(text, events.schema, time_to_live=6, **options)
    found = pa.concat_tables([live.push(events), live.finish()])
    batch = cep.match(events, text, **options)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, batch.to_pylist()))


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_a_match_waits_for_no_other_key(output):
    query = "PARTITION BY k PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 3 EVENTS"
    schema = EVENTS.set(2, pa.field("k", pa.dictionary(pa.int8(), pa.string())))
    live = cep.stream(query, schema, time_to_live=1_000, after_match="skip_past_last", output=output)

    def push(time: int, key: str, types: str) -> int:
        keys = pa.array([key] * len(types)).dictionary_encode().cast(schema.field("k").type)
        live.push(pa.table({"ts": range(time, time + len(types)), "type": list(types), "k": keys}, schema))
        return live.clock.reported

    # the window of key x stays open, and that of y is over with its third event
    assert push(1, "x", "A") == 0
    assert push(2, "y", "AB") == 0
    assert push(4, "y", "D") == 1
    for number in range(1, 30):
        assert push(10 * number, f"k{number % 5}", "ABD") == 1 + number
        assert live._state.held is not None
        assert live._state.held.rows.num_rows <= 2 * 6
    # y begins anew with an open window, which may hold what has been given out
    assert push(500, "y", "AB") == 30
    assert push(502, "x", "BDD") == 31


def test_a_match_waits_for_one_of_its_key_that_completes_before_it():
    query = "PARTITION BY k PATTERN SEQ(A a, B b, NOT(C c)) WHERE a.x = b.x WITHIN 4 EVENTS RETURN a.ts AS a, b.ts AS b"
    # the match from 1 to 4 has its window over first, and that from 2 to 3 is taken before it
    events = pa.table({"ts": range(1, 7), "type": list("AABBDD"), "k": [7] * 6, "x": [1, 2, 2, 1, 0, 0]})
    live = cep.stream(query, events.schema, time_to_live=100, after_match="skip_past_last")
    found = [[(row["a"], row["b"]) for row in live.push(events.slice(row, 1)).to_pylist()] for row in range(6)]
    assert found == [[], [], [], [], [(2, 3)], []]


def test_a_match_that_was_given_out_rules_out_one_of_an_open_window():
    query = "PARTITION BY k PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 EVENTS RETURN a.ts AS a, b.ts AS b"
    events = pa.table({"ts": range(1, 5), "type": list("AABB"), "k": [7] * 4, "x": [0, 5, 1, 9]})
    live = cep.stream(query, events.schema, time_to_live=100, after_match="skip_past_last")
    assert [live.push(events.slice(begin, length)).num_rows for begin, length in ((0, 3), (3, 1))] == [1, 0]


def test_a_saved_stream_knows_its_time_to_live():
    live = cep.stream(OF_KEYS, EVENTS, time_to_live=6)
    live.push(TRADES.slice(0, 1))
    again = cep.stream.load(live.save())
    assert again.push(pa.table({"ts": [8], "type": ["B"], "k": [1]}, EVENTS)).num_rows == 0
    assert again.clock.expired == 1


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        (OF_KEYS, {}, r"partition_by is not supported: .*\n.*hint: give the window a length of time, or time_to_live='1 day'"),
        (PAIRS, {"time_to_live": 5}, r"time_to_live= is for windows of a number of events with partition_by, .*\n.*hint: leave it out"),
        (OF_KEYS.partition("k ")[2], {"time_to_live": 5}, "this is a window of a number of events without partition_by"),
        ("MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS t PATTERN (A) WITHIN 5)", {"time_to_live": 5}, "not supported for MATCH_RECOGNIZE"),
    ],
)
def test_a_time_to_live_is_asked_for_where_it_bounds_something(pattern, options, message):
    with pytest.raises(UnsupportedError, match=message):
        cep.stream(pattern, EVENTS, **options)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("soon", "time_to_live='soon' is no length of time"),
        (0, "time_to_live=0 must be more than nothing"),
        ("3 seconds", "needs the length of its ticks"),
    ],
)
def test_faults_of_a_time_to_live(given, message):
    with pytest.raises(PatternError, match=message):
        cep.stream(OF_KEYS, EVENTS, time_to_live=given)
