"""A stream has the matches of a batch over the events that were not late, each once, and none before it is certain."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.slices import disjoint
from gpu_cep.engine.streaming import decisive, moving_streams
from gpu_cep.errors import UnsupportedError
from gpu_cep.live import steps
from tests.conformance.expectation import expected
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.effort import examples
from tests.results import matches_of

EVENTS = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64()})
AFTER_MATCH = ("all", "all", "skip_to_next", "skip_past_last")


def over_time(case: Case) -> Case:
    """The same question with a window of time, if streams cannot answer it with that of the case."""
    text = case.text if "WITHIN" in case.text else f"{case.text}\nWITHIN 4"
    if text.endswith(" EVENTS") and "partition_by" not in case.options:
        return case
    return replace(
        case, text=text.replace(" EVENTS", "") if in_numbers(case) else re.sub(r"WITHIN (\d+)( EVENTS)?$", r"WITHIN \1 seconds", text)
    )


def with_infinities(case: Case) -> Case:
    """The same question over float times of which the least and the greatest are infinite; over others as it is."""
    if not pa.types.is_floating(case.events.schema.field("ts").type):
        return case
    times = ticks_of(case.events)
    ends = np.select([times == times.min(initial=0), times == times.max(initial=0)], [-np.inf, np.inf], times)
    return replace(case, events=case.events.set_column(0, "ts", pa.array(ends)))


def in_numbers(case: Case) -> bool:
    """Whether a length of time may be a number without a unit."""
    kind = case.events.schema.field("ts").type
    return "time_unit" in case.options or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def live_of(case: Case, **keywords: Any) -> cep.Stream:
    try:
        return cep.stream(case.text, case.events.schema, output="indices", **case.options, **keywords)
    except UnsupportedError as refusal:
        if "() of these arguments is not supported" in str(refusal):
            reject()
        raise


def found_in(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, matches_of(table)))


def pushed(live: cep.Stream, events: pa.Table, cuts: list[int], *, saved: bool) -> tuple[list[pa.Table], np.ndarray]:
    """What comes out push by push, and which events were late."""
    tables, late = [], np.zeros(events.num_rows, np.bool_)
    for low, high in zip([0, *cuts], [*cuts, events.num_rows], strict=True):
        if saved:
            live = cep.stream.load(live.save())
        before = live.clock.late
        part = events.slice(low, high - low)
        if live.clock.watermark is not None:
            late[low:high] = ticks_of(part) <= live.clock.watermark
        tables.append(live.push(part))
        assert live.clock.late - before == late[low:high].sum()
    return [*tables, live.finish()], late


def ticks_of(events: pa.Table) -> np.ndarray:
    times = events.column("ts").combine_chunks()
    if pa.types.is_date32(times.type):
        return times.cast(pa.int32()).to_numpy()
    return times.to_numpy() if pa.types.is_floating(times.type) else times.cast(pa.int64()).to_numpy()


def check_stream(case: Case, data: st.DataObject) -> None:
    case = over_time(case)
    if data.draw(st.booleans(), "infinities"):
        case = with_infinities(case)
    expected(case)  # not too many
    unit = "" if in_numbers(case) else " seconds"
    lateness = data.draw(st.sampled_from((0, 1, 3)), "lateness")
    every = data.draw(st.sampled_from((None, None, 2)), "every")
    emit = data.draw(st.sampled_from(("certain", "certain", "window")), "emit")
    live = live_of(case, lateness=f"{lateness}{unit}", every=every and f"{every}{unit}", emit=emit)
    order = data.draw(st.one_of(st.just("sorted"), st.randoms(use_true_random=False)), "order")
    rows = np.argsort(ticks_of(case.events), kind="stable")
    if order != "sorted":
        rows = np.arange(len(rows))
        order.shuffle(rows)
    events = case.events.take(rows)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5), "cuts"))
    # all events of a small table may be of keys that have moved
    most = data.draw(st.sampled_from((0.5, 1.0)), "most")
    # and any push that brings more events than are kept may be a large one
    large = data.draw(st.sampled_from((0, steps._LARGE)), "large")
    apart = patch.multiple(moving_streams, _FEWEST=0, _MOST=most)
    # and few held matches may be many
    held = patch.multiple(disjoint, FEWEST=data.draw(st.sampled_from((0, disjoint.FEWEST)), "held"), PER_NEW=0)
    with apart, held, patch.object(decisive, "_FEWEST", 0), patch.multiple(steps, _LARGE=large, _FEWEST_BOUND=0):
        tables, late = pushed(live, events, cuts, saved=data.draw(st.booleans(), "saved"))
    on_time = np.flatnonzero(~late)
    batch = cep.match(events.take(on_time), case.text, output="indices", **case.options)
    numbered = [{name: tuple(on_time[list(own)].tolist()) for name, own in match.items()} for match in matches_of(batch)]
    assert sum(map(found_in, tables), Counter()) == Counter(map(repr, numbered))


@examples(60, 300)
@given(whole_language(max_size=12, after_match=AFTER_MATCH), st.data())
def test_a_stream_has_the_matches_of_a_batch(case, data):
    check_stream(case, data)


@examples(60, 300)
@given(trend_cases(after_match=AFTER_MATCH), st.data())
def test_a_stream_tells_strategies_apart(case, data):
    check_stream(case, data)


TRADES = pa.table({"ts": [1, 2, 3, 4, 6, 9], "type": list("ABACBB"), "k": [1, 1, 2, 1, 2, 1]}, EVENTS)
PAIRS = "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5 RETURN a.ts AS a, b.ts AS b"


def test_a_match_comes_out_with_its_last_event():
    live = cep.stream(PAIRS, EVENTS)
    assert [live.push(TRADES.slice(row, 1)).num_rows for row in range(6)] == [0, 1, 0, 0, 1, 0]
    assert live.finish().num_rows == 0


@pytest.mark.parametrize(
    ("pattern", "strategy", "rows"),
    [
        # a C could still come, a further B be bound, or a B far above be preferred
        ("SEQ(A a, B b, NOT(C c))", "skip_till_next_match", [0, 0, 0, 0, 0, 1]),
        ("SEQ(A a, B b+)", "skip_till_next_match", [0, 0, 0, 0, 1, 1]),
        ("SEQ(A a, B b)", "robust_skip_till_next_match", [0, 0, 0, 0, 1, 1]),
        # nothing that comes later rules out the first one
        ("SEQ(A a, B b+)", "skip_till_any_match", [0, 1, 0, 0, 1, 0]),
        ("SEQ(A a, NOT(C c), B b)", "skip_till_next_match", [0, 1, 0, 0, 0, 0]),
    ],
)
def test_a_match_waits_for_its_window_if_later_events_may_change_it(pattern, strategy, rows):
    live = cep.stream(f"PATTERN {pattern} WITHIN 4", EVENTS, strategy=strategy)
    assert [live.push(TRADES.slice(row, 1)).num_rows for row in range(6)] == rows


@pytest.mark.parametrize("after_match", ["all", "skip_past_last", "skip_to_next"])
def test_matches_come_in_the_order_of_first_events_if_that_is_asked_for(after_match):
    crossed = pa.table({"ts": [1, 2, 3, 4, 5, 20], "type": list("AABBAA"), "k": [1, 2, 2, 1, 3, 4]}, EVENTS)
    live = cep.stream(PAIRS, EVENTS, emit="window", after_match=after_match)
    with patch.object(decisive, "_FEWEST", 0):
        given = [live.push(crossed.slice(row, 1)).to_pylist() for row in range(5)]
        live = cep.stream.load(live.save())
        # the windows of the first two events are over at 6 and 7
        given += [live.advance(6).to_pylist(), live.advance(7).to_pylist(), live.finish().to_pylist()]
    batch = cep.match(crossed, PAIRS, after_match=after_match).to_pylist()
    assert [row for rows in given for row in rows] == batch
    assert [len(rows) for rows in given] == [0] * 5 + ([1, 1, 0] if after_match != "skip_past_last" else [0, 0, 1])


def test_matches_that_do_not_overlap_come_in_the_order_of_first_events_of_each_key():
    events = pa.table({"ts": [1, 2, 3, 5, 6, 7], "type": list("AABBAB"), "k": [1, 2, 2, 1, 2, 2]}, EVENTS)
    live = cep.stream(PAIRS, EVENTS, emit="window", after_match="skip_past_last", partition_by="k")
    given = [live.push(events), *(live.advance(time) for time in range(7, 14))]
    rows = [[(row["k"], row["a"]) for row in table.to_pylist()] for table in given]
    # until 9 a match of key 1 may come out that begins behind the first event, and completes before 5
    assert rows == [[], [], [(2, 2)], [], [(1, 1)], [], [(2, 6)], []]


@pytest.mark.parametrize(("after_match", "rows"), [("all", [0, 1, 0, 0, 1, 1]), ("skip_to_next", [0, 0, 0, 0, 1, 1])])
def test_each_branch_says_when_its_matches_are_certain(after_match, rows):
    live = cep.stream("PATTERN OR(SEQ(A a, B b), SEQ(A a, B c, NOT(C d))) WITHIN 4", EVENTS, after_match=after_match)
    assert [live.push(TRADES.slice(row, 1)).num_rows for row in range(6)] == rows


@pytest.mark.parametrize("after_match", ["all", "skip_past_last", "skip_to_next"])
def test_under_contiguity_the_next_event_of_the_stream_closes_a_match(after_match):
    live = cep.stream("PATTERN SEQ(A a, B b+) WITHIN 9", EVENTS, strategy="strict_contiguity", partition_by="k", after_match=after_match)
    assert [live.push(TRADES.slice(row, 1)).num_rows for row in range(6)] == [0, 0, 0, 1, 0, 0]
    # nothing follows the other one, and its window is over at 12
    assert [live.advance(time).num_rows for time in (11, 12)] == [0, 1]


def test_an_event_of_another_stream_closes_no_match():
    live = cep.stream("PATTERN SEQ(A a, B b+) WITHIN 9", EVENTS, strategy="strict_contiguity", partition_by="k", output="indices")
    events = pa.table({"ts": [1, 2, 3, 4, 5], "type": list("ABABA"), "k": [1, 1, 2, 1, 1]}, EVENTS)
    given = [live.push(events.slice(row, 1)).to_pylist() for row in range(5)]
    assert given == [[], [], [], [], [{"a": 0, "b": [1, 3]}]]


def test_variables_may_be_called_as_columns_of_timeouts_are():
    live = cep.stream("PATTERN SEQ(A kind, B missing) WHERE kind.k = missing.k WITHIN 5", EVENTS, output="indices")
    with patch.object(decisive, "_FEWEST", 0):
        found = pa.concat_tables([live.push(TRADES.slice(row, 1)) for row in range(6)])
    assert found.to_pylist() == [{"kind": 0, "missing": 1}, {"kind": 2, "missing": 4}]


def test_events_are_kept_no_longer_than_a_window():
    live, steady = cep.stream(PAIRS, EVENTS), pa.table({"ts": range(1_000), "type": ["A"] * 1_000, "k": range(1_000)}, EVENTS)
    for row in range(0, 1_000, 50):
        live.push(steady.slice(row, 50))
        assert live.kept_events <= 6
    assert len(live.save()) < 10_000


def test_the_engine_runs_as_seldom_as_is_asked_for():
    live = cep.stream(PAIRS, EVENTS, every=4)
    assert [live.push(TRADES.slice(row, 1)).num_rows for row in range(6)] == [0, 0, 0, 0, 2, 0]
    assert live.advance(20).num_rows == 0


@pytest.mark.parametrize(
    ("schema", "remedy"),
    [
        (None, "not NoneType; give pyarrow.schema"),
        ({"ts": pa.int64()}, "not dict; give pyarrow"),
        (TRADES, "not Table; give its schema"),
        (PAIRS, "not str; give the pattern first, then the schema"),
        (TRADES.to_pandas(), r"not DataFrame; give the schema of its table: pyarrow.table\(events\).schema"),
        (pa.field("ts", pa.int64()), r"not Field; give pyarrow.schema\(schema\)"),
    ],
)
@pytest.mark.parametrize("make", [lambda schema: cep.stream(PAIRS, schema), lambda schema: cep.stream_all({"pairs": PAIRS}, schema)])
def test_what_is_no_schema_is_refused(make, schema, remedy):
    with pytest.raises(cep.EventError, match=f"schema: expected that of an Arrow table, {remedy}"):
        make(schema)


def test_a_column_that_is_there_twice_is_refused():
    twice = pa.table([*TRADES.columns, TRADES.column("k")], names=[*TRADES.column_names, "k"])
    with pytest.raises(cep.EventError, match="events: there is more than one column 'k'; rename all but one"):
        cep.stream(PAIRS, EVENTS).push(twice)


def test_a_finished_stream_takes_no_events():
    live = cep.stream(PAIRS, EVENTS)
    live.finish()
    with pytest.raises(cep.EventError, match="the stream is finished"):
        live.push(TRADES)


def test_results_have_the_schema_of_a_batch():
    live = cep.stream(PAIRS, EVENTS, partition_by="k")
    assert live.push(TRADES.slice(0, 1)).schema == live.schema == cep.match(TRADES, PAIRS, partition_by="k").schema


def test_columns_are_those_of_the_schema():
    live = cep.stream(PAIRS, EVENTS)
    assert live.push(TRADES.append_column("more", pa.array(range(6)))).num_rows == 2
    told = r"there is no column 'ts' \(did you mean 't'\?\); there is no column 'type' .*; the stream's schema has them"
    with pytest.raises(cep.EventError, match=told):
        live.push(TRADES.rename_columns(["t", "typ", "k"]))
    told = "column 'ts' is int32, .*; column 'k' is double, and the stream's schema says int64; cast the events"
    with pytest.raises(cep.EventError, match=told):
        live.push(TRADES.set_column(0, "ts", TRADES["ts"].cast(pa.int32())).set_column(2, "k", pa.array([1.5] * 6)))
    encoded = TRADES.set_column(1, "type", TRADES.column("type").dictionary_encode())
    assert cep.stream(PAIRS, EVENTS).push(encoded).num_rows == 2


@pytest.mark.parametrize("make", [lambda schema: cep.stream(PAIRS, schema), lambda schema: cep.stream_all({"pairs": PAIRS}, schema)])
def test_null_in_a_column_that_has_none_by_the_schema_is_refused(make):
    strict = EVENTS.set(2, EVENTS.field("k").with_nullable(False))
    with pytest.raises(cep.EventError, match="events: column 'k' holds 2 NULL, which the stream's schema rules out"):
        make(strict).push(TRADES.set_column(2, "k", pa.array([1, None, 1, 1, None, 1])))
    assert len(make(strict).push(TRADES)) == len(make(EVENTS).push(TRADES))


SITUATIONS = "DEFINE H AS k > 1, L AS k <= 1 PATTERN H meets L WITHIN 5"


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        ("PATTERN SEQ(A a, B b)", {}, "a stream needs a window"),
        ("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", {"partition_by": "k"}, "a window of a number of events and partition_by is not supp"),
        (PAIRS, {"output": "compressed"}, "a stream with output='compressed' is not supported; supported: matches, events, indices, count"),
        (SITUATIONS, {"output": "events"}, "a stream with output='events' over situations is not supported; supported: matches, in"),
        (SITUATIONS, {"emit": "window"}, "emit='window' is not supported for situations"),
        (SITUATIONS, {"gap": 3}, "a stream with gap= and detect='final' is not supported"),
        (PAIRS, {"algorithm": "brute_force"}, "a stream with algorithm='brute_force' is not supported"),
    ],
)
def test_what_streams_cannot_answer_is_refused_by_name(pattern, options, message):
    with pytest.raises(UnsupportedError, match=message):
        cep.stream(pattern, EVENTS, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"late": "drpo"}, "late='drpo' is unknown; expected one of drop, error, rows"),
        ({"emit": "windwo"}, "emit='windwo' is unknown; expected one of certain, window"),
        ({"lateness": "soon"}, "lateness='soon' is no length of time"),
        ({"every": "3 seconds"}, "needs the length of its ticks"),
        ({"idle": 5}, "idle=5 is no length of time that a clock tells\n.*hint: write it with a unit"),
        ({"idle": "0 seconds"}, "idle='0 seconds' must be more than nothing"),
        ({"idle": "3 seconds"}, "needs the length of its ticks"),
    ],
)
def test_faults_of_keywords_are_told_at_once(options, message):
    with pytest.raises(cep.PatternError, match=message):
        cep.stream(PAIRS, EVENTS, **options)


def test_an_unknown_keyword_names_the_class_and_the_nearest():
    with pytest.raises(TypeError, match=r"Stream\(\) got an unexpected keyword argument 'latenes'; did you mean 'lateness'"):
        cep.stream(PAIRS, EVENTS, latenes=3)


def test_a_match_that_was_taken_rules_out_later_ones():
    crossed = pa.table({"ts": [1, 2, 3, 4, 5, 6], "type": list("AABBAB"), "k": [1, 2, 1, 2, 3, 3]}, EVENTS)
    live = cep.stream(PAIRS, EVENTS, after_match="skip_past_last")
    given = [live.push(crossed.slice(row, 1)) for row in range(6)]
    assert [each.num_rows for each in given] == [0, 0, 1, 0, 0, 1]
    assert pa.concat_tables(given) == cep.match(crossed, PAIRS, after_match="skip_past_last")


def test_text_may_come_in_any_encoding_and_old_values_are_given_up():
    small = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema({"ts": pa.int64(), "type": pa.string_view(), "k": pa.int64(), "s": small})
    live = cep.stream("PATTERN SEQ(A a, B b) WITHIN 50", schema, partition_by="s")
    found, sizes = 0, []
    for time in range(400):
        # a key for each two events: more than codes of eight bits can tell apart
        events = pa.table({"ts": [time], "type": ["AB"[time % 2]], "k": [1], "s": pa.array([f"{time // 2:099}"]).dictionary_encode()})
        found += live.push(events).num_rows
        sizes.append(len(live.save()))
    assert found == 200
    assert live.kept_events <= 51
    assert max(sizes[200:]) < 1.2 * max(sizes[:200])


def test_what_is_kept_of_a_push_does_not_hold_all_of_it():
    rows = 10_000
    keys = pa.array(["x", "y"] * (rows // 2)).dictionary_encode()
    events = pa.table({"ts": range(rows), "k": keys, "x": pa.array(range(rows), pa.float64())})
    live = cep.stream("PATTERN SEQ(a, b) WHERE strict_contiguity { [k] AND a.x < b.x } WITHIN 9", events.schema)
    live.push(events)
    assert 0 < live.kept_events <= 10
    assert live._state.events.get_total_buffer_size() < rows


def test_of_a_large_push_what_no_variable_binds_is_left_out_and_windows_give_up_the_rest(monkeypatch):
    monkeypatch.setattr(steps, "_LARGE", 9)
    monkeypatch.setattr(decisive, "_FEWEST", 0)
    live = cep.stream("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 50", EVENTS)
    assert live.push(pa.table({"ts": range(20), "type": list("AXBXX") * 4, "k": [1] * 20}, EVENTS)).num_rows == 4
    assert live.kept_events == 8
    assert live._state.tags is not None
    with patch.object(steps, "keep_rows", side_effect=AssertionError("labelled twice")):
        # few events of this push can be bound
        few = pa.table({"ts": range(20), "type": list("XXXXXXXXXA") * 2, "k": [1] * 20}, EVENTS)
        cep.stream("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 50", EVENTS).push(few)
    # a small push looks for the runs that are open
    assert live.push(pa.table({"ts": [21], "type": ["A"], "k": [1]}, EVENTS)).num_rows == 0
    assert live.kept_events == 1
