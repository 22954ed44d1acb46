"""The order of results: stream key, first event, last event, bindings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.engine.columns import EventColumns, dense_rank
from gpu_cep.engine.keys import encode_keys
from gpu_cep.engine.matches import Indices, Matches
from gpu_cep.engine.streams import OrderedEvents, tie_ranks
from gpu_cep.plan.plan import Plan


def in_result_order(plan: Plan, columns: EventColumns, ordered: OrderedEvents, matches: Matches) -> tuple[Matches, Indices]:
    """The matches in result order, and the number of the `partition_by` stream of each (ascending).

    The matches come grouped by first event, each group in order; what is left
    to order are streams whose codes do not ascend with their keys, and
    `partition_by` streams that derived keys split.
    """
    streams = _partition_streams(plan, columns, ordered, matches.first)
    if ordered.keys_ordered and not plan.derived:
        return matches, streams
    ranks = _stream_ranks(plan, columns, ordered, matches.first, streams)
    rows, times = ordered.rows[matches.first], ordered.times[matches.first]
    by_time = times.view(np.int64) if times.dtype.kind == "u" else times
    ties = [tie_ranks(columns, plan.query.order_by, rows)] if plan.query.order_by else []
    keys = [rows, *ties, by_time, ranks]
    # equal keys are matches of one first event, whose order is kept
    order = np.lexsort(keys)
    return matches.reordered(order), ranks[order]


def _partition_streams(plan: Plan, columns: EventColumns, ordered: OrderedEvents, first: Indices) -> Indices:
    """A number for the `partition_by` stream of each of the events `first`."""
    if not plan.derived:
        return np.searchsorted(ordered.offsets, first, side="right").astype(np.int64) - 1
    codes = encode_keys(columns, plan.query.partition_by).codes
    return np.zeros(len(first), np.int64) if codes is None else codes[ordered.rows[first]].astype(np.int64)


def _stream_ranks(plan: Plan, columns: EventColumns, ordered: OrderedEvents, first: Indices, streams: Indices) -> Indices:
    """The rank of each match's stream among all streams with matches, by key, NULLs first."""
    distinct, representatives, inverse = np.unique(streams, return_index=True, return_inverse=True)
    if not plan.query.partition_by or not len(distinct):
        return np.zeros(len(streams), np.int64)
    rows = pa.array(ordered.rows[first[representatives]])
    by_key = [dense_rank(columns.arrow(column).take(rows)) for column in plan.query.partition_by]
    ranks = np.empty(len(distinct), np.int64)
    ranks[np.lexsort(by_key[::-1])] = np.arange(len(distinct))
    return ranks[inverse]
