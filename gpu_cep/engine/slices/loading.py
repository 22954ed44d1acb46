"""Load the events of slices of time one after the other; the row groups that two slices share are read once."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from gpu_cep.engine.events.matches import Flags
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.row_numbers import RowNumbers, Rows, join_numbers
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.input.time_cut import FileSlice
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.input.times import load_pieces_of_times
from gpu_cep.errors import FEWER_EVENTS, EventError, ending_in
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.phase_one.ordering import DISORDERED, order_faults


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """The row groups of files at some ascending `places`, in memory."""

    places: Rows
    part: PartOfFiles

    def begins_of(self, places: Rows, files: GroupedFiles) -> Rows:
        """Return the first row in the part of each of some of the row groups."""
        rows = files.groups.rows[self.places]
        begins: Rows = (np.cumsum(rows) - rows)[np.searchsorted(self.places, places)]
        return begins


def load(files: GroupedFiles, places: Rows, before: Loaded | None) -> Loaded:
    """Return the row groups at these ascending places; those that are loaded `before` are taken from there, without a copy.

    Raises as :meth:`~gpu_cep.engine.input.grouped_files.GroupedFiles.read`.
    """
    known = np.isin(places, () if before is None else before.places)
    if before is None or not known.any():
        return Loaded(places, files.read(places))
    fresh = Loaded(places[~known], files.read(places[~known]))
    begins = np.empty(len(places), np.int64)
    begins[known], begins[~known] = (each.begins_of(places[own], files) for each, own in ((before, known), (fresh, ~known)))
    sizes = files.groups.rows[places]
    follows = (known[1:] == known[:-1]) & (begins[1:] == begins[:-1] + sizes[:-1])
    firsts = np.flatnonzero(np.concatenate([[True], ~follows]))
    spans = zip(known[firsts].tolist(), begins[firsts].tolist(), np.add.reduceat(sizes, firsts).tolist(), strict=True)
    parts = [_part_at((before if held else fresh).part, begin, size) for held, begin, size in spans]
    return Loaded(places, join_parts(fresh.part.table.schema, *parts))


def load_ahead(files: GroupedFiles, slices: Iterable[Rows]) -> Generator[Loaded, None, None]:
    """Yield the row groups at the places that each slice needs; those of the next slice are read meanwhile. Raises as :func:`load`."""
    needed = iter(slices)
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(_load, files, next(needed), None)
        for places in needed:
            loaded = ahead.result()
            ahead = reader.submit(_load, files, places, loaded)
            yield loaded
            del loaded
        yield ahead.result()


@ending_in(EventError, "reading the events", FEWER_EVENTS)
def _load(files: GroupedFiles, places: Rows, before: Loaded | None) -> Loaded:
    return load(files, places, before)


def events_near(plan: Plan, part: PartOfFiles, own: FileSlice) -> PartOfFiles:
    """Return the events of a part that bear on the matches of the slice `own`, without those that the query leaves out.

    Events in the order of time are not copied for that.
    """
    timed, kept = timed_events(plan.query, part.table)
    table, numbers = to_host(timed), numbers_of(part) if kept is None else numbers_of(part)[kept]
    times = load_pieces_of_times(EventColumns(table, plan.query, plan.dictionaries, threads=1), plan.query.timestamp)
    near = rows_between(times, own.low, own.high)
    return replace(part, table=rows_at(table, near), numbers=numbers[near])


def rows_between(times: Pieces, low: Tick, high: Tick) -> slice | Flags:
    """Return the rows whose times lie between two bounds, these included: as one slice, if times ascend."""
    least, most = (np.asarray(bound, times.dtype) for bound in (low, high))
    if not _ascend(times):
        marks: Flags = np.concatenate([(piece >= least) & (piece <= most) for piece in times.arrays])
        return slice(0, len(times)) if marks.all() else marks
    begin = sum(int(np.searchsorted(piece, least)) for piece in times.arrays)
    return slice(begin, sum(int(np.searchsorted(piece, most, side="right")) for piece in times.arrays))


def _ascend(times: Pieces) -> bool:
    """Return whether no time is earlier than the one before."""
    held = [piece for piece in times.arrays if len(piece)]
    if any(later[0] < earlier[-1] for earlier, later in pairwise(held)):
        return False
    return not any(order_faults(0, len(piece), piece) & DISORDERED for piece in held)


def rows_at(table: pa.Table, rows: slice | Flags) -> pa.Table:
    """Return the rows of a slice without a copy, or those that are marked."""
    return table.slice(rows.start, rows.stop - rows.start) if isinstance(rows, slice) else table.filter(pa.array(rows))


def join_parts(schema: pa.Schema, *parts: PartOfFiles) -> PartOfFiles:
    """Return the rows of some parts, one part after the other, in the types of `schema`."""
    held = [part for part in parts if part.table.num_rows] or [parts[0]]
    table = pa.concat_tables([in_types(part.table, schema) for part in held])
    return replace(parts[0], table=table, numbers=join_numbers([numbers_of(part) for part in held]))


def in_types(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table in the types of a schema."""
    # only types that differ are cast: pyarrow cannot cast some nested types, not even to the same type
    pairs = zip(table.columns, schema.types, strict=True)
    return pa.Table.from_arrays([column if column.type == kind else column.cast(kind) for column, kind in pairs], schema=schema)


def numbers_of(part: PartOfFiles) -> RowNumbers:
    """Return the numbers of the rows of a part."""
    assert part.numbers is not None, "the rows of slices are numbered"
    return part.numbers


def _part_at(part: PartOfFiles, begin: int, size: int) -> PartOfFiles:
    """Return a range of rows without a copy; it keeps only the chunks in memory that it lies in."""
    return replace(part, table=part.table.slice(begin, size), numbers=numbers_of(part)[begin : begin + size])
