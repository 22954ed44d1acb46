"""What follows an event in its partition: the streams split further by what all events of a match agree on."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.matches import Indices
from gpu_cep.engine.streams import OrderedEvents, tie_ranks
from gpu_cep.plan.plan import Plan, PlannedBranch
from gpu_cep_kernels.ordering import streams_of


def successors(plan: Plan, columns: EventColumns, ordered: OrderedEvents, branch: PlannedBranch) -> Indices:
    """For each ordered event the next of its partition, or the number of events; empty where that is always the next event.

    Partitions matter to partition_contiguity alone (SPEC section 3).
    """
    split = tuple(column for column in branch.agreed if column not in (*plan.query.partition_by, *plan.derived))
    if plan.query.strategy != "partition_contiguity" or not split:
        return np.empty(0, np.int64)
    size = len(ordered.rows)
    streams = np.empty(size, np.int64)
    streams_of(np.arange(size), ordered.offsets, streams)
    codes = tie_ranks(columns, split, ordered.rows.astype(np.int64, copy=False))
    order = np.lexsort((codes, streams))
    found = np.full(size, size, np.int64)
    together = (streams[order[1:]] == streams[order[:-1]]) & (codes[order[1:]] == codes[order[:-1]])
    found[order[:-1][together]] = order[1:][together]
    return found
