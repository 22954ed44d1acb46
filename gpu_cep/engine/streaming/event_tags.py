"""Tag events as they come with what tells later runs which of them to read: the stream of an event, and its place in matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.computed_columns import ComputedCount
from gpu_cep.engine.events.key_hashes import hash_keys, highest_bits
from gpu_cep.engine.events.label_words import Words
from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.label_events import label_events
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep_kernels.device.primitives import marked_events

Tags = npt.NDArray[np.uint32]


class Role(IntFlag):
    """Whether an event may be the first one of a match, and the last one."""

    FIRST = 1
    LAST = 2


# A tag has the highest bits of the hash of its event's key (HASH_BITS), and two bits for its roles below.
_ANY = np.uint32(Role.FIRST | Role.LAST)


@dataclass(frozen=True, slots=True)
class Tagging:
    """How the events of a query are tagged.

    `plan`: that by which they are labelled.
    `keys`: the columns that tell streams apart; a match lies in one stream.
    `first`, `last`: the variables that may bind the first event of a match, and the last one.
    """

    plan: Plan
    keys: tuple[int, ...]
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


def tagging_of(plan: Plan, keys: tuple[int, ...]) -> Tagging | None:
    """Return how the events of a query are tagged; None if its matches do not lie in streams that the columns `keys` tell apart."""
    query = plan.query
    plain = bool(keys) and all(key < len(query.schema.attributes) for key in keys)
    # a number of events, and a running count, may be those of a wider stream
    if not plain or _counts(plan) or not isinstance(query.window, TimeWindow):
        return None
    return Tagging(plan, keys, *(_first_and_last(plan) if isinstance(plan, EventPlan) else ()))


def _counts(plan: Plan) -> bool:
    """Return whether conditions ask for a running count, which is that of all events."""
    return any(isinstance(each, ComputedCount) for each in plan.query.computed)


def _first_and_last(plan: EventPlan) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the variables that may bind the first event of a match, and those that may bind the last one."""
    first, last = set(), set()
    for branch in plan.branches:
        followed = 0
        for before in branch.before:
            followed |= before
        first |= {number for number, before in zip(branch.positives, branch.before, strict=True) if not before}
        last |= {number for place, number in enumerate(branch.positives) if not followed >> place & 1}
    return tuple(sorted(first)), tuple(sorted(last))


def bindable_rows(plan: Plan, events: pa.Table) -> Indices:
    """Return the rows of events that some variable may bind, or of all if the others matter, too."""
    if not _filters(plan, events):
        return np.arange(events.num_rows)
    return _joined(label_events(plan, event_columns(plan, events), 1).rows)


def tagged_rows(tagging: Tagging, events: pa.Table) -> tuple[Indices, Tags]:
    """Return the rows of :func:`bindable_rows`, and the tags of these."""
    columns = event_columns(tagging.plan, events)
    rows, roles = np.arange(events.num_rows), np.full(events.num_rows, _ANY)
    if _filters(tagging.plan, events):
        labelled = label_events(tagging.plan, columns, 1)
        rows, roles = _joined(labelled.rows), _roles(tagging, np.concatenate(labelled.labels, axis=1))
    return rows, highest_bits(hash_keys(columns, tagging.keys)[rows]) & ~_ANY | roles


def _filters(plan: Plan, events: pa.Table) -> bool:
    """Return whether events are left out that no variable may bind."""
    return isinstance(plan, EventPlan) and "filter" in plan.pruning and events.num_rows > 0


def _joined(rows: Sequence[npt.NDArray[np.int32]]) -> Indices:
    """Return the rows of several chunks as one array."""
    return np.concatenate(rows).astype(np.int64)


def _roles(tagging: Tagging, labels: Words) -> Tags:
    """Return the roles that events with these labels may have."""
    roles = np.zeros(labels.shape[1], np.uint32)
    for role, variables in ((Role.FIRST, tagging.first), (Role.LAST, tagging.last)):
        roles[_bind(labels, variables)] |= np.uint32(role)
    return roles


def tag_events(tagging: Tagging, events: pa.Table) -> Tags:
    """Return the tags of all events; those that no variable may bind have no role."""
    tags = np.zeros(events.num_rows, np.uint32)
    rows, own = tagged_rows(tagging, events)
    tags[rows] = own
    return tags


def may_begin(plan: EventPlan, events: pa.Table) -> Flags:
    """Return which of all known events may be the first one of a match."""
    if _counts(plan):
        return np.ones(events.num_rows, np.bool_)
    labelled, marks = label_events(plan, event_columns(plan, events), 1), np.zeros(events.num_rows, np.bool_)
    first, _ = _first_and_last(plan)
    marks[np.concatenate(labelled.rows)] = _bind(np.concatenate(labelled.labels, axis=1), first)
    return marks


def _bind(labels: Words, variables: tuple[int, ...]) -> Flags:
    """Return which events with these labels one of the variables may bind."""
    bound: Flags = marked_events(labels, sum(1 << number for number in variables)) != 0
    return bound
