"""Find the matches of a row pattern whose conditions read the match so far, where no row leaves a choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.found import RowMatches, followed_states, matches_of
from gpu_cep.engine.row_patterns.runs import run_table
from gpu_cep.engine.row_patterns.search_parts import Search, failure_at, lengths_of, room_for
from gpu_cep.engine.row_patterns.skipping import skip_to, target_fault
from gpu_cep.errors import EventError
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.row_patterns.runs import RunTable
from gpu_cep_kernels.row_patterns.search import Outcome
from gpu_cep_kernels.row_patterns.walk import WalkNumber, walk_row_matches


def walk_matches(search: Search, columns: EventColumns) -> RowMatches:
    """Return the matches of all partitions; the states of their rows are found when they are asked for.

    Raises
    ------
    EventError
        A condition cannot be computed, or AFTER MATCH SKIP leads nowhere.
    MatchLimitExceeded
        The walks made more steps than the search may.
    """
    parts, runs = stream_slices(search.ordered.offsets, search.threads), run_table(search.tables.table, search.conditions.places)
    try:
        spread(lambda part: _walk(search, runs, part, columns), parts, search.threads)
    finally:
        search.account.closed = True
    states = followed_states(search.automaton, lambda: search.reach, search.threads)
    return replace(matches_of(search.ordered, search.lengths, states), steps=search.account.steps)


def _walk(search: Search, runs: RunTable, part: tuple[int, int], columns: EventColumns) -> None:
    """Find the matches of the partitions of one part."""
    longest = int(np.diff(search.ordered.offsets[part[0] : part[1] + 1]).max())
    mapped, numbers = room_for(search, longest), np.zeros(len(WalkNumber), np.int64)
    numbers[: WalkNumber.START + 1] = *part, -1
    outcome = Outcome.PAUSED
    while outcome == Outcome.PAUSED:
        outcome = Outcome(
            walk_row_matches(
                search.ordered.offsets, search.automaton, search.reach, skip_to(search.plan), search.tables.table, runs,
                search.tables.programs, search.bank, search.tables.arguments, search.account.STEPS, mapped, numbers, search.lengths,
            )
        )  # fmt: skip
        search.account.spend(int(numbers[WalkNumber.STEPS]))
    if outcome == Outcome.FAILED:
        raise EventError(failure_at(search, int(numbers[WalkNumber.STATE]), int(numbers[WalkNumber.ROW]), columns))
    if outcome == Outcome.NO_TARGET:
        states = followed_states(search.automaton, lambda: search.reach, 1)
        matches = matches_of(search.ordered, lengths_of(search, part), states)
        raise target_fault(search.plan, columns, search.ordered, search.automaton, matches, int(numbers[WalkNumber.START]))
