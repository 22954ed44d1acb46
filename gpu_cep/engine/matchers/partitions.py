"""Find each event's successor in its partition, for the strategy partition_contiguity."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.event_plan import EventPlan, PlannedBranch
from gpu_cep_kernels.phase_one.ordering import streams_of


def partition_columns(plan: EventPlan, branch: PlannedBranch) -> tuple[int, ...]:
    """Return the columns that split streams into the branch's partitions (docs/strategies.md).

    They are those in which all events of a match agree, unless streams are
    split by them already. Under other strategies there are none.
    """
    if plan.query.strategy != "partition_contiguity":
        return ()
    return tuple(column for column in branch.agreed if column not in (*plan.query.partition_by, *plan.derived))


def partition_successors(columns: EventColumns, ordered: OrderedEvents, split_by: tuple[int, ...]) -> Indices:
    """Return int64 [ordered event]: the next event of its stream with equal values in `split_by`.

    Where there is none, it is the number of events. The array is empty if no
    column splits the streams: the successor is then always the next event.
    """
    if not split_by:
        return np.empty(0, np.int64)
    size = len(ordered.rows)
    streams = np.empty(size, np.int64)
    streams_of(np.arange(size), ordered.offsets, streams)
    codes = rank_rows(columns, split_by, ordered.rows.astype(np.int64, copy=False))
    order = np.lexsort((codes, streams))
    successors = np.full(size, size, np.int64)
    together = (streams[order[1:]] == streams[order[:-1]]) & (codes[order[1:]] == codes[order[:-1]])
    successors[order[:-1][together]] = order[1:][together]
    return successors
