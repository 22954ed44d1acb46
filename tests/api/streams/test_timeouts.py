"""Timeouts beside matches: each start has either matches or one timeout, as the definition says."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.lowering.jump_tables import JumpIndexes
from gpu_cep.engine.matchers.automaton import longest_runs
from gpu_cep.errors import UnsupportedError
from gpu_cep.lang.parser import parse
from gpu_cep.oracle.options import EventOptions
from gpu_cep.oracle.timeouts import timeouts
from tests.api.streams.test_stream import AFTER_MATCH, in_numbers, live_of, over_time, ticks_of
from tests.conformance.expectation import LIMIT, answered, expected
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.effort import examples
from tests.results import matches_of

STRATEGIES = ("skip_till_next_match", "partition_contiguity", "strict_contiguity")


def by_definition(case: Case) -> list[tuple[str, object, list[str]]]:
    """What the oracle says of a case: a row for each match, then one for each timeout."""
    options = {name: value for name, value in case.options.items() if name != "after_match"}
    try:
        found = timeouts(parse(case.text), case.events, EventOptions(**options), limit=LIMIT)
    except UnsupportedError:
        assume(False)
        raise
    matches = [("match", match, []) for match in expected(case)]
    return [*matches, *(("timeout", each.prefix, list(each.missing)) for each in found)]


def rows_of(found: pa.Table) -> list[tuple[str, object, list[str]]]:
    bindings = matches_of(found.drop_columns(["kind", "detected_at", "missing"]))
    return list(zip(found.column("kind").to_pylist(), bindings, found.column("missing").to_pylist(), strict=True))


def in_time(case: Case) -> Case:
    """The same question with a window of time."""
    return over_time(Case(case.text.replace(" EVENTS", ""), case.events, {"partition_by": ["k"], **case.options}))


@examples(80, 400)
@given(whole_language(max_size=10, strategies=STRATEGIES))
def test_each_start_has_matches_or_a_timeout(case):
    case = in_time(case)
    assert rows_of(answered(case, output="indices", timeouts=True)) == by_definition(case)


@examples(40, 200)
@given(trend_cases(strategies=STRATEGIES))
def test_timeouts_tell_strategies_apart(case):
    case = in_time(case)
    assert rows_of(answered(case, output="indices", timeouts=True)) == by_definition(case)


@examples(40, 300)
@given(trend_cases(strategies=STRATEGIES))
def test_searches_that_jump_find_the_same(case):
    case = in_time(case)
    with patch.object(longest_runs, "FIRST_STEPS", 1), patch.object(JumpIndexes, "skipping_pays", lambda *arguments: True):
        assert rows_of(answered(case, output="indices", timeouts=True)) == by_definition(case)


def test_steps_do_not_grow_with_events_that_conditions_rule_out():
    """The one C lies far above all others, so that each search passes over thousands of them."""
    size = 40_000
    events = pa.table({"ts": range(size), "type": ["A", "C"] * (size // 2), "x": [*range(size - 1), 10**6]})
    profile = cep.Profile()
    query = f"PATTERN SEQ(A a, C c, C d) WHERE c.x > a.x + 500000 WITHIN {size // 4}"
    found = cep.match(events, query, timeouts=True, profile=profile, threads=1)
    starts = size // 2
    assert found.num_rows == starts
    # a window has 5,000 events of C
    assert profile.counts["steps"] < 100 * starts


@examples(60, 300)
@given(whole_language(max_size=12, strategies=STRATEGIES, after_match=AFTER_MATCH), st.data())
def test_a_stream_has_the_timeouts_of_a_batch_each_when_its_window_is_over(case, data):
    case = in_time(case)
    by_definition(case)  # not too many
    unit = "" if in_numbers(case) else " seconds"
    lateness = data.draw(st.sampled_from((0, 1, 3)), "lateness")
    live = live_of(case, timeouts=True, lateness=f"{lateness}{unit}")
    rows = np.argsort(ticks_of(case.events), kind="stable")
    if not data.draw(st.booleans(), "in order"):
        data.draw(st.randoms(use_true_random=False), "order").shuffle(rows)
    events, late, tables = case.events.take(rows), np.zeros(len(rows), np.bool_), []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5), "cuts"))
    for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        part, before = events.slice(low, high - low), live.clock.watermark
        late[low:high] = False if before is None else ticks_of(part) <= before
        tables.append(live.push(part))
        detected = ticks_of(tables[-1].select(["detected_at"]).rename_columns(["ts"]))
        assert (detected <= (live.clock.watermark or 0)).all()
        assert before is None or case.options["after_match"] == "skip_past_last" or (detected > before).all()
        live = cep.stream.load(live.save())
    on_time = np.flatnonzero(~late)
    batch = cep.match(events.take(on_time), case.text, output="indices", timeouts=True, **case.options)
    numbered = [{name: tuple(on_time[list(own)].tolist()) for name, own in match.items()} for _, match, _ in rows_of(batch)]
    wanted = [(kind, match, missing) for (kind, _, missing), match in zip(rows_of(batch), numbered, strict=True)]
    found = [row for table in [*tables, live.finish()] for row in rows_of(table)]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


EVENTS = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64()})
ORDERS = pa.table({"ts": [1, 2, 3, 9], "type": ["Order", "Order", "Paid", "Order"], "k": [1, 2, 1, 3]}, EVENTS)
PAID = "PATTERN SEQ(Order o, Paid p) WHERE [k] WITHIN 5 RETURN o.k AS k, p.ts AS paid"


def test_a_timeout_has_what_was_bound_and_the_names_of_what_is_missing():
    assert cep.match(ORDERS, PAID, timeouts=True).to_pylist() == [
        {"kind": "match", "match_start": 1, "match_end": 3, "k": 1, "paid": 3, "detected_at": 3, "missing": []},
        {"kind": "timeout", "match_start": 2, "match_end": 2, "k": 2, "paid": None, "detected_at": 7, "missing": ["p"]},
        {"kind": "timeout", "match_start": 9, "match_end": 9, "k": 3, "paid": None, "detected_at": 14, "missing": ["p"]},
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("key", [pa.array([None, None], pa.int64()), pa.array([float("nan")] * 2), pa.array([None, None], pa.float64())])
def test_a_key_that_equals_none_goes_with_no_other_event(strategy, key):
    events = pa.table({"ts": [1, 2], "type": ["Order", "Paid"], "k": key})
    found = cep.match(events, PAID, strategy=strategy, timeouts=True)
    assert found.select(["kind", "paid", "missing"]).to_pylist() == [{"kind": "timeout", "paid": None, "missing": ["p"]}]
    live = cep.stream(PAID, events.schema, strategy=strategy, timeouts=True)
    assert live.push(events).num_rows == 0
    assert live.finish().select(["kind", "paid", "missing"]) == found.select(["kind", "paid", "missing"])


def test_timeouts_beside_late_events():
    live = cep.stream(PAID, EVENTS, timeouts=True, late="rows")
    assert [live.push(ORDERS.slice(row, 1)).column("kind").to_pylist() for row in (0, 1, 2)] == [[], [], ["match"]]
    found = live.push(ORDERS.take([3, 0]))
    assert found.schema == live.schema
    assert found.drop_columns(["match_end", "paid", "detected_at"]).to_pylist() == [
        {"kind": "late", "match_start": None, "k": None, "missing": None, "event": {"ts": 1, "type": "Order", "k": 1}},
        {"kind": "timeout", "match_start": 2, "k": 2, "missing": ["p"], "event": None},
    ]
    assert live.finish().column("kind").to_pylist() == ["timeout"]
    assert (live.clock.reported, live.clock.late) == (1, 1)


def test_batches_that_come_one_after_the_other_have_timeouts():
    found = cep.match(ORDERS.to_reader(1), PAID, timeouts=True, result="reader").read_all()
    assert sorted(found.column("kind").to_pylist()) == ["match", "timeout", "timeout"]
    assert cep.match(ORDERS.to_reader(1), PAID, timeouts=True) == cep.match(ORDERS, PAID, timeouts=True)
    assert cep.match(ORDERS, PAID, timeouts=True, complete_until=7).column("match_start").to_pylist() == [1, 2]
    assert cep.match(ORDERS, PAID, timeouts=True, result="reader").read_all() == cep.match(ORDERS, PAID, timeouts=True)


def test_matches_of_other_keys_leave_those_of_a_key_alone():
    """A result of two kinds begins with its kind, and its keys stand behind that."""
    events = pa.table({"ts": [9, 11, 13, 16], "type": ["C", "A", "A", "A"], "k": ["a", "zz", "a", "zz"]})
    query = "PATTERN SEQ(a, b) WHERE b.type = 'A' WITHIN 5"
    options = {"partition_by": "k", "after_match": "skip_past_last", "timeouts": True}
    batch = cep.match(events, query, **options)
    assert batch.column("kind").to_pylist() == ["match", "match", "timeout", "timeout"]
    live = cep.stream(query, events.schema, lateness=40, **options)
    assert pa.concat_tables([live.push(events), live.finish()]).equals(batch)
    assert cep.match(events, query, result="reader", **options).read_all().equals(batch)
    assert cep.match(events, query, complete_until=100, **options).equals(batch)


@pytest.mark.parametrize("after_match", sorted(set(AFTER_MATCH)))
def test_files_have_the_timeouts_of_a_table_in_its_order(tmp_path, after_match):
    size = 40_000
    types, keys = ["A", "C", "B", "C", "C"] * (size // 5), ["z", "x", "y", "x"] * (size // 4)
    events = pa.table({"ts": np.arange(size) // 2, "type": types, "k": keys})
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=size // 8)
    options = {"partition_by": "k", "after_match": after_match, "timeouts": True}
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    assert cep.match(tmp_path / "events.parquet", query, memory="1MB", **options).equals(cep.match(events, query, **options))


def test_a_window_that_ends_behind_all_times_is_over_with_the_last_one():
    events = pa.table({"ts": pa.array([1, 120], pa.int8()), "type": ["Order", "Order"], "k": [1, 2]})
    assert cep.match(events, "PATTERN SEQ(Order o, Paid p) WITHIN 50", timeouts=True).column("detected_at").to_pylist() == [51, 127]
    last = pa.table({"ts": pa.array([2**63 - 5], pa.int64()), "type": ["Order"], "k": [1]})
    assert cep.match(last, PAID, timeouts=True).column("detected_at").to_pylist() == [2**63 - 1]


def test_bounds_hold_for_timeouts():
    with pytest.raises(cep.MatchLimitExceeded, match="max_matches=1"):
        cep.match(ORDERS, PAID, timeouts=True, max_matches=1)
    assert cep.match(ORDERS, PAID, timeouts=True, max_matches=2).num_rows == 3


ANY, ROBUST = "skip_till_any_match", "robust_skip_till_next_match"


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        (PAID, {"strategy": ANY}, f"timeouts=True is not supported under {ANY}; supported: skip_till_next_match, partition_contiguity"),
        (PAID, {"strategy": ROBUST}, f"timeouts=True is not supported under {ROBUST}; supported: skip_till_next_match"),
        ("PATTERN SEQ(A a, B b)", {}, "timeouts=True needs a window of time"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 EVENTS", {}, "timeouts=True needs a window of time"),
        (PAID, {"output": "count"}, "timeouts=True is not supported with output='count'; supported: matches, indices"),
        (PAID, {"algorithm": "brute_force"}, "timeouts=True is not supported with algorithm='brute_force'"),
        ("DEFINE A AS k > 1, B AS k < 1 PATTERN A meets B WITHIN 5", {}, "timeouts=True is not supported for situations"),
    ],
)
def test_what_has_no_timeouts_is_refused_by_name(pattern, options, message):
    with pytest.raises(UnsupportedError, match=message):
        cep.match(ORDERS, pattern, timeouts=True, **options)
    with pytest.raises(UnsupportedError):
        cep.stream(pattern, EVENTS, timeouts=True, **options)


def test_timeouts_are_asked_for_by_true():
    with pytest.raises(cep.PatternError, match="timeouts must be True or False, not 'yes'"):
        cep.match(ORDERS, PAID, timeouts="yes")
