"""Find the preferred matches of a pattern over labels: each row is mapped by the first move that leads on."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.row_patterns.tables import (
    ACCEPT,
    NOWHERE,
    UNMATCHED,
    Reach,
    RowAutomatonTable,
    SkipTo,
    first_source,
    limit_of,
    next_state,
)


@rule
def next_start(start: int, length: int, to: int, first: int, last: int) -> int:
    """Return where the search goes on behind a match with rows, of which `first` and `last` are those to skip to.

    The result is −1 if there are none, and `start` if the match would be found again.
    """
    target = start + length
    if to == SkipTo.NEXT_ROW:
        target = start + 1
    elif to == SkipTo.FIRST:
        target = first
    elif to == SkipTo.LAST:
        target = last
    return target


@kernel(writes=("lengths", "faults", "looks", "trail", "trail_end"))
def find_row_matches(
    low: int, high: int, offsets: Any, automaton: RowAutomatonTable, reach: Reach, to: int, lengths: Any, faults: Any, looks: Any,
    trail: Any, trail_end: Any,
) -> None:  # fmt: skip
    """``lengths[r]``: how many rows the match has that begins in row r of partition p in [low, high); UNMATCHED where none begins.

    `to` says where the search goes on (SkipTo). ``faults[p]`` is the row of a match that has no row to skip to, or begins
    with it; the partition is then left. ``looks[p]`` counts the rows for which a state was sought. `trail`, `trail_end`
    remember the state of each row and the end that it leads to, so that rows that matches share are followed once. They
    are empty where windows make ends depend on the start, or matches share no rows.
    """
    for p in range(low, high):
        begin, end = offsets[p], offsets[p + 1]
        start, sought = begin, 0
        while start < end:
            sought += 1
            limit = limit_of(start, end, reach)
            state = next_state(first_source(start, begin, automaton), start, limit, automaton, reach)
            if state == NOWHERE:
                lengths[start] = UNMATCHED
                start += 1
            elif state == ACCEPT:
                lengths[start] = 0
                start += 1
            else:
                row, first, last = start, -1, -1
                stop = -1
                while state >= 0:
                    if trail.size > 0 and trail[row] == state:
                        stop = trail_end[row]
                        break
                    if automaton.target[state]:
                        first = row if first < 0 else first
                        last = row
                    if trail.size > 0:
                        trail[row] = state
                    row += 1
                    sought += 1
                    state = next_state(state, row, limit, automaton, reach) if row < end else ACCEPT
                stop = row if stop < 0 else stop
                if trail.size > 0:
                    for r in range(start, row):
                        trail_end[r] = stop
                lengths[start] = stop - start
                target = next_start(start, stop - start, to, first, last)
                if target <= start:
                    faults[p] = start
                    target = end
                start = target
        looks[p] = sought


@kernel(writes=("trail", "first", "last"))
def find_shared_rows(
    low: int, high: int, offsets: Any, lengths: Any, automaton: RowAutomatonTable, reach: Reach, members: Any, trail: Any, first: Any,
    last: Any,
) -> None:  # fmt: skip
    """``first[r]``, ``last[r]``: the first and the last row from r on whose state is one of `members`, in the match that begins in row r.

    They are −1 if there is none. ``lengths[r]`` says whether a match with rows begins there. There are no windows, so rows that
    matches share are followed once; `trail` remembers the state of each row, and is given as −1.
    """
    for p in range(low, high):
        begin, end = offsets[p], offsets[p + 1]
        for start in range(begin, end):
            if lengths[start] > 0:
                row = start
                state = next_state(first_source(start, begin, automaton), row, end - 1, automaton, reach)
                while state >= 0 and trail[row] != state:
                    trail[row] = state
                    row += 1
                    state = next_state(state, row, end - 1, automaton, reach) if row < end else ACCEPT
                following, final = (first[row], last[row]) if state >= 0 else (-1, -1)
                for r in range(row - 1, start - 1, -1):
                    if members[trail[r]]:
                        following = r
                        final = r if final < 0 else final
                    first[r] = following
                    last[r] = final


@kernel(writes=("states",))
def map_rows(
    low: int, high: int, firsts: Any, begins: Any, places: Any, automaton: RowAutomatonTable, reach: Reach, limits: Any, states: Any
) -> None:  # fmt: skip
    """``states[places[m] + k]``: the state that maps row ``firsts[m] + k`` of match m, whose partition begins at row ``begins[m]``.

    ``limits[m]``: the last row that the match may have.
    """
    for m in range(low, high):
        row, place = firsts[m], places[m]
        state = first_source(row, begins[m], automaton)
        for k in range(places[m + 1] - place):
            state = next_state(state, row + k, limits[m], automaton, reach)
            states[place + k] = state


@kernel(writes=("rows",))
def find_mapped_rows(
    low: int, high: int, firsts: Any, places: Any, states: Any, members: Any, step: int, offset: int, rows: Any
) -> None:  # fmt: skip
    """``rows[m]``: the row of match m whose state is one of `members`, by `offset` such rows behind the first or before the last one.

    It is −1 if there is none. `step` is 1 to count from the first row on, and −1 from the last one back.
    """
    for m in range(low, high):
        begin, end = places[m], places[m + 1]
        place = begin if step > 0 else end - 1
        left, found = offset, -1
        while found < 0 and begin <= place < end:
            if members[states[place]]:
                if left == 0:
                    found = firsts[m] + place - begin
                left -= 1
            place += step
        rows[m] = found
