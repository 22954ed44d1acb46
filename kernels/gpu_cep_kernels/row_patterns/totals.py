"""Aggregate over the rows of matches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.compile.operations import exact_product
from gpu_cep_kernels.rules.running import SUM_OVERFLOWED, Aggregation
from gpu_cep_kernels.rules.scalars import add_ints
from gpu_cep_kernels.rules.tables import Flags, Ints, Places


class MatchEntries(NamedTuple):
    """Say which values are aggregated. An entry e is a row of a match; those of match m are ``places[m]`` to before ``places[m + 1]``.

    - firsts[m]: the row whose value is that of the first entry; the next rows follow.
    - rows[r]: where the value of row r stands; empty if it stands at r.
    - states[e], members: of the state of an entry, whether it is covered; empty if all are.
    """

    places: Ints
    firsts: Ints
    rows: Ints
    states: Places
    members: Flags


@rule
def _place_of(e: int, m: int, entries: MatchEntries) -> int:
    """Return where the value of entry e of match m stands."""
    at = entries.firsts[m] + e - entries.places[m]
    return entries.rows[at] if entries.rows.size > 0 else at


@rule
def _counts(e: int, at: int, entries: MatchEntries, nulls: Any) -> bool:
    """Return whether entry e is covered, and its value, which stands at `at`, is not NULL."""
    covered = entries.members.size == 0 or entries.members[entries.states[e]]
    return covered & (nulls.size == 0 or not nulls[at])


@kernel(writes=("counts", "totals"))
def total_ints(
    low: int, high: int, entries: MatchEntries, values: Any, nulls: Any, step: int, every: bool, counts: Any, totals: Any
) -> None:  # fmt: skip
    """``totals[m]``: the sum, the least or the greatest (`step`) of int64; with `every`, ``totals[e]`` covers the entries up to e.

    ``counts`` says of how many values, and SUM_OVERFLOWED if the total does not fit. `nulls` is empty where nothing is NULL,
    and `values` if they are only counted.
    """
    for m in range(low, high):
        count, total = 0, 0
        for e in range(entries.places[m], entries.places[m + 1]):
            at = _place_of(e, m, entries)
            value = values[at] if values.size > 0 else 0
            counted = _counts(e, at, entries, nulls)
            if step == Aggregation.COUNT_EVENTS:
                count += counted
            elif count >= 0 and counted:
                if step == Aggregation.SUM_INTS:
                    total, wrapped = add_ints(total, value)
                    count = SUM_OVERFLOWED if wrapped else count + 1
                else:
                    if count == 0 or (value < total if step == Aggregation.MIN_INTS else value > total):
                        total = value
                    count += 1
            if every:
                counts[e] = count
                totals[e] = total
        if not every:
            counts[m] = count
            totals[m] = total


@kernel(writes=("counts", "totals"))
def total_floats(
    low: int, high: int, entries: MatchEntries, values: Any, nulls: Any, step: int, every: bool, counts: Any, totals: Any
) -> None:  # fmt: skip
    """Do as :func:`total_ints`, for float64 in their order; a total with NaN is NaN."""
    for m in range(low, high):
        count, total = 0, 0.0
        for e in range(entries.places[m], entries.places[m + 1]):
            at = _place_of(e, m, entries)
            value = values[at]
            counted = _counts(e, at, entries, nulls)
            lesser = value < total if step == Aggregation.MIN_FLOATS else value > total
            if step == Aggregation.SUM_FLOATS:
                # a total is never −0.0, so that 0.0 changes none
                total += value if counted else 0.0
            elif counted and (count == 0 or value != value or lesser):
                total = value
            count += counted
            if every:
                counts[e] = count
                totals[e] = total
        if not every:
            counts[m] = count
            totals[m] = total


@kernel(writes=("counts", "totals"), scratch=("room",))
def running_medians(low: int, high: int, offsets: Any, values: Any, nulls: Any, room: Any, counts: Any, totals: Any) -> None:
    """``totals[e]``: the middle of the float64 of a segment up to place e, or the mean of the two middle ones; NaN if one value is.

    Segment m is ``values[offsets[m]:offsets[m + 1]]``. ``counts[e]`` says of how many. `nulls` is empty where nothing is NULL.
    `room` is as long as `values`: the values of a segment are kept in order there.
    """
    for m in range(low, high):
        begin = offsets[m]
        end, broken = begin, False
        for e in range(begin, offsets[m + 1]):
            if nulls.size == 0 or not nulls[e]:
                value = values[e]
                broken = broken or value != value
                place = end
                while place > begin and room[place - 1] > value:
                    room[place] = room[place - 1]
                    place -= 1
                room[place] = value
                end += 1
            counts[e] = end - begin
            middle = (begin + end) // 2
            totals[e] = 0.0
            if end > begin:
                # the sum of one value with itself may be infinite
                totals[e] = room[middle] if (end - begin) % 2 == 1 else exact_product(room[middle - 1] + room[middle], 0.5)
            if broken:
                totals[e] = np.nan
