"""Search for the preferred match where conditions read the match so far: depth first, in order of preference."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.row_patterns.conditions import Arguments, Here, Mapped, MatchConditionTable, judge, map_row, reset, unmap_row
from gpu_cep_kernels.row_patterns.matches import next_start
from gpu_cep_kernels.row_patterns.memo import Memo, knows_dead_end, learn_dead_end
from gpu_cep_kernels.row_patterns.tables import UNMATCHED, Reach, RowAutomatonTable, first_source, leads_on, limit_of
from gpu_cep_kernels.rules.tables import ColumnBank, Ints, Places, ProgramTable, Variables

# Instead of a length: which match begins at a row is still sought, or not certain.
_SOUGHT, _UNCERTAIN = UNMATCHED - 1, UNMATCHED - 2


class Outcome(IntEnum):
    """Name why a search returned."""

    DONE = 0
    PAUSED = 1  # so many steps are made, or dead ends forgotten
    FULL = 2  # the match does not fit: grow the states found
    FAILED = 3  # a condition could not be computed
    NO_TARGET = 4  # a match has no row to skip to, or begins with it


class SearchState(NamedTuple):
    """Hold where a search is, so that it can go on.

    - numbers: those that SearchNumber names.
    - path[d]: the state of the d-th row of the match; ``cursor[d]`` is the next move to try for it.
    - found: the states of the rows of all matches found.
    """

    numbers: Ints
    path: Variables
    cursor: Ints
    found: Places


class _SearchNumber(NamedTuple):
    """Name the numbers of a search."""

    PARTITION: int = 0
    LAST_PARTITION: int = 1  # the one before which it ends
    START: int = 2  # −1: the partition's first row comes next
    DEPTH: int = 3
    FOUND: int = 4  # how many states are found
    STEPS: int = 5  # those of this call


SearchNumber = _SearchNumber()


@rule
def _target_rows(start: int, depth: int, path: Any, automaton: RowAutomatonTable) -> tuple[int, int]:
    """Return the first and the last row of a match that is mapped to the variable to skip to, −1 if there is none."""
    first, last = -1, -1
    for d in range(depth):
        if automaton.target[path[d]]:
            first = start + d if first < 0 else first
            last = start + d
    return first, last


@sequential(writes=("firsts", "state", "lengths", "memo", "bank"), scratch=("mapped",))
def search_row_matches(
    offsets: Any, firsts: Any, automaton: RowAutomatonTable, reach: Reach, to: int, table: MatchConditionTable, programs: ProgramTable,
    bank: ColumnBank, arguments: Arguments, most_steps: int, mapped: Mapped, memo: Memo, state: SearchState, lengths: Any,
) -> int:  # fmt: skip
    """Find the matches of the partitions that `state` names, as :func:`find_row_matches`; return an Outcome.

    It returns after `most_steps` steps at the latest, or when it has forgotten too many dead ends. It goes on when it is
    called again. The states of the rows of each match are appended to ``state.found``.

    ``firsts[p]``: the row of partition p with which the search begins. Then it is the one behind the partition, or the first
    one of which it is not certain which match begins there: a preferred one could go on with a row that is not known yet.
    Such rows may come in a window whose last row is given as the one behind the partition.
    """
    numbers, path, cursor, found = state.numbers, state.path, state.cursor, state.found
    windows = reach.limits.size > 0
    outcome = -1
    steps = 0
    while outcome < 0:
        p = numbers[SearchNumber.PARTITION]
        if p >= numbers[SearchNumber.LAST_PARTITION]:
            outcome = Outcome.DONE
            continue
        begin, end = offsets[p], offsets[p + 1]
        start, depth = numbers[SearchNumber.START], numbers[SearchNumber.DEPTH]
        if start < 0:
            start, depth = firsts[p], 0
            cursor[0] = automaton.move_first[first_source(start, begin, automaton)]
            reset(mapped)
            if start >= end:
                numbers[SearchNumber.PARTITION] = p + 1
                continue
        limit = limit_of(start, end, reach)
        length = _SOUGHT
        while length == _SOUGHT and outcome < 0:
            source = path[depth - 1] if depth > 0 else first_source(start, begin, automaton)
            row = start + depth
            steps += 1
            closed = row == end and limit < end
            if closed and automaton.ends[source]:
                length = depth
            elif closed or cursor[depth] == automaton.move_first[source + 1]:
                # no move is left: the row before is mapped otherwise
                if depth == 0:
                    length = UNMATCHED
                else:
                    depth -= 1
                    learn_dead_end(path[depth], Here(begin, end, start, start + depth), windows, table, bank, mapped, memo)
                    unmap_row(automaton.variable[path[depth]], table, mapped)
                    if memo.lost[0] > memo.most_lost:
                        outcome = Outcome.PAUSED
            else:
                q = automaton.moves[cursor[depth]]
                cursor[depth] += 1
                if q < 0:
                    length = depth
                elif row == end:
                    length = _UNCERTAIN
                elif leads_on(q, row, limit, reach):
                    v = automaton.variable[q]
                    here = Here(begin, end, start, row)
                    map_row(row, v, table, arguments, bank, mapped)
                    truth = judge(v, here, table, programs, bank, mapped)
                    if truth == 1 and not knows_dead_end(q, here, windows, table, bank, mapped, memo):
                        path[depth] = q
                        depth += 1
                        cursor[depth] = automaton.move_first[q]
                    else:
                        unmap_row(v, table, mapped)
                    if truth < 0:
                        outcome = Outcome.FAILED
            if steps >= most_steps and outcome < 0 and length == _SOUGHT:
                outcome = Outcome.PAUSED
        place = numbers[SearchNumber.FOUND]
        if length > 0 and place + length > found.size:
            outcome = Outcome.FULL
            # the match is found again, from its last move on
            cursor[depth] -= 0 if start + depth == end and limit < end else 1
        elif length == _UNCERTAIN:
            firsts[p] = start
            p += 1
            start = -1
        elif length >= UNMATCHED:
            lengths[start] = length
            target = start + 1
            if length > 0:
                for d in range(length):
                    found[place + d] = path[d]
                numbers[SearchNumber.FOUND] = place + length
                first, last = _target_rows(start, length, path, automaton)
                target = next_start(start, length, to, first, last)
                if target <= start:
                    outcome = Outcome.NO_TARGET
            if outcome < 0:
                start, depth = target, 0
                reset(mapped)
                cursor[0] = automaton.move_first[first_source(start, begin, automaton)]
                if start >= end:
                    firsts[p] = start
                    p += 1
                    start = -1
        numbers[SearchNumber.PARTITION], numbers[SearchNumber.START], numbers[SearchNumber.DEPTH] = p, start, depth
    numbers[SearchNumber.STEPS] = steps
    return outcome
