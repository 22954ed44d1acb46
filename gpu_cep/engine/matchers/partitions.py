"""What follows an event in its partition: the streams split further by what all events of a match agree on."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.ties import rank_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.event_plan import EventPlan, PlannedBranch
from gpu_cep_kernels.phase_one.ordering import streams_of


def partition_columns(plan: EventPlan, branch: PlannedBranch) -> tuple[int, ...]:
    """The columns that split the streams of ordered events into a branch's partitions; partition_contiguity alone asks (SPEC section 3)."""
    if plan.query.strategy != "partition_contiguity":
        return ()
    return tuple(column for column in branch.agreed if column not in (*plan.query.partition_by, *plan.derived))


def successors(columns: EventColumns, ordered: OrderedEvents, split: tuple[int, ...]) -> Indices:
    """For each ordered event the next one of its stream that is equal in the columns `split`, or the number of events.

    Empty where that is always the next event.
    """
    if not split:
        return np.empty(0, np.int64)
    size = len(ordered.rows)
    streams = np.empty(size, np.int64)
    streams_of(np.arange(size), ordered.offsets, streams)
    codes = rank_rows(columns, split, ordered.rows.astype(np.int64, copy=False))
    order = np.lexsort((codes, streams))
    found = np.full(size, size, np.int64)
    together = (streams[order[1:]] == streams[order[:-1]]) & (codes[order[1:]] == codes[order[:-1]])
    found[order[:-1][together]] = order[1:][together]
    return found
