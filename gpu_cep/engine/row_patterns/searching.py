"""Search for the matches of a row pattern whose conditions read the match so far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_cep.engine.accounting.match_budget import memory_for_results
from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.columns import ordered_bank
from gpu_cep.engine.row_patterns.condition_tables import condition_tables
from gpu_cep.engine.row_patterns.dead_ends import grown, make_memo
from gpu_cep.engine.row_patterns.found import RowMatches, SearchProgress, States, known_states, row_matches_of
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.engine.row_patterns.search_parts import RowSearch, StepBudget, failure_at, lengths_of, room_for
from gpu_cep.engine.row_patterns.skipping import skip_to, target_fault
from gpu_cep.engine.row_patterns.walking import walk_matches
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep.plan.row_patterns.row_plan import MatchConditions
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.row_patterns.memo import Memo
from gpu_cep_kernels.row_patterns.search import Outcome, Searched, SearchNumber, SearchState, search_row_matches
from gpu_cep_kernels.row_patterns.tables import UNMATCHED, Reach
from gpu_cep_kernels.rules.tables import BY_PROGRAM

# Room for the states of rows of matches at first.
_FOUND = 1 << 10


def search_matches(
    run: RowRun, conditions: MatchConditions, reach: Reach, max_steps: int | None, begun: SearchProgress | None = None
) -> RowMatches:  # fmt: skip
    """Return the matches of all partitions.

    `begun`: where the search goes on (None: with the first row of each partition). Then its `firsts` are the first rows of which it
    is not certain which match begins there, if there are windows in which others may still come.

    Raises
    ------
    EventError
        A condition cannot be computed, or AFTER MATCH SKIP leads nowhere.
    MatchLimitExceeded
        The search made more than `max_steps`, or the rows of the matches do not fit in memory.
    """
    ordered, tables = run.ordered, condition_tables(run, conditions)
    lengths = np.full(len(ordered), UNMATCHED, np.int32)
    # programs read a row of NULLs where a place leads nowhere
    bank = ordered_bank(run, conditions.layout, null_row=bool((tables.table.means == BY_PROGRAM).any()))
    whole = begun is None
    begun = SearchProgress(ordered.offsets[:-1].copy(), np.zeros(len(ordered.offsets) - 1, np.int64)) if begun is None else begun
    search = RowSearch(run, conditions, begun, reach, tables, bank, lengths, StepBudget(max_steps))
    if whole and run.plan.automaton.leaves_no_choice and not _memo(search).useful.any():
        return walk_matches(search)
    try:
        found = spread(lambda part: _search(search, part), stream_slices(ordered.offsets, run.threads), run.threads)
    finally:
        search.account.closed = True
    states = np.concatenate([np.empty(0, np.int32), *found])
    matches = replace(row_matches_of(ordered, lengths, known_states(states), begun=begun), steps=search.account.steps)
    # parts of the matches take theirs from these
    assert len(matches.states) == matches.places[-1], "each row of a match has a state"
    return matches


def _memo(search: RowSearch) -> Memo:
    """Return an empty memory of dead ends."""
    windows = bool(search.reach.limits.size)
    return make_memo(search.run.plan.automaton, search.conditions, search.tables.table, search.bank, windows)


def _search(search: RowSearch, part: tuple[int, int]) -> States:
    """Return the states of the rows of all matches in the partitions of one part."""
    run, tables = search.run, search.tables
    longest = int(np.diff(run.ordered.offsets[part[0] : part[1] + 1]).max())
    searched = Searched(run.automaton, search.reach, skip_to(run.plan), tables.table, tables.programs, tables.arguments)
    memo, mapped = _memo(search), room_for(search, longest)
    numbers = np.zeros(len(SearchNumber), np.int64)
    numbers[: SearchNumber.START + 1] = *part, -1
    state = SearchState(numbers, np.zeros(longest + 1, np.uint16), np.zeros(longest + 1, np.int64), np.empty(_FOUND, np.int32))
    while True:
        outcome = search_row_matches(
            run.ordered.offsets, search.begun.firsts, searched, search.bank, search.account.STEPS, mapped, memo, state, search.lengths,
        )  # fmt: skip
        search.account.spend(int(numbers[SearchNumber.STEPS]))
        memo = grown(memo, int(numbers[SearchNumber.START]))
        match outcome:
            case Outcome.DONE:
                return state.found[: numbers[SearchNumber.FOUND]]
            case Outcome.FULL:
                state = state._replace(found=_longer(state.found, int(numbers[SearchNumber.FOUND]) + longest, run.threads))
            case Outcome.FAILED:
                depth = numbers[SearchNumber.DEPTH]
                failed = run.automaton.moves[state.cursor[depth] - 1]
                raise EventError(failure_at(search, failed, int(numbers[SearchNumber.START] + depth)))
            case Outcome.NO_TARGET:
                states = known_states(state.found[: numbers[SearchNumber.FOUND]])
                matches = row_matches_of(run.ordered, lengths_of(search, part), states, begun=search.begun)
                raise target_fault(run, matches, int(numbers[SearchNumber.START]))


def _longer(found: States, least: int, threads: int) -> States:
    """Return room for twice as many states, or for `least`, with those found.

    Raises
    ------
    MatchLimitExceeded
        There is too little memory for these, and for all of them put together at the end.
    """
    allowed = memory_for_results(threads) // (2 * found.itemsize)
    size = max(min(2 * len(found), allowed), least)
    if size > allowed:
        matched = f"the matches so far have {len(found):,} rows or more, and those of all do not fit in memory"
        raise MatchLimitExceeded(f"{matched}; shorten matches by WITHIN, let them not overlap, or match fewer partitions at a time")
    longer = np.empty(size, np.int32)
    longer[: len(found)] = found
    return longer
