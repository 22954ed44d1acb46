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
# Instead of an Outcome: the search goes on.
_GOES_ON = -1


class Outcome(IntEnum):
    """Name why a search returned."""

    DONE = 0
    PAUSED = 1  # so many steps are made, or dead ends forgotten
    FULL = 2  # the match does not fit: grow the states found
    FAILED = 3  # a condition could not be computed
    NO_TARGET = 4  # a match has no row to skip to, or begins with it


class Searched(NamedTuple):
    """Hold what a search reads: the automaton, the rows that matches may reach, SkipTo (`to`), and what conditions need."""

    automaton: RowAutomatonTable
    reach: Reach
    to: int
    table: MatchConditionTable
    programs: ProgramTable
    arguments: Arguments


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


@rule
def _begin_match(start: int, begin: int, automaton: RowAutomatonTable, cursor: Ints, mapped: Mapped) -> None:
    """Begin a match in row `start` of a partition from row `begin` on: no row is mapped, and all moves are left."""
    reset(mapped)
    cursor[0] = automaton.move_first[first_source(start, begin, automaton)]


@rule
def _take_back(
    depth: int, here: Here, searched: Searched, bank: ColumnBank, mapped: Mapped, memo: Memo, path: Variables
) -> tuple[int, int, int]:  # fmt: skip
    """Take back the last row, behind which there is no match; return what :func:`_step` does."""
    outcome, length = _GOES_ON, _SOUGHT
    if depth == 0:
        length = UNMATCHED
    else:
        depth -= 1
        last = Here(here.begin, here.end, here.start, here.start + depth)
        learn_dead_end(path[depth], last, searched.reach.limits.size > 0, searched.table, bank, mapped, memo)
        unmap_row(searched.automaton.variable[path[depth]], searched.table, mapped)
        if memo.lost[0] > memo.most_lost:
            outcome = Outcome.PAUSED
    return depth, length, outcome


@rule
def _map_next(
    q: int, depth: int, here: Here, searched: Searched, bank: ColumnBank, mapped: Mapped, memo: Memo, state: SearchState
) -> tuple[int, int]:  # fmt: skip
    """Map the next row by a move to state q where conditions hold; return how many rows are mapped, and an Outcome."""
    table, v, outcome = searched.table, searched.automaton.variable[q], _GOES_ON
    map_row(here.row, v, table, searched.arguments, bank, mapped)
    truth = judge(v, here, table, searched.programs, bank, mapped)
    if truth == 1 and not knows_dead_end(q, here, searched.reach.limits.size > 0, table, bank, mapped, memo):
        state.path[depth] = q
        depth += 1
        state.cursor[depth] = searched.automaton.move_first[q]
    else:
        unmap_row(v, table, mapped)
    if truth < 0:
        outcome = Outcome.FAILED
    return depth, outcome


@rule
def _step(
    depth: int, limit: int, here: Here, searched: Searched, bank: ColumnBank, mapped: Mapped, memo: Memo, state: SearchState
) -> tuple[int, int, int]:  # fmt: skip
    """Try one move for the row behind those mapped, ``here.row``, or take back the last one.

    Returns
    -------
    depth, length, outcome
        How many rows are mapped then; the length of the match (`_SOUGHT`: not known yet); an
        Outcome, `_GOES_ON` for none.
    """
    automaton, cursor = searched.automaton, state.cursor
    length, outcome = _SOUGHT, _GOES_ON
    source = state.path[depth - 1] if depth > 0 else first_source(here.start, here.begin, automaton)
    closed = here.row == here.end and limit < here.end
    if closed and automaton.ends[source]:
        length = depth
    elif closed or cursor[depth] == automaton.move_first[source + 1]:
        depth, length, outcome = _take_back(depth, here, searched, bank, mapped, memo, state.path)
    else:
        q = automaton.moves[cursor[depth]]
        cursor[depth] += 1
        if q < 0:
            length = depth
        elif here.row == here.end:
            length = _UNCERTAIN
        elif leads_on(q, here.row, limit, searched.reach):
            depth, outcome = _map_next(q, depth, here, searched, bank, mapped, memo, state)
    return depth, length, outcome


@rule
def _add_match(start: int, length: int, searched: Searched, state: SearchState) -> int:
    """Append the states of a match's rows to those found; return the row where the search goes on, at most `start` if nowhere."""
    target = start + 1
    if length > 0:
        place = state.numbers[SearchNumber.FOUND]
        for d in range(length):
            state.found[place + d] = state.path[d]
        state.numbers[SearchNumber.FOUND] = place + length
        first, last = _target_rows(start, length, state.path, searched.automaton)
        target = next_start(start, length, searched.to, first, last)
    return target


@sequential(writes=("firsts", "state", "lengths", "memo", "bank"), scratch=("mapped",))
def search_row_matches(
    offsets: Any, firsts: Any, searched: Searched, bank: ColumnBank, most_steps: int, mapped: Mapped, memo: Memo, state: SearchState,
    lengths: Any,
) -> int:  # fmt: skip
    """Find the matches of the partitions that `state` names, as :func:`find_row_matches`; return an Outcome.

    It returns after `most_steps` steps at the latest, or when it has forgotten too many dead ends. It goes on when it is
    called again. The states of the rows of each match are appended to ``state.found``.

    ``firsts[p]``: the row of partition p with which the search begins. Then it is the one behind the partition, or the first
    one of which it is not certain which match begins there: a preferred one could go on with a row that is not known yet.
    Such rows may come in a window whose last row is given as the one behind the partition.
    """
    numbers, cursor, automaton = state.numbers, state.cursor, searched.automaton
    outcome, steps = _GOES_ON, 0
    while outcome == _GOES_ON:
        p = numbers[SearchNumber.PARTITION]
        if p >= numbers[SearchNumber.LAST_PARTITION]:
            outcome = Outcome.DONE
            continue
        begin, end = offsets[p], offsets[p + 1]
        start, depth = numbers[SearchNumber.START], numbers[SearchNumber.DEPTH]
        if start < 0:
            start, depth = firsts[p], 0
            if start >= end:
                numbers[SearchNumber.PARTITION] = p + 1
                continue
            _begin_match(start, begin, automaton, cursor, mapped)
        limit = limit_of(start, end, searched.reach)
        length = _SOUGHT
        while length == _SOUGHT and outcome == _GOES_ON:
            depth, length, outcome = _step(depth, limit, Here(begin, end, start, start + depth), searched, bank, mapped, memo, state)
            steps += 1
            if steps >= most_steps and outcome == _GOES_ON and length == _SOUGHT:
                outcome = Outcome.PAUSED
        # where the search goes on, if it does not go on here
        target = start
        if length > 0 and numbers[SearchNumber.FOUND] + length > state.found.size:
            outcome = Outcome.FULL
            # the match is found again, from its last move on
            cursor[depth] -= 0 if start + depth == end and limit < end else 1
        elif length >= UNMATCHED:
            lengths[start] = length
            target = _add_match(start, length, searched, state)
            if target <= start:
                outcome = Outcome.NO_TARGET
        if length == _UNCERTAIN or (outcome == _GOES_ON and target >= end):
            firsts[p] = max(start, target)
            p += 1
            start = -1
        elif outcome == _GOES_ON:
            start, depth = target, 0
            _begin_match(start, begin, automaton, cursor, mapped)
        numbers[SearchNumber.PARTITION], numbers[SearchNumber.START], numbers[SearchNumber.DEPTH] = p, start, depth
    numbers[SearchNumber.STEPS] = steps
    return outcome
