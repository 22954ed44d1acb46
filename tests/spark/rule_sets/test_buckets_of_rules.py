"""The buckets of a rule set have, for each rule, the matches of a batch over the events that were not late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import EventError
from gpu_cep.live.plans import Arrival
from gpu_cep.rule_sets.rules import as_rules
from gpu_cep.rule_sets.tables import join_results, with_late_of_no_pattern
from gpu_cep_spark.rule_sets import streaming
from gpu_cep_spark.rule_sets.streaming import StreamedRule, work_of_rules
from gpu_cep_spark.streaming import packing as live_packing
from gpu_cep_spark.streaming import rule_states, runs
from gpu_cep_spark.streaming import state as live_state
from gpu_cep_spark.streaming.state import TICKS
from gpu_cep_spark.tasks.results import as_promised
from tests.effort import examples
from tests.spark.samples import as_set
from tests.spark.streaming.buckets import Operator
from tests.spark.streaming.test_buckets import FOR_EVER, INSTANT, SECOND, START, asked, certain_of, in_tasks

SCHEMA = pa.schema({"ts": INSTANT, "type": pa.string(), "k": pa.int64(), "j": pa.int64(), "x": pa.int64()})
WINDOWS = ("1 second", "4 seconds", "9 seconds")
# What each rule of a drawn set is one of; all have the same columns.
QUERIES = (
    "PATTERN SEQ({} a, {} b) WHERE [k] AND b.x > a.x WITHIN {} RETURN a.x AS x, b.ts AS at",
    "PATTERN SEQ({} a, {} b) WHERE [j] WITHIN {} RETURN a.x AS x, b.ts AS at",
    "PATTERN SEQ({} a, {} b) WHERE [k] AND [j] WITHIN {} RETURN a.x AS x, b.ts AS at",
    "PATTERN SEQ({} a, {} b+) WHERE [k] WITHIN {} RETURN a.x AS x, last(b.ts) AS at",
    "PATTERN SEQ({} a, {} b) WHERE partition_contiguity {{ [k] }} WITHIN {} RETURN a.x AS x, b.ts AS at",
    "PATTERN SEQ({} a, NOT(C c), {} b) WHERE [k] WITHIN {} RETURN a.x AS x, b.ts AS at",
    "PATTERN SEQ({} a, {} b, NOT(C c)) WHERE [k] WITHIN {} RETURN a.x AS x, b.ts AS at",
    "PATTERN SEQ({} a, {} b) WITHIN {} RETURN a.x AS x, b.ts AS at",
    "PATTERN SEQ(a, {} b) WHERE skip_till_any_match {{ a.x < b.x AND b.type <> '{}' }} WITHIN {} RETURN a.x AS x, b.ts AS at",
)
COUNTED = "PATTERN SEQ({} a, {} b) WITHIN 4 EVENTS RETURN a.x AS x, b.ts AS at"
KEYED = "PARTITION BY k "
SILENCES = st.sampled_from(("1 second", "2 seconds", "1 day"))
OPTIONS = ({}, {}, {"after_match": "skip_past_last"}, {"after_match": "skip_to_next"}, {"order_by": "x"})


pytestmark = pytest.mark.usefixtures("few_buckets", "decided_at_once")


def planned(rules: Mapping[str, Any], *, schema: pa.Schema = SCHEMA, **asked: Any) -> dict[str, StreamedRule]:
    """Rules as they are asked of a stream, but for what the DataFrame has to say."""
    arrival = Arrival(**{name: asked.pop(name) for name in ("late", "every", "emit", "time_to_live") if name in asked})
    return {name: streaming._plan_rule(name, rule, asked, schema, arrival) for name, rule in as_rules(rules).items()}


def operator_of(rules: Mapping[str, Any], delay: int = 0, **asked: Any) -> Operator:
    return Operator(work_of_rules(planned(rules, **asked), SCHEMA, 1)[0], delay)


@st.composite
def rule_sets(draw: st.DrawFn) -> dict[str, cep.Rule]:
    """A few rules, whose events are shared, or not, or only counted; often most of them are alike, and of keys that the result has."""
    found, keys, likely = (
        {},
        draw(st.sampled_from(("", KEYED))),
        draw(st.sampled_from(((*QUERIES, COUNTED), QUERIES[:1] + QUERIES[3:6], QUERIES[:1]))),
    )
    for number in range(draw(st.integers(1, 5))):
        query, types = draw(st.sampled_from(likely)), draw(st.lists(st.sampled_from("ABC"), min_size=2, max_size=2))
        text = keys + query.format(*types, draw(st.sampled_from(WINDOWS)))
        options = draw(st.sampled_from(OPTIONS))
        found[f"rule {number}"] = cep.Rule(text, options if query != COUNTED or keys else {})
    return found


@st.composite
def streams(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(0, 24))

    def some(values: Any) -> Any:
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    times = START + np.cumsum(np.array(some((0, 1, 1, 2, 5)), np.int64)) * SECOND
    rows = {"ts": pa.array(times, INSTANT), "type": some("ABCD"), "k": some((1, 2, None)), "j": some((1, 2)), "x": some(range(5))}
    return pa.table(rows, SCHEMA)


def batch_of(each: StreamedRule, events: pa.Table) -> pa.Table:
    """What a batch gives of a rule, among the columns that it reads, with ties as Spark orders them."""
    options, settings = each.query.options, each.query.settings
    own = events.select(each.query.events.names)
    if each.rule.live.sessions is not None:
        return certain_of(each.rule.live, own)[0]
    return cep.match(own, each.query.pattern, order_by=options.order_by, after_match=settings.after_match)


@examples(60, 400)
@given(rule_sets(), streams(), st.sampled_from(("drop", "rows")), st.data())
def test_each_rule_has_the_matches_of_a_batch(rules, events, late, data):
    counted = any(rule.pattern.startswith(COUNTED[:7]) and "EVENTS" in rule.pattern for rule in rules.values())
    every = data.draw(st.sampled_from((None, None, "2 seconds")), "every")
    emit = data.draw(st.sampled_from(("certain", "window")), "emit")
    given_rules = planned(rules, every=every, late=late, emit=emit, time_to_live=data.draw(SILENCES, "time to live"))
    work, _ = work_of_rules(given_rules, SCHEMA, data.draw(st.sampled_from((1, 2)), "partitions"))
    operator = Operator(work, delay=data.draw(st.sampled_from((0, 1_000, 3_000)), "delay"))
    order = data.draw(st.permutations(range(events.num_rows)) if data.draw(st.booleans()) else st.just(range(events.num_rows)), "order")
    told = events.take(pa.array(order, pa.int64()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=6), "cuts"))
    were_late = [operator.batch(*in_tasks(told.slice(low, high - low))) for low, high in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    operator.idle(FOR_EVER)
    in_time = np.concatenate(were_late) == 0
    assert operator.total("late") == np.count_nonzero(~in_time)
    assert operator.total("events") == np.count_nonzero(in_time)
    if counted and emit == "window":
        return
    on_time = told.filter(pa.array(in_time))
    expected = join_results({name: batch_of(each, on_time) for name, each in given_rules.items()})
    if late == "rows":
        expected = with_late_of_no_pattern(expected, told.filter(pa.array(~in_time)).cast(work.whole))
    assert as_set(operator.found) == as_set(pa.Table.from_batches([as_promised(expected, work.result)]))
    # a window of a number of events keeps those of the last one
    assert counted or operator.is_empty()


def told(*rows: tuple[int, str, int, int]) -> pa.Table:
    """Events of a second, a type, a key and an x each."""
    seconds, types, keys, values = zip(*rows, strict=True)
    times = pa.array(START + np.array(seconds) * SECOND, INSTANT)
    return pa.table({"ts": times, "type": types, "k": keys, "j": [0] * len(rows), "x": values}, SCHEMA)


def test_what_a_rule_has_given_up_does_not_come_back_with_what_others_keep():
    pairs = "PATTERN SEQ(A a, B b) WHERE [k]{} WITHIN 9 seconds RETURN a.x AS x, b.ts AS at"
    operator = operator_of({"any": pairs.format(""), "rising": pairs.format(" AND b.x > a.x")})
    # the first B decides one rule, of which the list keeps an A of another key, and not the other one, of which it keeps both
    operator.batch(told((0, "A", 9, 9), (0, "A", 1, 3), *((1, "B", key, 1) for key in (1, 2, 3, 4))))
    operator.batch(told((2, "D", 1, 1)))
    assert operator.found["pattern"].to_pylist() == ["any"]
    operator.batch(told((3, "B", 1, 2)))
    operator.batch(told((4, "B", 1, 4)))
    operator.idle(FOR_EVER)
    assert operator.found["pattern"].to_pylist() == ["any", "rising"]
    assert operator.is_empty()


PAIRS = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5 seconds RETURN a.x AS x, b.ts AS at"
RULES = {"near": PAIRS, "far": PAIRS.replace("5", "9"), "by j": PAIRS.replace("[k]", "[j]")}


def test_rules_with_timeouts_and_situations_have_events_in_common():
    rules = {
        "pairs": cep.Rule("PATTERN SEQ(A a, B b) WITHIN 5 seconds RETURN a.ts AS at", {"partition_by": "k"}),
        "far": cep.Rule("PATTERN SEQ(A a, B b) WITHIN 9 seconds RETURN a.ts AS at", {"partition_by": "k"}),
    }
    operator = operator_of(rules, timeouts=True)
    operator.batch(told((0, "A", 1, 3), (6, "B", 1, 1), (30, "D", 2, 1)))
    operator.idle(FOR_EVER)
    assert sorted(operator.found.select(["pattern", "kind"]).to_pylist(), key=str) == [
        {"pattern": "far", "kind": "match"},
        {"pattern": "pairs", "kind": "timeout"},
    ]


def test_a_bucket_waits_no_longer_than_its_rules():
    levels = "DEFINE H AS type = 'A', L AS type = 'B' PATTERN H meets L WITHIN 5 seconds RETURN count(H.x) AS n"
    pairs = "PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 5 seconds RETURN b.ts AS detected_at, count(a.x) AS n"
    operator = operator_of({"levels": levels, "pairs": pairs}, partition_by="k")
    operator.batch(told((0, "A", 1, 1), (1, "B", 1, 1), (2, "A", 1, 1)))
    operator.idle(START // TICKS + 60_000)
    assert sorted(operator.found["pattern"].to_pylist()) == ["levels", "pairs"]
    # the last event of a key is kept, which says what has begun; nothing comes of it by time alone
    assert any(bucket.chunks.values for bucket in operator.buckets.values())
    assert not any(bucket.timers for bucket in operator.buckets.values())


def test_a_rule_reads_the_events_of_its_own_window():
    operator = operator_of({"near": PAIRS.replace("5", "1"), "far": PAIRS.replace("5", "900")})
    # the list is not written anew, since one rule needs all of it
    with patch.object(live_state, "MOST_CHUNKS", 64):
        for second in range(0, 60, 2):
            operator.batch(told((second, "A", 1, second)))
    with patch.object(runs, "certain_matches", wraps=runs.certain_matches) as ran:
        operator.idle(START // TICKS + 60_000)
    read = {call.args[0].plan.query.window.length: len(call.args[1].times) for call in ran.call_args_list}
    assert read[900 * SECOND] == 30
    assert read.get(SECOND, 0) <= 2


def test_an_event_before_those_that_a_rule_keeps_may_still_come():
    operator = operator_of({"near": PAIRS, "far": PAIRS.replace("5", "9")}, delay=3_000)
    operator.batch(told((10, "A", 1, 1)))
    operator.batch(told((10, "D", 1, 1)))
    operator.batch(told((8, "A", 1, 2), (9, "B", 1, 3)))
    operator.idle(FOR_EVER)
    assert operator.found.select(["pattern", "x"]).to_pylist() == [{"pattern": "far", "x": 2}, {"pattern": "near", "x": 2}]
    assert operator.total("late") == 0


def test_a_group_keeps_what_any_of_its_rules_binds():
    operator = operator_of({"a": PAIRS.replace("A a, B b", "C a, D b"), "b": PAIRS, "by j": RULES["by j"]})
    operator.batch(told((0, "A", 1, 1), (1, "C", 1, 2), (2, "B", 1, 3), (3, "D", 1, 4)))
    operator.idle(FOR_EVER)
    assert sorted(operator.found["pattern"].to_pylist()) == ["a", "b", "by j"]


def test_another_rule_set_is_refused_by_the_names_of_its_rules():
    operator = operator_of(RULES)
    operator.batch(told((0, "A", 1, 1)))
    own = "start this query with a checkpointLocation of its own"
    for others, message in (
        ({**RULES, "more": PAIRS}, "belongs to other rules: 'more' is new; "),
        ({name: RULES[name] for name in ("near", "by j")}, "belongs to other rules: 'far' is not there any more; "),
        ({**RULES, "far": PAIRS.replace("5", "8")}, "belongs to other rules: 'far' was another query; "),
        ({**RULES, "by j": PAIRS.replace("[k]", "[k] AND [j]")}, "belongs to other rules: 'by j' was another query; "),
    ):
        operator.work = operator_of(others).work
        with pytest.raises(EventError, match=message + own):
            operator.batch(told((1, "B", 1, 1)))
    operator.work = operator_of(dict(reversed(RULES.items())), every="1 second").work
    operator.batch(told((1, "B", 1, 1)))
    operator.idle(FOR_EVER)
    assert sorted(operator.found["pattern"].to_pylist()) == ["by j", "far", "near"]


TREND = f"{KEYED}PATTERN SEQ(A a, B b+) WITHIN 5 EVENTS RETURN a.x AS x, last(b.ts) AS at"
KEYED_RULES = {"trend": TREND, "near": KEYED + PAIRS}


def test_a_key_of_a_rule_is_given_up_once_it_was_silent_for_its_time_to_live():
    operator = operator_of(KEYED_RULES, time_to_live="14 seconds")
    operator.batch(told((0, "A", 1, 1), (1, "B", 1, 2)))
    closed = START // TICKS + 15_000
    operator.idle(closed - 5_000)
    assert operator.found["pattern"].to_pylist() == ["near"]
    calls = len(operator.frames)
    operator.idle(closed - 1)
    assert len(operator.frames) == calls, "nothing can be certain yet"
    operator.idle(closed)
    assert operator.found["pattern"].to_pylist() == ["near", "trend"]
    assert operator.total("expired") == 1
    assert operator.is_empty()


def test_another_time_to_live_makes_other_rules_of_those_that_have_a_use_for_it():
    operator = operator_of(KEYED_RULES, time_to_live="14 seconds")
    operator.batch(told((0, "A", 1, 1)))
    operator.work = operator_of(KEYED_RULES, time_to_live="15 seconds").work
    with pytest.raises(EventError, match="belongs to other rules: 'trend' was another query; "):
        operator.batch(told((1, "B", 1, 1)))


def test_a_checkpoint_that_does_not_say_when_keys_are_given_up_is_read():
    operator = operator_of(RULES)
    told_before = rule_states._TABLE.remove(rule_states._TABLE.names.index("closing"))
    with patch.object(rule_states, "_TABLE", told_before):
        operator.batch(told((0, "A", 1, 1)))
    operator.batch(told((1, "B", 1, 1)))
    operator.idle(FOR_EVER)
    assert sorted(operator.found["pattern"].to_pylist()) == ["by j", "far", "near"]


def test_a_rule_set_does_not_go_on_with_the_state_of_one_pattern_nor_the_other_way_round():
    one, of_rules = asked(PAIRS, SCHEMA)[1], operator_of({"near": PAIRS}).work
    for before, after, message in ((one, of_rules, "one pattern, and no rule set; "), (of_rules, one, "the patterns of a rule set; ")):
        operator = Operator(before)
        operator.batch(told((0, "A", 1, 1)))
        operator.work = after
        with pytest.raises(EventError, match=f"the checkpoint belongs to {message}"):
            operator.batch(told((1, "B", 1, 1)))


def test_another_rule_set_is_refused_also_if_no_bucket_with_events_is_called():
    operator = operator_of({"counted": COUNTED.format("A", "B"), "near": PAIRS})
    operator.batch(told((0, "A", 1, 1)))
    operator.batch(told((1, "C", 1, 1)))
    operator.idle(START // TICKS + 60_000)
    kept = {number for number, bucket in operator.buckets.items() if not bucket.is_empty()}
    assert kept, "a window of a number of events keeps some"
    assert not any(bucket.timers for bucket in operator.buckets.values())
    others = operator_of({"near": PAIRS})
    others.batch(told((70, "A", 1, 1)))
    assert not kept & others.buckets.keys(), "Spark calls none of those that have the events"
    operator.work = others.work
    with pytest.raises(EventError, match="belongs to other rules: 'counted' is not there any more; "):
        operator.batch(told((70, "A", 1, 1)))


def test_a_rule_set_that_keeps_no_event_has_its_checkpoint_nevertheless():
    operator = operator_of(RULES)
    operator.batch(told((0, "A", 1, 1)))
    operator.idle(FOR_EVER)
    assert operator.is_empty()
    operator.work = operator_of({**RULES, "more": PAIRS}).work
    with pytest.raises(EventError, match="belongs to other rules: 'more' is new; "):
        operator.batch(told((1, "B", 1, 1)))
    operator.work = asked(PAIRS, SCHEMA)[1]
    with pytest.raises(EventError, match="belongs to the patterns of a rule set; "):
        operator.batch(told((1, "B", 1, 1)))


def test_a_checkpoint_that_says_nothing_of_its_rules_is_that_of_those_that_go_on_with_it():
    operator = operator_of(RULES)
    operator.batch(told((0, "A", 1, 1)))
    # an earlier release wrote nothing but buckets with events
    operator.owner.about.clear()
    operator.batch(told((1, "B", 1, 1)))
    operator.idle(FOR_EVER)
    assert sorted(operator.found["pattern"].to_pylist()) == ["by j", "far", "near"]
    operator.work = operator_of({"near": PAIRS}).work
    with pytest.raises(EventError, match="belongs to other rules: 'by j' is not there any more, 'far' is not there any more; "):
        operator.batch(told((2, "B", 1, 1)))


def test_a_rule_that_fails_is_named():
    overflow = PAIRS.replace("[k]", "[k] AND a.x + b.x > 0")
    operator = operator_of({**RULES, "sums": overflow})
    operator.batch(told((0, "A", 1, 2**62), (1, "B", 1, 2**62)))
    with pytest.raises(EventError, match=r"pattern 'sums': .*overflow"):
        operator.idle(FOR_EVER)
    operator = operator_of(RULES, late="error")
    operator.batch(told((5, "A", 1, 1)))
    with pytest.raises(EventError, match=r"^1 event is late: "):
        operator.batch(told((0, "A", 1, 1)))


def test_matches_of_rules_are_numbered_on_in_a_bucket_that_was_empty():
    rules = {"near": "PATTERN SEQ(A a, B b) WITHIN 5 seconds", "far": "PATTERN SEQ(A a, B b) WITHIN 9 seconds"}
    operator = operator_of(rules, output="events", partition_by="k")
    for begin in (0, 100):
        operator.batch(told((begin, "A", 1, 1), (begin + 1, "B", 1, 1)))
        operator.idle(START // TICKS + 1_000 * begin + 50_000)
    found = operator.found.to_pylist()
    assert [row["match_id"] for row in found if row["pattern"] == "far"] == [0, 0, 1, 1]


@pytest.mark.parametrize("queries", [[1], [0, 1, 3], [10, 0, 0, 8]])
def test_each_bucket_belongs_to_one_group(queries: list[int]) -> None:
    buckets = live_packing.buckets_of_groups(3, queries)
    every = np.concatenate(buckets).tolist()
    assert len(set(every)) == len(every)
    for number, own in enumerate(buckets):
        assert len(own) == (1 if not queries[number] else 3 * max(1, 2 // queries[number]))
        assert {live_packing.group_of_bucket(bucket, 3, queries) for bucket in own.tolist()} == {number}
    assert live_packing.group_of_bucket(max(every) + 1, 3, queries) == (0 if len(queries) == 1 else None)
