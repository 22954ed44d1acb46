"""Put the results of slices together: add up counts, number matches, take matches apart, sort by stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.accounting.match_budget import refuse_uncountable
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.output.result_tables import plain_zeros
from gpu_cep.engine.slices.disjoint import LaterMatches, keys_of, take_decided
from gpu_cep.engine.slices.held_matches import Held, HeldRows
from gpu_cep.engine.slices.sliced_plan import SlicedPlan
from gpu_cep.engine.slices.streams import number_streams
from gpu_cep.errors import LESS_MEMORY, MatchLimitExceeded, ending_in
from gpu_cep_kernels.matches.groups import order_by_group

# What a run over a slice found, and the end of the slice.
SliceResult = tuple[pa.Table, int | float | None]
MATCH_ID = "match_id"


def results_of_slices(sliced: SlicedPlan, found: Iterable[SliceResult], profile: Profile | None) -> Iterator[pa.Table]:
    """Yield the rows of the result as slices decide them, with added columns; those of one table are in the order of results.

    The rows of ``skip_past_last`` come with the slice by which they are certain. Counts come once, at the end. The `profile`
    receives how many matches are kept, where runs over slices do not know it.

    Raises
    ------
    MatchLimitExceeded
        More matches are kept than the settings allow, or than a count can say.
    """
    decided = _decided(sliced, found) if sliced.takes else (table for table, _ in found)
    if profile is not None and sliced.plan.ends and sliced.whole.may_leave_out:
        decided = _counted(sliced, decided, profile)
    if sliced.totals:
        return iter([total_of(sliced, decided)])
    return _numbered(sliced, decided) if sliced.whole.settings.output == "events" else decided


def whole_result(sliced: SlicedPlan, tables: Iterable[pa.Table]) -> pa.Table:
    """Return the result in the order of a run without slices, from the tables that :func:`results_of_slices` gives."""
    rows = pa.concat_tables(list(tables))
    with ending_in(MatchLimitExceeded, f"sorting the result of {rows.num_rows:,} rows", LESS_MEMORY):
        keyed = bool(sliced.whole.query.partition_by) and not sliced.totals
        return drop_added(sliced, _by_stream(sliced, rows) if keyed else rows)


def drop_added(sliced: SlicedPlan, rows: pa.Table) -> pa.Table:
    """Return rows of results without what was added for slices."""
    return rows if sliced.totals else rows.select(range(rows.num_columns - 2 * len(sliced.added)))


def _by_stream(sliced: SlicedPlan, rows: pa.Table) -> pa.Table:
    """Return the rows by stream; those of a stream are in order."""
    streams, firsts = number_streams(sliced.whole.query, keys_of(sliced, rows), rows.num_rows)
    if (streams[1:] >= streams[:-1]).all():
        return rows
    order, _ = order_by_group(streams, len(firsts))
    try:
        return rows.take(order)
    except pa.ArrowInvalid as fault:
        raise MatchLimitExceeded(f"the result of {rows.num_rows:,} rows: {fault}; {LESS_MEMORY}") from fault


def _counted(sliced: SlicedPlan, kept: Iterable[pa.Table], profile: Profile) -> Iterator[pa.Table]:
    """Yield the tables of kept matches, and count these in the profile."""
    for table in kept:
        profile.add("kept", _number_of_matches(sliced, table))
        yield table


def _decided(sliced: SlicedPlan, found: Iterable[SliceResult]) -> Iterator[pa.Table]:
    """Yield the matches that ``skip_past_last`` keeps, as soon as that is certain."""
    held: Held | None = None
    kept, most = 0, sliced.whole.settings.max_matches
    for table, end in found:
        before = HeldRows(table.slice(0, 0), np.zeros(0, np.bool_)) if held is None else held
        taken, held = take_decided(sliced, before, table, None if end is None else LaterMatches(end), waits=True)
        if most is not None:
            kept += _number_of_matches(sliced, taken)
            if kept > most:
                raise MatchLimitExceeded(f"more than max_matches={most:,} matches")
        yield taken


def _number_of_matches(sliced: SlicedPlan, rows: pa.Table) -> int:
    if sliced.totals:
        return int(rows.column(sliced.count_column).to_numpy().sum())
    if sliced.whole.settings.output != "events":
        return int(rows.num_rows)
    streams, _ = number_streams(sliced.whole.query, keys_of(sliced, rows), rows.num_rows)
    return int(_begins(rows.column(MATCH_ID).to_numpy(), streams).sum())


def _numbered(sliced: SlicedPlan, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of matched events with the numbers that the matches have in their stream, slices before counted."""
    numbering: MatchNumbering | None = None
    for rows in tables:
        numbered, numbering = number_matches(sliced, numbering, rows)
        yield numbered


