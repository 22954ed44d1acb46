"""Run the engine over the events of a bucket that were in time, once for each of its queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.ticks import Tick, following
from gpu_cep.engine.streaming.event_tags import Tags
from gpu_cep.engine.streaming.kept_events import add_events
from gpu_cep.engine.streaming.sessions import first_closing
from gpu_cep.engine.streaming.state import StreamState
from gpu_cep.live.clocks import is_due, times_of
from gpu_cep.live.queries import LiveQuery
from gpu_cep.live.steps import bindable_events, certain_matches, give_up_decided, hold_events
from gpu_cep.rule_sets.lookups import look_up
from gpu_cep.rule_sets.rules import naming
from gpu_cep.rule_sets.tables import join_results
from gpu_cep_spark.streaming.marks import in_order_of_ties, marks_after, read_marks
from gpu_cep_spark.streaming.rule_states import RuleState
from gpu_cep_spark.streaming.state import Bucket, Listed, Numbers, Ran, Store, is_settled, read_events
from gpu_cep_spark.streaming.work import LiveGroup, LiveRule
from gpu_cep_spark.tasks.worker import as_events


class OwnEvents(NamedTuple):
    """The events of a list that a query may bind: their rows in the list, and their tags, if any."""

    events: pa.Table
    rows: Numbers
    tags: Tags | None


class _Found(NamedTuple):
    """What a run of a query leaves: its state, with the events that it keeps, and its matches."""

    state: StreamState
    matches: pa.Table


def run_bucket(group: LiveGroup, bucket: Bucket, store: Store) -> Ran:
    """Run the engine over the events of earlier batches, if it is due; those of this batch are behind the watermark."""
    if not is_due(group.first.live, bucket.clock):
        return Ran(bucket.rules)
    each = list(zip(group.rules, bucket.rules, strict=True))
    if not any(bucket.waits(known) and not is_settled(rule.live, known, bucket.latest) for rule, known in each):
        return Ran(tuple(map(_answered, bucket.rules)))
    listed = read_events(group, store) if bucket.rows else None
    return _run_shared(group, bucket, listed) if group.is_shared else _run_one(group, bucket, store, listed)


def _answered(known: RuleState) -> RuleState:
    """Return what is known of a query of which nothing becomes certain up to the watermark."""
    clock = known.state.clock
    return replace(known, state=replace(known.state, clock=replace(clock, answered=clock.watermark)))


def _run_one(group: LiveGroup, bucket: Bucket, store: Store, listed: Listed | None) -> Ran:
    """Run the only query of a group over all events of the list."""
    rule, (known,), state = group.first, bucket.rules, bucket.rules[0].state
    if listed is not None:
        events, places = _in_order(group, store, as_events(listed.table, group.schema, group.codes), listed.numbers)
        # text that came as codes is encoded
        state = hold_events(rule.live, replace(state, events=events.slice(0, 0)), events, places)
    ran, found = _run(rule, state)
    # there is no run for a row pattern without rows
    marks = None if rule.live.rows is None or listed is None else marks_after(listed.numbers, ran.events, ran.numbers)
    known = replace(
        known, state=_emptied(rule.live, ran), closing=_closing(rule.live, ran), open=known.open if marks is None else marks.open
    )
    named = found if rule.name is None else join_results({rule.name: found})
    return Ran((known,), ran.numbers, named, listed, marks)


def _run_shared(group: LiveGroup, bucket: Bucket, listed: Listed | None) -> Ran:
    """Run each query of a group over the events that it may bind of those that it needs."""
    own = {} if listed is None else dict(shared_events(group, listed.table))
    numbers, times = (np.zeros(0, np.int64),) * 2 if listed is None else (listed.numbers, _times(group, listed.table))
    states, found, kept = [], {}, []
    for place, (rule, known) in enumerate(zip(group.rules, bucket.rules, strict=True)):
        assert rule.name is not None, "those that share events have names"
        given = own.get(rule.name)
        if given is not None and listed is not None:
            given = _still_needed(given, listed.need(place, given.rows), times, known.since)
        if given is None and not known.holds:
            states.append(replace(_answered(known), since=_needed_from(known, known.state)))
            kept.append(numbers[:0])
            continue
        state = known.state
        if given is not None:
            state = replace(state, events=given.events.slice(0, 0))
            state = add_events(state, given.events, times[given.rows], numbers[given.rows], given.tags)
        ran, matches = _run(rule, state)
        states.append(replace(known, state=_emptied(rule.live, ran), since=_needed_from(known, ran)))
        kept.append(ran.numbers)
        if matches.num_rows:
            found[rule.name] = matches
    joined = join_results(found) if found else None
    return Ran(tuple(states), np.unique(np.concatenate(kept)), joined, listed, kept_by=tuple(kept))


def shared_events(group: LiveGroup, table: pa.Table) -> Iterator[tuple[str, OwnEvents]]:
    """Yield the events of a list that each query of a rule set may bind, by its name; those without any are left out."""
    events = _encoded(as_events(table, group.schema, group.codes))
    live = {name: rule.live for name, rule in group.by_name.items()}
    for name, chosen in look_up(group.lookups, live, events):
        own = events.select(live[name].schema.names)
        given = own if chosen is None else own.take(pa.array(chosen))
        with naming(name):
            bound, tags = bindable_events(live[name], given)
        if len(bound):
            rows = bound if chosen is None else chosen[bound]
            yield name, OwnEvents(given.take(pa.array(bound)), rows.astype(np.int64), tags)


def _encoded(events: pa.Table) -> pa.Table:
    """Return events with text as codes, so that each value is looked at once, and not once for each query."""
    for number, kind in enumerate(events.schema.types):
        if pa.types.is_string(kind):
            events = events.set_column(number, events.schema.names[number], events.column(number).combine_chunks().dictionary_encode())
    return events


def _times(group: LiveGroup, table: pa.Table) -> Numbers:
    """Return the times of a list's events, in ticks, by which all queries of a group go."""
    live = group.first.live
    places = [group.schema.names.index(name) for name in live.schema.names]
    return np.asarray(times_of(live, table.select(places).rename_columns(live.schema.names).cast(live.schema)), np.int64)


