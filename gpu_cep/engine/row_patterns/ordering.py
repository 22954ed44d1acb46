"""Put the rows of a table in the order of PARTITION BY and ORDER BY; what is in order is not sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_cep.analysis.row_patterns.bound import BoundRowPattern, SortColumn
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.stream_keys import StreamKeys, encode_keys
from gpu_cep.engine.events.tie_ranks import find_tie_groups, rank_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.phase_one.order_events import order_in_streams, sort_by_stream, stream_slices
from gpu_cep.engine.row_patterns.pieces import cut_partitions, is_cut
from gpu_cep.engine.row_patterns.sort_codes import sort_codes
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.phase_one.ordering import mark_disordered_streams
from gpu_cep_kernels.row_patterns.tables import PartitionPieces

_UNRANKED = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """The rows of a table in order.

    Partition p has the rows from ``offsets[p]`` to before ``offsets[p + 1]``; none is empty.
    ``rows[r]`` is the number in the table of ordered row r; None if the table is in order.
    """

    rows: Indices | None
    offsets: Indices

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def take(self, values: Array) -> Array:
        """Return values of the table's rows in order; the same array if the table is in order."""
        return values if self.rows is None else values[self.rows]

    def number(self, row: int) -> int:
        """Return the number in the table of an ordered row."""
        return row if self.rows is None else int(self.rows[row])

    def numbers(self, ordered: Indices) -> Indices:
        """Return the numbers in the table of ordered rows."""
        return ordered if self.rows is None else self.rows[ordered]

    def with_moved(self, places: Indices, sources: Indices) -> OrderedRows:
        """Return the same rows with the ordered rows `sources` at `places`."""
        rows = np.arange(len(self)) if self.rows is None else self.rows.copy()
        rows[places] = self.numbers(sources)
        return OrderedRows(rows, self.offsets)


def order_rows(bound: BoundRowPattern, columns: EventColumns, threads: int, ties: tuple[int, ...] = ()) -> OrderedRows:
    """Return the rows by PARTITION BY, NULL first, then by ORDER BY, then by the columns `ties`, NULL last, then by their numbers."""
    keys = (*bound.order_by, *(SortColumn(column, descending=False, nulls_first=False) for column in ties))
    grouped = _group(columns, bound.partition_by, threads)
    if not keys or not len(columns):
        return grouped
    first = sort_codes(columns, keys[0])
    ordered = _sort(grouped, first, threads)
    return ordered if not keys[1:] else _sort_ties(ordered, ordered.take(first), columns, keys[1:], threads)


def _sort_ties(ordered: OrderedRows, codes: Array, columns: EventColumns, keys: Sequence[SortColumn], threads: int) -> OrderedRows:
    """Return the rows with those of a partition whose `codes` are equal sorted by `keys`, the first of which decides first; stable.

    Each key sorts only what all before it leave equal.
    """
    places: Indices | None = None
    begins = ordered.offsets
    for key in keys:
        tied, begins = find_tie_groups(begins[:-1], codes)
        if not tied.size:
            break
        places = tied if places is None else places[tied]
        codes = sort_codes(columns, key)[ordered.numbers(places)]
        order = order_in_streams(begins, codes, _UNRANKED, threads)
        if order is not None:
            ordered, codes = ordered.with_moved(places, places[order]), codes[order]
    return ordered


def _are_in_order(pieces: PartitionPieces, codes: Array, threads: int) -> bool:
    """Return whether partitions ascend by codes; False, too, if none is cut: then no thread would share the work."""
    if not is_cut(pieces):
        return False
    disordered = np.empty(len(pieces.begins), np.bool_)
    parts = stream_slices(pieces.offsets, threads)
    spread(lambda span: mark_disordered_streams(*span, pieces.offsets, codes, _UNRANKED, disordered), parts, threads)
    cuts = pieces.offsets[:-1][pieces.offsets[:-1] > pieces.begins]
    return not disordered.any() and bool((codes[cuts - 1] <= codes[cuts]).all())


def _group(columns: EventColumns, keys: tuple[int, ...], threads: int) -> OrderedRows:
    """Return the rows by partition, in the order of the table inside each."""
    length = len(columns)
    encoded = encode_keys(columns, keys)
    if encoded.codes is None or not length:
        return OrderedRows(None, np.array([0, length] if length else [0], np.int64))
    codes, order = encoded.codes, _order(columns, keys, encoded)
    if not order.size and bool((codes[1:] >= codes[:-1]).all()):
        return OrderedRows(None, np.concatenate([[0], np.flatnonzero(codes[1:] != codes[:-1]) + 1, [length]]).astype(np.int64))
    parts = [np.arange(low, high, dtype=np.int32) for low, high in slices(length, threads)]
    offsets, rows = sort_by_stream(parts, codes, encoded.count, order, threads)
    return OrderedRows(rows.astype(np.int64), np.unique(offsets))


def _order(columns: EventColumns, keys: tuple[int, ...], encoded: StreamKeys) -> Indices:
    """Return the codes of partitions in the order of their keys; empty if that is the order of codes."""
    if encoded.ranks is not None:
        return encoded.order
    codes = np.asarray(encoded.codes)
    used, examples = np.unique(codes, return_index=True)
    ranks = np.full(encoded.count, np.iinfo(np.int64).max)
    ranks[used] = rank_rows(columns, keys, examples)
    return np.empty(0, np.int64) if bool((np.diff(ranks[used]) > 0).all()) else np.argsort(ranks, kind="stable")


def _sort(given: OrderedRows, codes: Array, threads: int) -> OrderedRows:
    """Return the rows with each partition sorted by codes of the table's rows; stable."""
    taken = given.take(codes)
    if _are_in_order(cut_partitions(given.offsets, threads), taken, threads):
        return given
    order = order_in_streams(given.offsets, taken, _UNRANKED, threads)
    return given if order is None else OrderedRows(given.numbers(order), given.offsets)
