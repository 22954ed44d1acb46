"""Take the matches that ``skip_past_last`` keeps while slices come, and hold back those that a later slice may still overrule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.events.positions import Positions, choose_disjoint
from gpu_cep.engine.input.machine_values import machine_values
from gpu_cep.engine.slices.sliced_plan import SlicedPlan
from gpu_cep.engine.slices.streams import number_streams

Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Rows of matches that bear on those of later slices; those that are `given` have been reported."""

    rows: pa.Table
    given: Marks


def take_decided(
    sliced: SlicedPlan, held: Held, found: pa.Table, end: int | float | None, later: int | float | None
) -> tuple[pa.Table, Held]:  # fmt: skip
    """Return the matches that are kept for certain, in the order of results, and what the next run needs.

    Parameters
    ----------
    sliced
        The plan, whose results end with keys, time and place of first and last events.
    held
        What was held back of earlier runs.
    found
        The matches of this run.
    end
        Matches that end before this time are decided: no match of a later run completes before them. None: all are decided.
    later
        The earliest time at which a match of a later run may begin (None: there is none).
    """
    rows = pa.concat_tables([held.rows, found])
    given = np.concatenate([held.given, np.zeros(found.num_rows, np.bool_)])
    streams, _ = number_streams(sliced.whole.query, keys_of(sliced, rows), rows.num_rows)
    first, last = _positions(sliced, rows)
    # a match that completes before the end is not overruled by one that begins there
    decided = given | (np.ones(len(given), np.bool_) if end is None else last[0] < end)
    among = np.flatnonzero(decided)
    taken = among[choose_disjoint(streams[among], _at(first, among), _at(last, among))]
    new = taken[~given[taken]]
    in_order = new[np.lexsort([first[1][new], first[0][new], streams[new]])]
    still_open = np.flatnonzero(~decided)
    # those taken that one still open, or one to come, may overlap
    begins = [*first[0][still_open].tolist(), *([] if later is None else [later])]
    near = taken[last[0][taken] >= min(begins)] if begins else still_open
    kept = np.concatenate([near, still_open])
    starts = [streams[in_order], *_at(first, in_order)]
    return _numbered(sliced, rows.take(in_order), starts), Held(rows.take(kept), np.arange(len(kept)) < len(near))


def _numbered(sliced: SlicedPlan, rows: pa.Table, starts: list[Any]) -> pa.Table:
    """Return rows of matched events with a number for each match, which are different in one stream; other rows as they are."""
    if sliced.whole.settings.output != "events":
        return rows
    moved = np.logical_or.reduce([values[1:] != values[:-1] for values in starts])
    numbers = np.concatenate([np.zeros(min(rows.num_rows, 1), np.int64), np.cumsum(moved)])
    return rows.set_column(0, rows.schema.field(0), pa.array(numbers))


def keys_of(sliced: SlicedPlan, rows: pa.Table) -> pa.Table:
    """Return the stream keys of rows of results."""
    number = len(sliced.whole.query.partition_by)
    begin = rows.num_columns - 2 * len(sliced.added) if sliced.keys else 0
    return rows.select(range(begin, begin + number))


def _positions(sliced: SlicedPlan, rows: pa.Table) -> tuple[Positions, Positions]:
    """Return the positions of first and last events: time and place."""
    last = rows.num_columns - 2
    first = last - len(sliced.added)
    return _position(rows, first), _position(rows, last)


def _position(rows: pa.Table, column: int) -> Positions:
    time, place = (machine_values(_joined(rows.column(each)), rows.schema.names[each]) for each in (column, column + 1))
    return (time.astype(np.float64) if time.dtype.kind == "f" else time.astype(np.int64)), place


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _at(positions: Positions, rows: npt.NDArray[np.int64]) -> Positions:
    times, places = positions
    return times[rows], places[rows]
