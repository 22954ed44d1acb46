"""The buckets of a rule set have, for each rule, the matches of a batch over the events that were not late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.streaming import decisive
from gpu_cep.live.plans import Arrival
from gpu_cep.rule_sets.rules import as_rules
from gpu_cep.rule_sets.tables import join_results, with_late_of_no_pattern
from gpu_cep_spark.rule_sets import streaming
from gpu_cep_spark.rule_sets.streaming import StreamedRule, work_of_rules
from gpu_cep_spark.streaming import packing as live_packing
from gpu_cep_spark.streaming import state as live_state
from gpu_cep_spark.tasks.results import as_promised
from tests.effort import examples
from tests.spark.samples import as_set
from tests.spark.streaming.buckets import Operator
from tests.spark.streaming.test_buckets import FOR_EVER, INSTANT, SECOND, START, in_tasks

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
OPTIONS = ({}, {}, {"after_match": "skip_past_last"}, {"after_match": "skip_to_next"}, {"order_by": "x"})


@pytest.fixture(autouse=True, scope="module")
def few_buckets() -> Iterator[None]:
    """Two buckets for each group, whose chunks are joined soon, so that lists are written anew, and decided events are given up."""
    packing, chunks = patch.object(live_packing, "BUCKETS_PER_PARTITION", 2), patch.object(live_state, "MOST_CHUNKS", 3)
    with packing, chunks, patch.object(decisive, "_FEWEST", 0):
        yield


def planned(rules: Mapping[str, Any], *, schema: pa.Schema = SCHEMA, **asked: Any) -> dict[str, StreamedRule]:
    """Rules as they are asked of a stream, but for what the DataFrame has to say."""
    arrival = Arrival(**{name: asked.pop(name) for name in ("late", "every", "emit") if name in asked})
    return {name: streaming._plan_rule(name, rule, asked, schema, arrival) for name, rule in as_rules(rules).items()}


def operator_of(rules: Mapping[str, Any], delay: int = 0, **asked: Any) -> Operator:
    return Operator(work_of_rules(planned(rules, **asked), SCHEMA, 1)[0], delay)


@st.composite
def rule_sets(draw: st.DrawFn) -> dict[str, cep.Rule]:
    """A few rules, whose events are shared, or not, or only counted."""
    found = {}
    for number in range(draw(st.integers(1, 5))):
        query, types = draw(st.sampled_from((*QUERIES, COUNTED))), draw(st.lists(st.sampled_from("ABC"), min_size=2, max_size=2))
        text = query.format(*types, draw(st.sampled_from(WINDOWS)))
        options = draw(st.sampled_from(OPTIONS))
        found[f"rule {number}"] = cep.Rule(text, options if query != COUNTED else {})
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
    """What a batch gives of a rule: of its own columns, with its ties as Spark orders them."""
    live = each.rule.live
    own = events.select(each.query.events.names)
    asked = {name: getattr(each.query.options, name) for name in ("order_by", "partition_by", "time_unit")}
    found = [cep.match(own, each.query.pattern, after_match=kind.settings.after_match, timeouts=False, **asked) for kind in (live.plan,)]
    return found[0]


@examples(60, 400)
@given(rule_sets(), streams(), st.sampled_from(("drop", "rows")), st.data())
def test_each_rule_has_the_matches_of_a_batch(rules, events, late, data):
    counted = any("EVENTS" in rule.pattern for rule in rules.values())
    every = data.draw(st.sampled_from((None, None, "2 seconds")), "every")
    emit = data.draw(st.sampled_from(("certain", "window")), "emit")
    given_rules = planned(rules, every=every, late=late, emit=emit)
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
