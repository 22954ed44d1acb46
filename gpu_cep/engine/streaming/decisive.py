"""Say which of the known events later matches of a query depend on, where these are fewer than those of a window.

Under ``skip_till_next_match`` a run of a sequence of single variables depends on nothing but the events that it binds: those
that it passes over leave it as it is. Once it has become a match, its start leads to no other one.

Under contiguity a match of n single variables binds n neighbours of a stream. If it ends with an event to come, it begins
with one of the last n - 1.

A match of situations that is detected later has one that is open now, or begins later. If constraints join all of them in
contact, any other one touches that one directly or over others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.computed_columns import ComputedCount
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.streaming.state import StreamState, Times
from gpu_cep.plan.certainty import Certain, certainty_of
from gpu_cep.plan.event_plan import EventPlan, Plan, PlannedBranch
from gpu_cep.plan.interval_plan import IntervalPlan

# Of fewer events, to look for those that matter costs more than to read all of them.
_FEWEST = 1 << 12
# The relations of situations that do not touch.
_APART = frozenset(("before", "after"))


@dataclass(frozen=True, slots=True)
class OpenRuns:
    """The events that runs without a match bind, which `plan` finds (:func:`gpu_cep.plan.timeouts.of_open_runs`)."""

    plan: EventPlan


@dataclass(frozen=True, slots=True)
class LastOfStreams:
    """The last `number` events of each stream."""

    number: int


@dataclass(frozen=True, slots=True)
class InContact:
    """The events of situations that are open, and of those that touch them over less than so many `contacts`."""

    contacts: int


Decisive = OpenRuns | LastOfStreams | InContact


def decided_by_runs(plan: Plan) -> bool:
    """Return whether later matches of a query depend only on the events of runs without a match."""
    return _follows(plan, ("skip_till_next_match",))


def decided_by_streams(plan: Plan) -> Decisive | None:
    """Return which events of each stream later matches depend on, if that needs no search for runs; None: on all, or not known."""
    if isinstance(plan, IntervalPlan):
        joined = plan.query.gap is None and _touch_all(plan)
        return InContact(len(plan.query.variables)) if joined else None
    contiguous = _follows(plan, ("strict_contiguity", "partition_contiguity"))
    return LastOfStreams(len(plan.query.positives) - 1) if contiguous else None


def is_worth_a_look(state: StreamState, known: int, brought: int) -> bool:
    """Return whether so many known events may well be many more than those that matter, and than the last push `brought`."""
    return known > max(_FEWEST, 2 * state.settled, brought)


def last_rows_of_streams(plan: EventPlan, table: pa.Table, times: Times, number: int) -> Indices:
    """Return the last `number` events of each stream, ascending, and those that tie with the first of these."""
    if not number:
        return np.empty(0, np.int64)
    strict = plan.query.strategy == "strict_contiguity"
    codes = encode_keys(event_columns(plan, table), plan.query.partition_by if strict else plan.stream_keys).codes
    streams = np.zeros(len(times), np.int64) if codes is None else codes
    by_stream = np.argsort(streams, kind="stable")
    ends = np.searchsorted(streams[by_stream], streams[by_stream], side="right")
    last = by_stream[ends - np.arange(len(ends)) <= number]
    since = np.full(int(streams.max(initial=0)) + 1, times.max(initial=0))
    np.minimum.at(since, streams[last], times[last])
    return np.flatnonzero(times >= since[streams])


def _follows(plan: Plan, strategies: tuple[str, ...]) -> bool:
    """Return whether a query asks for a sequence of single variables under one of these strategies, within a length of time."""
    if not isinstance(plan, EventPlan) or len(plan.branches) != 1 or not isinstance(plan.query.window, TimeWindow):
        return False
    by_events = plan.query.strategy in strategies and certainty_of(plan) is Certain.WITH_LAST_EVENT
    # a running count is that of all events
    counts = any(isinstance(each, ComputedCount) for each in plan.query.computed)
    return by_events and not counts and _is_sequence_of_singles(plan, plan.branches[0])


def _is_sequence_of_singles(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether the variables follow each other in one order, each binds one event, and none is negated."""
    preceding = sorted(before.bit_count() for before in branch.before)
    single = all(not plan.query.variables[number].quantified for number in branch.positives)
    return single and not branch.negations and preceding == list(range(len(preceding)))


def _touch_all(plan: IntervalPlan) -> bool:
    """Return whether constraints by which two situations touch join all situations of a match."""
    touching = [{each.left, each.right} for each in plan.query.constraints if not _APART.intersection(each.relations)]
    reached = {0}
    for _ in plan.query.variables:
        reached = reached.union(*(pair for pair in touching if pair & reached))
    return len(reached) == len(plan.query.variables)