def _still_needed(own: OwnEvents, needed: npt.NDArray[np.bool_], times: Numbers, since: Tick | None) -> OwnEvents | None:
    """Return those of the events that a query still needs, of those that it `needed` and that are not before a time; None: there are none.

    Without events that decided about others, these would be decided otherwise. So none may be there that the query has given up.
    """
    if since is not None:
        needed = needed & (times[own.rows] >= since)
    if needed.all():
        return own
    if not needed.any():
        return None
    chosen = pa.array(needed)
    return OwnEvents(own.events.filter(chosen), own.rows[needed], None if own.tags is None else own.tags[needed])


def _needed_from(known: RuleState, kept: StreamState) -> Tick | None:
    """Return the time from which on a query needs events: that of the first one that it keeps, at the latest that behind the watermark."""
    watermark = known.state.clock.watermark
    assert watermark is not None, "Spark tells one"
    behind = following(watermark)
    return min(kept.times[0].item(), behind) if len(kept.times) else behind


def _run(rule: LiveRule, state: StreamState) -> _Found:
    """Return what a run of the engine leaves of a query, whose state has its events."""
    context = TaskContext.get()
    threads = 1 if context is None else context.cpus()
    with naming_rule(rule):
        ran, found = certain_matches(rule.live, state, Resources(threads))
        return _Found(give_up_decided(rule.live, ran, threads), found)


@contextmanager
def naming_rule(rule: LiveRule) -> Iterator[None]:
    """Add the name of a rule to the message of any error; that of a query by itself is named for the whole bucket."""
    if rule.name is None:
        yield
        return
    with naming(rule.name):
        yield


def _emptied(live: LiveQuery, state: StreamState) -> StreamState:
    """Return a state without its events, which stay in the list."""
    return replace(state, events=no_rows(live.schema), times=state.times[:0], numbers=state.numbers[:0], tags=None)


def _closing(live: LiveQuery, state: StreamState) -> int | None:
    """Return the watermark at which the first of the kept keys has been silent for its time to live; None if it is none."""
    if live.sessions is None:
        return None
    closing = first_closing(live.plan, state.events, state.times, live.sessions.time_to_live)
    return None if closing is None else int(closing)


def _in_order(group: LiveGroup, store: Store, events: pa.Table, numbers: Numbers) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the events of a list and their numbers; rows of a row pattern in order, with their marks."""
    rows = group.first.live.rows
    return (events, numbers) if rows is None else in_order_of_ties(rows, group.ties, read_marks(store.marks, events), numbers)
