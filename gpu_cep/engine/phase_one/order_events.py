"""Group events by stream and sort them by time (phase 1, second stage).

A counting sort by stream scatters the columns. Nothing is sorted by time if all streams are in
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.stream_keys import StreamKeys
from gpu_cep.engine.events.tie_ranks import find_tie_groups, rank_rows
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.lowering.programs import bank_of, stack_columns
from gpu_cep.engine.phase_one.label_events import LabelledRows
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import over_slices, slices, spread
from gpu_cep_kernels.phase_one.ordering import (
    DISORDERED,
    exclusive_offsets,
    find_destinations,
    gather,
    histogram,
    mark_disordered_streams,
    order_faults,
    put,
    scatter,
    scatter_times,
    sort_streams,
)


def order_events(plan: Plan, columns: EventColumns, times: Pieces, labelled: LabelledRows, keys: StreamKeys, threads: int) -> OrderedEvents:
    """Return the labelled events by stream, then time, then `order_by`, then input position."""
    layout = plan.layout
    given = [columns.pieces(column) for column in layout.columns]
    # conditions may read the timestamps, too; these are moved once
    inputs = [times, *(pieces for pieces in given if pieces is not times)]
    offsets, arrays, ascending = _group_by_stream(labelled, keys, inputs, threads)
    if not ascending:
        arrays = _sort_streams(offsets, arrays, threads)
    arrays = _order_ties(columns, plan.query.order_by, offsets, arrays, threads)
    ordered_times, rows, *others = arrays
    words, moved = others[: len(labelled.labels[0])], iter(others[len(labelled.labels[0]) :])
    bank = [ordered_times if pieces is times else next(moved) for pieces in given]
    ints, floats = bank[: len(layout.ints)], bank[len(layout.ints) :]
    return OrderedEvents(
        offsets=offsets,
        times=ordered_times if ordered_times.dtype.kind == "f" else ordered_times.view(np.uint64),
        labels=stack_columns(np, words, len(rows), words[0].dtype),
        rows=rows,
        bank=bank_of(
            layout,
            [(values, _null_at(columns, column, rows)) for column, values in zip(layout.ints, ints, strict=True)],
            [(values, _null_at(columns, column, rows)) for column, values in zip(layout.floats, floats, strict=True)],
            columns,
            rows,
            threads,
        ),
        keys_ordered=keys.ranks is not None,
        rows_ascend=ascending,
    )


_UNRANKED = np.empty(0, np.int64)


def _null_at(columns: EventColumns, column: int, rows: Indices) -> npt.NDArray[np.bool_] | None:
    """Return where a column is NULL at `rows`; None if it never is."""
    nulls = columns.null_mask(column)
    return None if nulls is None else nulls[rows]


def _group_by_stream(
    labelled: LabelledRows, keys: StreamKeys, inputs: list[Pieces], threads: int
) -> tuple[Indices, list[Array], bool]:  # fmt: skip
    """Return the streams' offsets, the arrays of their events, and whether times are known to ascend.

    The arrays are times, row numbers, label words and the other input columns. Inside a stream,
    events are in input order. Times ascend if no event of a stream is earlier than the one before
    it.
    """
    if keys.pieces is None:
        return _gather_columns(labelled, inputs, threads)
    return _scatter_by_stream(labelled, keys.pieces, keys, inputs, threads)


def _gather_columns(labelled: LabelledRows, inputs: list[Pieces], threads: int) -> tuple[Indices, list[Array], bool]:
    """Return all kept events as one stream in input order, in the form of :func:`_group_by_stream`."""
    rows, labels = np.concatenate(labelled.rows), np.concatenate(labelled.labels, axis=1)
    if all(len(rows) == len(column) for column in inputs):
        targets = [column.whole for column in inputs]
    else:
        targets = [new_values(len(rows), column.dtype) for column in inputs]
        over_slices(_gather, len(rows), threads, rows, inputs, targets)
    times, *others = targets
    spans = [(max(0, low - 1), high) for low, high in slices(len(rows), threads)]
    faults = spread(lambda span: order_faults(*span, times), spans, threads)
    ascending = not any(fault & DISORDERED for fault in faults)
    return np.array([0, len(rows)], np.int64), [times, rows, *labels, *others], ascending


def _gather(low: int, high: int, rows: Array, inputs: list[Pieces], targets: list[Array]) -> None:
    """Write the values of columns at the rows numbered [low, high) of the ascending `rows` to `targets`."""
    for column, target in zip(inputs, targets, strict=True):
        for own, base, piece in column.cut(rows[low:high]):
            gather(low + own.start, low + own.stop, rows, base, piece, target)


def _scatter_by_stream(
    labelled: LabelledRows, codes: Pieces, keys: StreamKeys, inputs: list[Pieces], threads: int
) -> tuple[Indices, list[Array], bool]:  # fmt: skip
    """Sort the events by stream with a stable counting sort; return them as :func:`_group_by_stream`."""
    times, *others = inputs
    parts = range(len(labelled.rows))
    places = find_stream_places(labelled.rows, codes, keys.count, keys.order, threads)
    size = int(places.offsets[-1])
    ordered_times, ordered_rows = new_values(size, times.dtype), new_values(size, np.int32)
    # where all events have one label, labels are in order as they are
    given = labelled.labels[0]
    words = np.concatenate(labelled.labels, axis=1) if labelled.uniform else new_values((len(given), size), given.dtype)
    moved = range(0 if labelled.uniform else len(words))
    targets = [new_values(size, column.dtype) for column in others]

    def place(part: int) -> bool:
        rows, labels = labelled.rows[part], labelled.labels[part]
        # column by column: one loop that writes several takes twice as long
        destinations = places.destinations(part)
        ascending = [
            scatter_times(rows[own], base, destinations[own], piece, ordered_times) for own, base, piece in times.cut(rows)
        ]  # fmt: skip
        put(0, len(rows), destinations, rows, ordered_rows)
        for word in moved:
            put(0, len(rows), destinations, labels[word], words[word])
        for column, target in zip(others, targets, strict=True):
            for own, base, piece in column.cut(rows):
                scatter(own.start, own.stop, rows, base, destinations, piece, target)
        return all(ascending)

    ascending = all(spread(place, parts, threads)) and _pieces_ascend(labelled, times)
    return places.offsets, [ordered_times, ordered_rows, *words, *targets], ascending


class StreamPlaces(NamedTuple):
    """Where the rows of several parts go in a stable sort by stream.

    * `offsets`: where each stream begins, in the order in which streams follow one another, with the end.
    * ``first[part, stream]``: the first place of each part's rows of a stream.
    * ``streams[part]``: the stream of each of a part's rows.
    """

    offsets: Indices
    first: npt.NDArray[np.int32]
    streams: list[npt.NDArray[np.int32]]

    def destinations(self, part: int) -> npt.NDArray[np.int32]:
        """Return the place of each of a part's rows, written over their streams: it may be asked for once."""
        find_destinations(self.first[part], self.streams[part])
        return self.streams[part]