@dataclass(frozen=True, slots=True, eq=False)
class MatchNumbering:
    """The keys of streams, and how many matches of each have been numbered."""

    keys: pa.Table
    counts: Indices

    @property
    def total(self) -> int:
        """Return how many matches have been numbered in all streams."""
        return int(self.counts.sum())


def number_matches(sliced: SlicedPlan, before: MatchNumbering | None, rows: pa.Table) -> tuple[pa.Table, MatchNumbering]:
    """Return rows of matched events with the numbers that the matches have in their stream behind those before, and the numbering."""
    keys = keys_of(sliced, rows)
    known, counted = (keys.slice(0, 0), np.empty(0, np.int64)) if before is None else (before.keys, before.counts)
    every = pa.concat_tables([known, keys])
    streams, firsts = number_streams(sliced.whole.query, every, len(counted) + rows.num_rows)
    counts = np.zeros(len(firsts), np.int64)
    counts[streams[: len(counted)]] = counted
    own = streams[len(counted) :]
    begins = _begins(rows.column(MATCH_ID).to_numpy(), own)
    through = np.cumsum(begins)
    # the number of matches of the table before those of each stream; its streams ascend
    earlier: Indices = (through - begins)[np.searchsorted(own, own)]
    numbers = counts[own] + through - 1 - earlier
    place = rows.schema.get_field_index(MATCH_ID)
    numbered = rows.set_column(place, rows.schema.field(place), pa.array(numbers))
    return numbered, MatchNumbering(every.take(firsts), counts + np.bincount(own[begins], minlength=len(firsts)))


def _begins(ids: Indices, streams: Indices) -> npt.NDArray[np.bool_]:
    """Return with which rows a match begins, which has one of the `ids` in its stream; the rows of a match are together."""
    begins: npt.NDArray[np.bool_] = (np.diff(ids, prepend=-1) != 0) | (np.diff(streams, prepend=-1) != 0)
    return begins


def total_of(sliced: SlicedPlan, tables: Iterable[pa.Table]) -> pa.Table:
    """Return the sum of the numbers of matches of each stream, in the order of streams."""
    keys = len(sliced.whole.query.partition_by)
    places = [*range(keys), sliced.count_column]
    total: pa.Table | None = None
    for rows in tables:
        counts = rows.select(places)
        total = add_up(sliced, counts if total is None else pa.concat_tables([total, counts]))
    assert total is not None, "there is a slice"
    return total


def add_up(sliced: SlicedPlan, rows: pa.Table) -> pa.Table:
    """Return a row for each stream with the sum of its counts; without keys there is one, also of nothing."""
    *keys, last = range(rows.num_columns)
    counts = rows.column(last).to_numpy()
    refuse_uncountable(float(counts.sum(dtype=np.float64)))
    if not keys:
        return pa.Table.from_arrays([pa.array([counts.sum()], pa.int64())], schema=rows.schema)
    streams, firsts = number_streams(sliced.whole.query, rows.select(keys), rows.num_rows)
    sums = np.zeros(len(firsts), np.int64)
    np.add.at(sums, streams, counts)
    of_streams = rows.take(firsts)
    plain = [plain_zeros(of_streams.column(key)) for key in keys]
    return pa.Table.from_arrays([*plain, pa.array(sums)], schema=rows.schema)
