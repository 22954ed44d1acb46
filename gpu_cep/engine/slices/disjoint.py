"""Take the matches that ``skip_past_last`` keeps while slices come, and hold back those that a later slice may still overrule."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.events.key_hashes import are_among
from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.positions import Positions, choose_disjoint, order_rows_by_stream
from gpu_cep.engine.events.settling import Borders
from gpu_cep.engine.input.chunk_dictionaries import without_others
from gpu_cep.engine.input.machine_values import machine_values
from gpu_cep.engine.input.ticks import LATEST, Tick
from gpu_cep.engine.input.time_cut import FileSlice
from gpu_cep.engine.slices.held_matches import FEWEST, PER_NEW, Held, HeldMarks, HeldRows, MarkedRows
from gpu_cep.engine.slices.sliced_plan import SlicedPlan
from gpu_cep.engine.slices.streams import bits_of_streams, number_streams


@dataclass(frozen=True, slots=True, eq=False)
class LaterMatches:
    """When a match of a later run may begin, at the earliest: at `time`, and in the stream of each row of `keys` at one of `times`.

    `keys` has the columns of `partition_by` (None: the time is that of all streams).
    """

    time: Tick
    keys: pa.Table | None = None
    times: npt.NDArray[Any] = field(default_factory=partial(np.empty, 0, np.int64))


def borders_of(own: FileSlice) -> Borders:
    """Return by which events of a slice its run settles which matches are kept."""
    return Borders.of_times(TimeSlice(own.begin, own.end), own.reached)


def take_decided(sliced: SlicedPlan, held: Held, found: pa.Table, later: LaterMatches | None, *, waits: bool) -> tuple[pa.Table, Held]:
    """Return the matches that are kept for certain, in the order of results, and what the next run needs.

    Parameters
    ----------
    sliced
        The plan, whose results end with keys, time and place of first and last events.
    held
        What was held back of earlier runs.
    found
        The matches of this run. Those that it has settled (:mod:`gpu_cep.engine.events.settling`) are kept, and bear on no others.
    later
        When a match of a later run may begin (None: there is no later run).
    waits
        Whether a match of a later run may complete before one of this run. Then those are decided that end before it can begin.
    """
    if later is None or len(held) < max(FEWEST, PER_NEW * found.num_rows) or not sliced.whole.query.partition_by:
        given = np.concatenate([held.given, np.zeros(found.num_rows, np.bool_)])
        return _decide(sliced, HeldRows(pa.concat_tables([held.rows, found]), given), later, waits=waits)
    new = _marked(sliced, HeldRows(found, np.zeros(found.num_rows, np.bool_)))
    known = _marked(sliced, held).with_more(new)
    near = _of_moving_streams(known, new, later, waits=waits)
    taken, still = _decide(sliced, known.at(np.flatnonzero(near)), later, waits=waits)
    return taken, known.at(np.flatnonzero(~near)).with_more(_marked(sliced, still, later))


def _of_moving_streams(known: MarkedRows, new: MarkedRows, later: LaterMatches, *, waits: bool) -> Flags:
    """Return which held matches, the last of which are `new`, are of streams in which one may be decided or given up.

    A few others may be among them. New ones that their run has settled end before any later match can begin, so they are, too.
    """
    moving = known.marks.due < later.time
    if not waits:
        moving[len(known) - len(new) :] = True
    return are_among(known.marks.keys, known.marks.keys[moving])


def _marked(sliced: SlicedPlan, held: Held, later: LaterMatches | None = None) -> MarkedRows:
    """Return held matches with their marks; `later` is that of the run which has just held them back, if one has.

    One that has been reported, and is kept although it ended before, waits for an open one of its stream. So it has no time of its own.
    """
    if isinstance(held, MarkedRows):
        return held
    due = _positions(sliced, held.rows)[1][0]
    if later is not None and later.keys is None:
        due = np.where(held.given & (due < later.time), _latest(due), due)
    return held.marked(HeldMarks(bits_of_streams(sliced.whole.query, keys_of(sliced, held.rows)), due))


def _latest(times: npt.NDArray[Any]) -> Tick:
    """Return the latest time of the type of some times."""
    return LATEST if times.dtype.kind == "i" else np.inf


def _decide(sliced: SlicedPlan, held: Held, later: LaterMatches | None, *, waits: bool) -> tuple[pa.Table, HeldRows]:
    """Return what :func:`take_decided` does of matches that are held or new, by ranking the streams of all."""
    rows, given = without_others(held.rows), held.given
    first, last = _positions(sliced, rows)
    streams, begins = _begins(sliced, keys_of(sliced, rows), later, first[0])
    settled = rows.column(rows.num_columns - 1).is_null().to_numpy()
    decided = given | (np.ones(len(given), np.bool_) if later is None or not waits else last[0] < begins[streams])
    among = np.flatnonzero(decided & ~settled)
    taken = among[choose_disjoint(streams[among], _at(first, among), _at(last, among))]
    in_order = _by_start(streams, first, np.sort(np.concatenate([taken[~given[taken]], np.flatnonzero(settled)])))
    still_open = np.flatnonzero(~decided)
    # those taken that one still open, or one to come, may overlap
    np.minimum.at(begins, streams[still_open], first[0][still_open])
    near = taken[:0] if later is None else taken[last[0][taken] >= begins[streams[taken]]]
    kept = np.concatenate([near, still_open])
    starts = [streams[in_order], *_at(first, in_order)]
    return _numbered(sliced, _rows_at(rows, in_order), starts), HeldRows(rows.take(kept), np.arange(len(kept)) < len(near))


def _begins(sliced: SlicedPlan, keys: pa.Table, later: LaterMatches | None, times: npt.NDArray[Any]) -> tuple[Indices, npt.NDArray[Any]]:
    """Return the stream of each row with these `keys`, and when a later match may begin in each stream; `times` has the type of that."""
    # results may name keys in another way, and have plain text for dictionaries
    named = None if later is None or later.keys is None else later.keys.rename_columns(keys.column_names)
    others = keys.slice(0, 0) if named is None else named.cast(keys.schema)
    streams, firsts = number_streams(sliced.whole.query, pa.concat_tables([keys, others]), len(times) + others.num_rows)
    last = _latest(times)
    begins = np.full(len(firsts), last if later is None else min(later.time, last), times.dtype)
    if later is not None:
        np.minimum.at(begins, streams[len(times) :], later.times)
    return streams[: len(times)], begins


def _by_start(streams: Indices, first: Positions, matches: Indices) -> Indices:
    """Return the matches by stream and first event; those of one slice most often come so."""
    order: Indices = matches[order_rows_by_stream(streams[matches], [first[1][matches], first[0][matches]])]
    return order


def _rows_at(rows: pa.Table, places: Indices) -> pa.Table:
    """Return the rows at some places, without a copy if they follow each other."""
    if len(places) and (np.diff(places) == 1).all():
        return rows.slice(int(places[0]), len(places))
    return rows.take(places)


def _numbered(sliced: SlicedPlan, rows: pa.Table, starts: list[Any]) -> pa.Table:
    """Return rows of matched events with a number for each match, which are different in one stream; other rows as they are."""
    if sliced.whole.settings.output != "events":
        return rows
    moved = np.logical_or.reduce([values[1:] != values[:-1] for values in starts])
    numbers = np.concatenate([np.zeros(min(rows.num_rows, 1), np.int64), np.cumsum(moved)])
    return rows.set_column(0, rows.schema.field(0), pa.array(numbers))


def keys_of(sliced: SlicedPlan, rows: pa.Table) -> pa.Table:
    """Return the stream keys of rows of results."""
    # results begin with their keys, or with their kind and then their keys; or what slices add holds these
    kinds = int(sliced.whole.settings.kind is not None)
    begin = rows.num_columns - 2 * len(sliced.added) if sliced.keys else kinds
    return rows.select(range(begin, begin + len(sliced.whole.query.partition_by)))


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
