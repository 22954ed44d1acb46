"""Phase 1, second stage: events into streams, in order of time, by a counting sort that scatters the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.columns import Array, EventColumns
from gpu_cep.engine.keys import StreamKeys, encode_keys
from gpu_cep.engine.labels import LabelledEvents
from gpu_cep.engine.programs import null_words
from gpu_cep.errors import EventError
from gpu_cep.plan.plan import BankLayout, Plan
from gpu_cep_kernels.launch import spread
from gpu_cep_kernels.ordering import count_disorder, exclusive_offsets, histogram, place, scatter, scatter_values, sort_streams
from gpu_cep_kernels.tables import ColumnBank

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OrderedEvents:
    """The kept events, stream after stream, each in stream order.

    ``offsets[s]`` is where stream s begins (one more entry than streams,
    empty streams among them), `times` float64 or uint64 (int64 seen so that
    differences cannot overflow), `ranks` the place among ties that `order_by`
    gives (empty without ties), `rows` the input row numbers.
    """

    offsets: Indices
    times: Array
    ranks: Indices
    labels: npt.NDArray[np.uint64]
    rows: Indices
    bank: ColumnBank
    keys_ordered: bool


def load_times(columns: EventColumns, column: int) -> Array:
    """The timestamp column as int64 or float64.

    Raises
    ------
    EventError
        A timestamp is NULL or NaN.
    """
    nulls = columns.arrow(column).null_count
    if nulls:
        raise EventError(f"timestamp column {columns.name(column)!r} holds {nulls:,} NULL{'s' if nulls > 1 else ''}")
    values = columns.values(column)
    if values.dtype.kind == "i":
        return values.astype(np.int64, copy=False)
    missing = int(np.isnan(values).sum())
    if missing:
        raise EventError(f"timestamp column {columns.name(column)!r} holds {missing:,} NaN{'s' if missing > 1 else ''}")
    return values.astype(np.float64, copy=False)


def order_events(plan: Plan, columns: EventColumns, times: Array, labelled: LabelledEvents, keys: StreamKeys, threads: int) -> OrderedEvents:
    """The labelled events by stream and time; ties by `order_by`, then by input position."""
    scattering = _scatter_plan(labelled, keys, threads)
    ordered = OrderedEvents(
        offsets=scattering.offsets,
        times=scattering.column(times, times.dtype),
        ranks=np.empty(0, np.int64),
        labels=scattering.values(labelled.labels, np.dtype(np.uint64)),
        rows=scattering.values(labelled.rows, np.dtype(np.int64)),
        bank=_scatter_bank(columns, plan.layout, scattering),
        keys_ordered=keys.ordered,
    )
    ordered = _in_time_order(ordered, threads)
    tied = _tied_events(ordered) if plan.query.order_by else ordered.ranks
    if tied.size:
        # ranking costs far more than ordering by time: only those that need it are ranked
        ranks = np.zeros(len(ordered.rows), np.int64)
        ranks[tied] = tie_ranks(columns, plan.query.order_by, ordered.rows[tied])
        ordered = _in_time_order(replace(ordered, ranks=ranks), threads)
    return _as_unsigned(ordered)


def _tied_events(ordered: OrderedEvents) -> Indices:
    """The events, in time order, that share their time with a neighbour in their stream."""
    same = np.zeros(len(ordered.times) + 1, np.bool_)  # whether event e has the time of e − 1
    np.equal(ordered.times[1:], ordered.times[:-1], out=same[1:-1])
    same[ordered.offsets] = False
    return np.flatnonzero(same[1:] | same[:-1])


@dataclass(frozen=True, slots=True)
class _Scattering:
    """Where each kept row goes: ``destinations[part][j]`` is the place of row ``rows[part][j]``."""

    rows: list[Indices]
    destinations: list[Indices]
    offsets: Indices
    threads: int

    def column(self, column: Array, dtype: np.dtype[np.generic], out: Array | None = None) -> Array:
        """An input column, scattered."""
        return self._scatter(lambda part, target: scatter(self.rows[part], self.destinations[part], column, target), dtype, out)

    def values(self, values: list[Array], dtype: np.dtype[np.generic]) -> Array:
        """Values that stand beside the kept rows, scattered."""
        return self._scatter(lambda part, target: scatter_values(values[part], self.destinations[part], target), dtype, None)

    def _scatter(self, scatter_part: Callable[[int, Array], None], dtype: np.dtype[np.generic], out: Array | None) -> Array:
        target = np.empty(int(self.offsets[-1]), dtype) if out is None else out
        spread(lambda part: scatter_part(part, target), range(len(self.rows)), self.threads)
        return target


def _scatter_plan(labelled: LabelledEvents, keys: StreamKeys, threads: int) -> _Scattering:
    rows, codes = labelled.rows, keys.codes
    sizes = np.array([len(part) for part in rows], np.int64)
    if codes is None:
        ends = np.cumsum(sizes, dtype=np.int64)
        destinations = [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        return _Scattering(rows, destinations, np.array([0, sizes.sum()], np.int64), threads)
    counts = np.zeros((len(rows), keys.count), np.int64)
    offsets = np.empty(keys.count + 1, np.int64)
    spread(lambda part: histogram(rows[part], codes, counts[part]), range(len(rows)), threads)
    exclusive_offsets(counts, offsets)
    destinations = [np.empty(size, np.int64) for size in sizes]
    spread(lambda part: place(rows[part], codes, counts[part], destinations[part]), range(len(rows)), threads)
    return _Scattering(rows, destinations, offsets, threads)


def _scatter_bank(columns: EventColumns, layout: BankLayout, scattering: _Scattering) -> ColumnBank:
    length = int(scattering.offsets[-1])
    ints, floats = np.empty((len(layout.ints), length), np.int64), np.empty((len(layout.floats), length), np.float64)
    for matrix, members in ((ints, layout.ints), (floats, layout.floats)):
        for row, column in zip(matrix, members, strict=True):
            scattering.column(columns.values(column), matrix.dtype, row)

    def words(members: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        masks = [columns.null_mask(column) for column in members]
        return null_words([None if mask is None else scattering.column(mask, np.dtype(np.bool_)) for mask in masks], length)

    return ColumnBank(ints, floats, words(layout.ints), words(layout.floats))


def tie_ranks(columns: EventColumns, order_by: tuple[int, ...], rows: Indices) -> Indices:
    """For each of `rows` its place among them by the `order_by` columns, NULLs first, equal rows alike; empty without such columns."""
    ranks = np.empty(0, np.int64)
    for column in order_by:
        rank = columns.dense_rank(column, rows)
        if not ranks.size:
            ranks = rank
            continue
        width = int(rank.max(initial=0)) + 1
        _, dense = np.unique(ranks, return_inverse=True)
        ranks = dense * width + rank
    return ranks


def stream_slices(offsets: Indices, parts: int) -> list[tuple[int, int]]:
    """The streams cut into at most `parts` ranges of nearly equal numbers of events."""
    targets = np.linspace(0, offsets[-1], max(parts, 1) + 1)
    borders = np.unique(np.concatenate([[0], np.searchsorted(offsets, targets[1:-1]), [len(offsets) - 1]]))
    return [(int(low), int(high)) for low, high in zip(borders[:-1], borders[1:], strict=True)]


def _in_time_order(ordered: OrderedEvents, threads: int) -> OrderedEvents:
    parts = stream_slices(ordered.offsets, threads)
    disorder = spread(lambda span: count_disorder(*span, ordered.offsets, ordered.times, ordered.ranks), parts, threads)
    if not sum(disorder):
        return ordered
    permutation, scratch = np.empty(len(ordered.rows), np.int64), np.empty(len(ordered.rows), np.int64)
    spread(lambda span: sort_streams(*span, ordered.offsets, ordered.times, ordered.ranks, permutation, scratch), parts, threads)
    bank = ordered.bank
    return OrderedEvents(
        offsets=ordered.offsets,
        times=ordered.times[permutation],
        ranks=ordered.ranks[permutation] if ordered.ranks.size else ordered.ranks,
        labels=ordered.labels[permutation],
        rows=ordered.rows[permutation],
        bank=ColumnBank(
            bank.ints[:, permutation],
            bank.floats[:, permutation],
            *(words[permutation] if words.size else words for words in (bank.int_nulls, bank.float_nulls)),
        ),
        keys_ordered=ordered.keys_ordered,
    )


def _as_unsigned(ordered: OrderedEvents) -> OrderedEvents:
    if ordered.times.dtype.kind == "f":
        return ordered
    return OrderedEvents(
        ordered.offsets, ordered.times.view(np.uint64), ordered.ranks, ordered.labels, ordered.rows, ordered.bank, ordered.keys_ordered
    )


__all__ = ["OrderedEvents", "encode_keys", "load_times", "order_events", "stream_slices", "tie_ranks"]
