"""Find the matches of a row pattern whose conditions read the match so far, where no row leaves a choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.found import RowMatches, followed_states, row_matches_of
from gpu_cep.engine.row_patterns.runs import run_table
from gpu_cep.engine.row_patterns.search_parts import RowSearch, failure_at, lengths_of, room_for
from gpu_cep.engine.row_patterns.skipping import skip_to, target_fault
from gpu_cep.errors import EventError
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.row_patterns.runs import RunTable
from gpu_cep_kernels.row_patterns.search import Outcome
from gpu_cep_kernels.row_patterns.walk import WalkNumber, walk_row_matches


def walk_matches(search: RowSearch) -> RowMatches:
    """Return the matches of all partitions; the states of their rows are found when they are asked for.

    Raises
    ------
    EventError
        A condition cannot be computed, or AFTER MATCH SKIP leads nowhere.
    MatchLimitExceeded
        The walks made more steps than the search may.
    """
    run = search.run
    parts, runs = stream_slices(run.ordered.offsets, run.threads), run_table(search.tables.table, search.conditions.places)
    try:
        spread(lambda part: _walk(search, runs, part), parts, run.threads)
    finally:
        search.account.closed = True
    states = followed_states(run.automaton, lambda: search.reach, run.threads)
    return replace(row_matches_of(run.ordered, search.lengths, states), steps=search.account.steps)


def _walk(search: RowSearch, runs: RunTable, part: tuple[int, int]) -> None:
    """Find the matches of the partitions of one part."""
    run, tables = search.run, search.tables
    longest = int(np.diff(run.ordered.offsets[part[0] : part[1] + 1]).max())
    mapped, numbers = room_for(search, longest), np.zeros(len(WalkNumber), np.int64)
    numbers[: WalkNumber.START + 1] = *part, -1
    outcome = Outcome.PAUSED
    while outcome == Outcome.PAUSED:
        outcome = Outcome(
            walk_row_matches(
                run.ordered.offsets, run.automaton, search.reach, skip_to(run.plan), tables.table, runs, tables.programs,
                search.bank, tables.arguments, search.account.STEPS, mapped, numbers, search.lengths,
            )
        )  # fmt: skip
        search.account.spend(int(numbers[WalkNumber.STEPS]))
    if outcome == Outcome.FAILED:
        raise EventError(failure_at(search, int(numbers[WalkNumber.STATE]), int(numbers[WalkNumber.ROW])))
    if outcome == Outcome.NO_TARGET:
        states = followed_states(run.automaton, lambda: search.reach, 1)
        matches = row_matches_of(run.ordered, lengths_of(search, part), states)
        raise target_fault(run, matches, int(numbers[WalkNumber.START]))
