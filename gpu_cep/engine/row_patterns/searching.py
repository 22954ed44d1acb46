"""Search for the matches of a row pattern whose conditions read the match so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from gpu_cep.engine.accounting.match_budget import memory_for_results
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import failure
from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.columns import ordered_bank
from gpu_cep.engine.row_patterns.condition_tables import SearchTables, search_tables
from gpu_cep.engine.row_patterns.dead_ends import grown, make_memo
from gpu_cep.engine.row_patterns.found import Begun, Lengths, RowMatches, States, known_states, matches_of
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep.engine.row_patterns.skipping import skip_to, target_fault
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep.plan.row_patterns.row_plan import MatchConditions, RowPlan
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.row_patterns.conditions import COUNT_DISTINCT, Mapped
from gpu_cep_kernels.row_patterns.search import Outcome, SearchNumber, SearchState, search_row_matches
from gpu_cep_kernels.row_patterns.tables import UNMATCHED, Reach, RowAutomatonTable
from gpu_cep_kernels.rules.tables import AggregateValues, ColumnBank, Registers

# Steps between two looks at whether the user has interrupted the call, which take some tens of milliseconds.
_STEPS = 1 << 20
# Room for the states of rows of matches at first.
_FOUND = 1 << 10


@dataclass
class _Account:
    """The steps of all threads so far, and whether the search has ended."""

    max_steps: int | None
    steps: int = 0
    closed: bool = False
    lock: Lock = field(default_factory=Lock)

    def spend(self, steps: int) -> None:
        """Count steps; raise MatchLimitExceeded if they are too many, or if another thread has failed or was interrupted."""
        with self.lock:
            self.steps += steps
            if self.closed:
                raise MatchLimitExceeded("the search has ended")
            if self.max_steps is not None and self.steps > self.max_steps:
                where = "in a search whose conditions read the match so far"
                raise MatchLimitExceeded(f"more than max_steps={self.max_steps:,} steps, {where}")


@dataclass(frozen=True)
class _Search:
    """What all threads share."""

    plan: RowPlan
    conditions: MatchConditions
    ordered: OrderedRows
    begun: Begun
    automaton: RowAutomatonTable
    reach: Reach
    tables: SearchTables
    bank: ColumnBank
    lengths: Lengths
    account: _Account
    threads: int


def search_matches(
    plan: RowPlan, conditions: MatchConditions, columns: EventColumns, ordered: OrderedRows, automaton: RowAutomatonTable, reach: Reach,
    threads: int, max_steps: int | None, begun: Begun | None = None,
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
    tables = search_tables(plan, conditions, columns, ordered)
    lengths = np.full(len(ordered), UNMATCHED, np.int32)
    bank = ordered_bank(plan, columns, ordered, conditions.layout)
    begun = Begun(ordered.offsets[:-1].copy(), np.zeros(len(ordered.offsets) - 1, np.int64)) if begun is None else begun
    search = _Search(plan, conditions, ordered, begun, automaton, reach, tables, bank, lengths, _Account(max_steps), threads)
    try:
        found = spread(lambda part: _run(search, part, columns), stream_slices(ordered.offsets, threads), threads)
    finally:
        search.account.closed = True
    states = np.concatenate([np.empty(0, np.int32), *found])
    matches = replace(matches_of(ordered, lengths, known_states(states), begun=begun), steps=search.account.steps)
    # parts of the matches take theirs from these
    assert len(matches.states) == matches.places[-1], "each row of a match has a state"
    return matches


def _run(search: _Search, part: tuple[int, int], columns: EventColumns) -> States:
    """Return the states of the rows of all matches in the partitions of one part."""
    longest = int(np.diff(search.ordered.offsets[part[0] : part[1] + 1]).max())
    table = search.tables.table
    memo = make_memo(search.plan.automaton, search.conditions, table, search.bank, bool(search.reach.limits.size))
    mapped = _mapped(search, longest)
    numbers = np.zeros(len(SearchNumber), np.int64)
    numbers[: SearchNumber.START + 1] = *part, -1
    state = SearchState(numbers, np.zeros(longest + 1, np.uint16), np.zeros(longest + 1, np.int64), np.empty(_FOUND, np.int32))
    while True:
        outcome = search_row_matches(
            search.ordered.offsets, search.begun.firsts, search.automaton, search.reach, skip_to(search.plan), table,
            search.tables.programs, search.bank, search.tables.arguments, _STEPS, mapped, memo, state, search.lengths,
        )  # fmt: skip
        search.account.spend(int(numbers[SearchNumber.STEPS]))
        memo = grown(memo, int(numbers[SearchNumber.START]))
        match outcome:
            case Outcome.DONE:
                return state.found[: numbers[SearchNumber.FOUND]]
            case Outcome.FULL:
                state = state._replace(found=_longer(state.found, int(numbers[SearchNumber.FOUND]) + longest, search.threads))
            case Outcome.FAILED:
                raise EventError(_failure(search, state, columns))
            case Outcome.NO_TARGET:
                states = known_states(state.found[: numbers[SearchNumber.FOUND]])
                matches = matches_of(search.ordered, _lengths_of(search, part), states, begun=search.begun)
                raise target_fault(search.plan, columns, search.ordered, search.automaton, matches, int(numbers[SearchNumber.START]))


def _lengths_of(search: _Search, part: tuple[int, int]) -> Lengths:
    """Return the lengths with those of matches that other threads have found left out."""
    low, high = search.ordered.offsets[[part[0], part[1]]]
    own = np.full_like(search.lengths, UNMATCHED)
    own[low:high] = search.lengths[low:high]
    return own


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


def _failure(search: _Search, state: SearchState, columns: EventColumns) -> str:
    """Return the message for a condition that cannot be computed at the row to be mapped next."""
    numbers = state.numbers
    start, depth = int(numbers[SearchNumber.START]), int(numbers[SearchNumber.DEPTH])
    variable = search.automaton.variable[search.automaton.moves[state.cursor[depth] - 1]]
    condition = search.conditions.conditions[search.tables.table.condition[variable]]
    row = columns.number_of(search.ordered.number(start + depth))
    return f"{failure(condition.program)} in DEFINE … AS {condition.text} at input row {row}"


def _mapped(search: _Search, longest: int) -> Mapped:
    """Return room for what a match of so many rows maps."""
    table, programs = search.tables.table, search.tables.programs
    totals, sets = len(table.step), len(table.in_set)
    roles = max(1, len(search.conditions.places), totals)
    shape = totals, longest + 1
    values = AggregateValues(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.float64))
    registers = Registers(
        np.zeros(roles, np.int64), np.zeros(roles, np.int64), np.zeros(programs.registers, np.int64),
        np.zeros(programs.registers, np.float64), np.zeros(programs.registers, np.bool_),
    )  # fmt: skip
    rows, counts, covered = np.zeros((sets, longest), np.int64), np.zeros(sets, np.int64), np.zeros(totals, np.int64)
    coded = (totals, longest + 1, len(search.ordered)) if (table.step == COUNT_DISTINCT).any() else (0, 0, 0)
    codes, places = np.zeros(coded[:2], np.int64), np.zeros(coded[::2], np.int64)
    return Mapped(rows, counts, values, covered, codes, places, registers)
