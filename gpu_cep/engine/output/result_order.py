"""Sort matches into the order of results: stream key, first event, last event, bindings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import over_slices
from gpu_cep_kernels.matches.groups import group_begins, order_by_group, order_by_row
from gpu_cep_kernels.phase_one.ordering import DISORDERED, gather, order_faults, streams_of


def sort_results(
    plan: Plan, columns: EventColumns, ordered: OrderedEvents, first: Indices, threads: int = 1
) -> tuple[Indices | None, Indices]:  # fmt: skip
    """Return the numbers of the matches in result order, and each one's `partition_by` stream number (ascending).

    ``first[m]`` is the first event of match m. The order is None if it is that of the matches.
    These come grouped by first event, each group in order. Only streams are left to sort. They need
    it if their codes do not ascend with their keys, or if derived keys split them.
    """
    streams = _partition_streams(plan, columns, ordered, first)
    if ordered.keys_ordered and not plan.derived:
        return None, streams
    ranks, number = _stream_ranks(plan, columns, ordered, first, streams)
    order = _order_in_streams(plan, columns, ordered, first, threads) if plan.derived else None
    if order is not None and number == 1:
        return order, ranks
    by_rank, _ = order_by_group(ranks if order is None else ranks[order], number)
    order = by_rank if order is None else order[by_rank]
    return order, ranks[order]


def _order_in_streams(plan: Plan, columns: EventColumns, ordered: OrderedEvents, first: Indices, threads: int) -> Indices:
    """Return the matches by time, `order_by` and input position of their first events, whatever their streams.

    Matches with one first event keep their order.
    """
    if plan.query.order_by or not (ordered.rows_ascend or _rows_ascend(plan, columns)):
        return np.lexsort(_order_keys(plan, columns, ordered, first))
    rows = new_values(len(first), ordered.rows.dtype)
    over_slices(gather, len(first), threads, first, 0, ordered.rows, rows)
    return order_by_row(rows, len(columns), threads)


def _rows_ascend(plan: Plan, columns: EventColumns) -> bool:
    """Return whether the rows of the input are known to be in order of time; those of a device are not looked at."""
    if columns.resident(plan.query.timestamp) is not None:
        return False
    return not order_faults(0, len(columns), columns.values(plan.query.timestamp)) & DISORDERED


def positions_in_streams(plan: Plan, columns: EventColumns, ordered: OrderedEvents, events: Indices) -> Indices:
    """Return, for each of some ordered events, a number that ascends with its position in its stream.

    The streams are those of `partition_by`. Different events of a stream have
    different numbers; numbers of different streams do not compare.
    """
    if not plan.derived:
        return events
    distinct, inverse = np.unique(events, return_inverse=True)
    order = np.lexsort(_order_keys(plan, columns, ordered, distinct))
    places = np.empty(len(distinct), np.int64)
    places[order] = np.arange(len(distinct))
    return places[inverse]


def _order_keys(plan: Plan, columns: EventColumns, ordered: OrderedEvents, events: Indices) -> list[Array]:
    """Return the keys that sort events in their stream: input position, `order_by`, time.

    The most significant one is the last.
    """
    rows, times = ordered.rows[events], ordered.times[events]
    by_time = times.view(np.int64) if times.dtype.kind == "u" else times
    ties = [rank_rows(columns, plan.query.order_by, rows)] if plan.query.order_by else []
    return [rows, *ties, by_time]


def _partition_streams(plan: Plan, columns: EventColumns, ordered: OrderedEvents, first: Indices) -> Indices:
    """Return the number of the `partition_by` stream of each of the ascending ordered events `first`."""
    streams = np.zeros(len(first), np.int64)
    if not plan.derived:
        if len(ordered.offsets) > 2:
            streams_of(first, ordered.offsets, streams)
        return streams
    if not plan.query.partition_by:
        return streams
    if any(columns.resident(column) is not None for column in plan.query.partition_by):
        return rank_rows(columns, plan.query.partition_by, ordered.rows[first])
    codes = encode_keys(columns, plan.query.partition_by).codes
    return streams if codes is None else codes[ordered.rows[first]].astype(np.int64)


def _stream_ranks(plan: Plan, columns: EventColumns, ordered: OrderedEvents, first: Indices, streams: Indices) -> tuple[Indices, int]:
    """Return the rank of each match's stream among the streams with matches, by key, and the number of these streams."""
    if not plan.query.partition_by:
        return streams, 1
    if not plan.derived:
        # streams ascend
        heads = group_begins(streams)
        ranks = key_ranks(plan, columns, ordered.rows[first[heads]])
        return np.repeat(ranks, np.diff(heads, append=len(streams))), len(heads)
    _, representatives, inverse = np.unique(streams, return_index=True, return_inverse=True)
    return key_ranks(plan, columns, ordered.rows[first[representatives]])[inverse], len(representatives)


def key_ranks(plan: Plan, columns: EventColumns, rows: Array) -> Indices:
    """Return the ranks of input rows, one of each stream, by `partition_by` key: NULL first, NaN last."""
    if len(rows) < 2:
        return np.zeros(len(rows), np.int64)
    by_key = [columns.dense_rank(column, rows) for column in plan.query.partition_by]
    if len(by_key) == 1 and by_key[0].max(initial=-1) == len(rows) - 1:
        # each rank stands once: one column tells all streams apart, and none is NaN
        return by_key[0]
    ranks = np.zeros(len(rows), np.int64)
    if by_key:
        ranks[np.lexsort(by_key[::-1])] = np.arange(len(rows))
    return ranks


def count_by_stream(
    plan: Plan, columns: EventColumns, ordered: OrderedEvents, parts: Sequence[tuple[Indices, Indices]]
) -> tuple[Indices, Indices]:  # fmt: skip
    """Return an input row of each `partition_by` stream with matches, and the number of its matches.

    The streams are in the order of results. A part has some ordered events, and the number of matches that start at each of them.
    These events ascend, also from part to part.
    """
    found = [_counts_of_part(plan, ordered.offsets, *part) for part in parts]
    starts = np.concatenate([np.empty(0, np.int64), *(starts for starts, _ in found)])
    totals = np.concatenate([np.empty(0, np.int64), *(totals for _, totals in found)])
    streams = _partition_streams(plan, columns, ordered, starts)
    if plan.derived:
        by_stream = np.argsort(streams, kind="stable")
        streams, starts, totals = streams[by_stream], starts[by_stream], totals[by_stream]
    borders = group_begins(streams)
    rows = ordered.rows[starts[borders]]
    counts = np.add.reduceat(totals, borders) if len(borders) else totals
    if ordered.keys_ordered and not plan.derived:
        return rows, counts
    order = np.argsort(key_ranks(plan, columns, rows))
    return rows[order], counts[order]


def _counts_of_part(plan: Plan, offsets: Indices, starts: Indices, totals: Indices) -> tuple[Indices, Indices]:
    """Return the starts that have matches, and their numbers; of each stream only the first one, with all of the stream's in the part.

    If derived keys split the streams, which do not follow each other then, all of these starts are returned.
    """
    if not totals.all():
        kept = totals > 0
        starts, totals = starts[kept], totals[kept]
    if plan.derived or not len(starts):
        return starts, totals
    first, last = np.searchsorted(offsets, starts[[0, -1]], side="right")
    begins = np.concatenate([[0], np.searchsorted(starts, offsets[first:last]), [len(starts)]])
    borders = begins[:-1][np.diff(begins) > 0]
    return starts[borders], np.add.reduceat(totals, borders)