def find_stream_places(
    parts: Sequence[Array], codes: Pieces, streams: int, order: Indices, threads: int
) -> StreamPlaces:  # fmt: skip
    """Return where the rows of all parts go in a stable sort by stream.

    `parts` are row numbers, and ``codes[row]`` is a row's stream, below `streams`. Streams follow
    one another in `order` (empty: as they are numbered).
    """
    places = np.zeros((len(parts), streams), np.int32)
    offsets = np.empty(streams + 1, np.int64)

    def count(part: int) -> npt.NDArray[np.int32]:
        rows, found = parts[part], new_values(len(parts[part]), np.int32)
        for own, base, piece in codes.cut(rows):
            histogram(rows[own], base, piece, places[part], found[own])
        return found

    found = spread(count, range(len(parts)), threads)
    exclusive_offsets(places, order, offsets)
    return StreamPlaces(offsets, places, found)


def sort_by_stream(
    parts: Sequence[Array], codes: Array, streams: int, order: Indices, threads: int
) -> tuple[Indices, npt.NDArray[np.int32]]:  # fmt: skip
    """Return where each stream begins in a stable sort by stream, and the rows of all `parts` in that order.

    The arguments are those of :func:`find_stream_places`.
    """
    places = find_stream_places(parts, Pieces.of([codes]), streams, order, threads)
    ordered = new_values(int(places.offsets[-1]), np.int32)
    spread(lambda part: put(0, len(parts[part]), places.destinations(part), parts[part], ordered), range(len(parts)), threads)
    return places.offsets, ordered


def _pieces_ascend(labelled: LabelledRows, times: Pieces) -> bool:
    """Return whether no piece of the labelled events begins at an earlier time than the last one ends; nor does a part of them."""
    if len(labelled.rows) == len(times.arrays) == 1:
        return True
    cuts = [(rows[own], base, piece) for rows in labelled.rows for own, base, piece in times.cut(rows) if len(rows)]
    ends = [(piece[rows[0] - base], piece[rows[-1] - base]) for rows, base, piece in cuts]
    return all(before <= after for (_, before), (after, _) in pairwise(ends))


def _order_ties(
    columns: EventColumns, order_by: tuple[int, ...], offsets: Indices, arrays: list[Array], threads: int
) -> list[Array]:  # fmt: skip
    """Return the arrays with ties in the order of `order_by`; streams are in order of time."""
    if not order_by:
        return arrays
    times, rows = arrays[:2]
    tied, groups = find_tie_groups(offsets, times)
    if not tied.size:
        return arrays
    # only tied events may move: to rank and sort all costs far more
    order = order_in_streams(groups, times[tied], rank_rows(columns, order_by, rows[tied]), threads)
    if order is None:
        return arrays
    return spread(lambda array: _with_values_of(array, tied, tied[order]), arrays, threads)


def _with_values_of(array: Array, places: Indices, sources: Indices) -> Array:
    """Return an array with the values at `sources` put at `places`."""
    changed = array.copy()
    changed[places] = array[sources]
    return changed


def _sort_streams(offsets: Indices, arrays: list[Array], threads: int) -> list[Array]:
    """Return the arrays with each stream sorted by time; unchanged if they are in order."""
    order = order_in_streams(offsets, arrays[0], _UNRANKED, threads)
    return arrays if order is None else spread(lambda array: array[order], arrays, threads)


def order_in_streams(offsets: Indices, times: Array, ranks: Indices, threads: int) -> Indices | None:
    """Return the events with each stream in order of time, then of rank, as a stable sort has them; None if they are in order."""
    parts = stream_slices(offsets, threads)
    disordered = np.empty(len(offsets) - 1, np.bool_)
    spread(lambda span: mark_disordered_streams(*span, offsets, times, ranks, disordered), parts, threads)
    if not disordered.any():
        return None
    permutation, scratch = new_values(len(times), np.int64), new_values(len(times), np.int64)
    spread(lambda span: sort_streams(*span, offsets, times, ranks, permutation, scratch), parts, threads)
    return permutation


def stream_slices(offsets: Indices, parts: int) -> list[tuple[int, int]]:
    """Cut the streams into at most `parts` ranges of nearly equal numbers of events."""
    targets = np.linspace(0, offsets[-1], max(parts, 1) + 1)
    borders = np.unique(np.concatenate([[0], np.searchsorted(offsets, targets[1:-1]), [len(offsets) - 1]]))
    return [(int(low), int(high)) for low, high in zip(borders[:-1], borders[1:], strict=True)]
