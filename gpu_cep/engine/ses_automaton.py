"""Phase 2: the SES automaton over the candidate windows of a batch (thesis Alg. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.batches import Batch
from gpu_cep.engine.candidates import Candidates, Windows, candidate_ends
from gpu_cep.engine.matches import Matches, concatenated
from gpu_cep.engine.sampling import Sample
from gpu_cep.engine.search import ConditionOverflow, Search
from gpu_cep_kernels.automaton import enumerate_matches
from gpu_cep_kernels.tables import (
    ANY,
    CANDIDATE,
    CONTIGUOUS,
    ERROR_CONDITION,
    EVENTS,
    FINISHED,
    MATCHES,
    NEXT,
    OUTPUT_FULL,
    OVERFLOWED,
    PATH_FULL,
    ROBUST,
    STEPS,
    MatchTable,
    Run,
    deepened,
    new_run,
)

Indices = npt.NDArray[np.int64]

STRATEGY = {
    "skip_till_next_match": NEXT,
    "skip_till_any_match": ANY,
    "strict_contiguity": CONTIGUOUS,
    "partition_contiguity": CONTIGUOUS,
    "robust_skip_till_next_match": ROBUST,
}

# Steps between two returns to Python, so that a long enumeration can be interrupted and its budget checked.
_STEPS_PER_CALL = 1 << 21
_PATH = 64
# Matches, and events, that one buffer holds at most; events and one more path, so that it always has room for one match.
_LARGEST_BUFFER = 1 << 22
# Events that the matches of a sample bind at most.
_LARGEST_SAMPLE = 1 << 16


def _output(matches: int, events: int, variables: int) -> MatchTable:
    counts = np.empty((matches, variables), np.int32)
    return MatchTable(np.empty(matches, np.int64), counts, np.empty(events, np.int64), totals=np.empty(0, np.int64))


@dataclass(frozen=True)
class SesAutomaton:
    """Runs the automaton; one object serves all batches and threads."""

    search: Search

    def find(self, batch: Batch, windows: Windows, candidates: Candidates) -> Matches:
        """The matches that start at the candidates, in order of first event, last event and bindings."""
        tables = self.search.tables
        variables = len(tables.pattern.order)
        if self._too_few(batch, candidates):
            return concatenated([], variables)
        starts, ends = candidates.starts, candidate_ends(windows, candidates)
        found: list[Matches] = []
        capacity = len(starts) + 16
        output = _output(capacity, min(capacity * (tables.fewest + 2), _LARGEST_BUFFER) + _PATH, variables)
        run = new_run(_PATH, tables.pattern, self.search.conditions(batch))
        status = OUTPUT_FULL
        while status != FINISHED:
            status = self._advance(batch, windows, starts, ends, run, output, counting=False)
            taken, filled = int(run.state[MATCHES]), int(run.state[EVENTS])
            if taken:
                # copies, all three: the buffers are written again unless they were full
                first, counts = starts[output.starts[:taken]] + batch.low, output.counts[:taken].copy()
                found.append(Matches(first, counts, output.events[:filled] + batch.low))
            self._spend(run, batch, starts, taken, filled, output.starts.item)
            run.state[MATCHES] = run.state[EVENTS] = 0
            if status == PATH_FULL:
                run = deepened(run)
            if status == OUTPUT_FULL:
                capacity = min(2 * capacity, _LARGEST_BUFFER)
                output = _output(capacity, min(capacity * (tables.fewest + 2), _LARGEST_BUFFER) + len(run.event), variables)
        return concatenated(found, variables).sorted_within_starts()

    def count(self, batch: Batch, windows: Windows, candidates: Candidates) -> Indices:
        """The number of matches that start at each candidate."""
        totals = np.zeros(len(candidates.starts), np.int64)
        if self._too_few(batch, candidates):
            return totals
        starts, ends = candidates.starts, candidate_ends(windows, candidates)
        pattern = self.search.tables.pattern
        run = new_run(_PATH, pattern, self.search.conditions(batch))
        output = _output(0, 0, len(pattern.order))._replace(totals=totals)
        status, spent = PATH_FULL, 0
        while status != FINISHED:
            status = self._advance(batch, windows, starts, ends, run, output, counting=True)
            counted = int(totals.sum())
            self._spend(run, batch, starts, counted - spent, 0, partial(_candidate_of, totals, spent))
            spent = counted
            if status == PATH_FULL:
                run = deepened(run)
        return totals

    def sample(self, batch: Batch, windows: Windows, candidates: Candidates, steps: int) -> Sample:
        """What the first of the candidates take, as many as little more than so many `steps` suffice for."""
        if self._too_few(batch, candidates):
            return Sample(len(candidates.starts), len(candidates.starts), 0, 0, 0)
        starts, ends = candidates.starts, candidate_ends(windows, candidates)
        run = new_run(_PATH, self.search.tables.pattern, self.search.conditions(batch))
        output = _output(steps, _LARGEST_SAMPLE, len(self.search.tables.pattern.order))
        status = PATH_FULL
        while status == PATH_FULL and len(run.event) < _LARGEST_SAMPLE:
            status = self._advance(batch, windows, starts, ends, run, output, counting=False, steps=steps)
            run = deepened(run) if status == PATH_FULL else run
        tried = min(int(run.state[CANDIDATE]) + 1, len(starts))
        return Sample(len(starts), tried, int(run.state[STEPS]), int(run.state[MATCHES]), int(run.state[EVENTS]))

    def _advance(
        self,
        batch: Batch,
        windows: Windows,
        starts: Indices,
        ends: npt.NDArray[np.int32],
        run: Run,
        output: MatchTable,
        *,
        counting: bool,
        steps: int = _STEPS_PER_CALL,
    ) -> int:
        search, tables = self.search, self.search.tables
        events = search.events(batch, windows)
        status = enumerate_matches(
            starts, ends, events, tables.pattern, search.conditions(batch), search.negations, STRATEGY[search.plan.strategy],
            counting, steps, run, output,
        )  # fmt: skip
        if status == OVERFLOWED:
            condition = tables.branch.conditions[int(run.state[ERROR_CONDITION]) - 1]
            raise ConditionOverflow(condition, int(starts[run.state[CANDIDATE]]) + batch.low)
        return int(status)

    def _spend(self, run: Run, batch: Batch, starts: Indices, matches: int, events: int, candidate_of: Callable[[int], int]) -> None:
        """Account for what was found since the last time; ``candidate_of(i)`` is the candidate of match i of it."""
        current = min(int(run.state[CANDIDATE]), len(starts) - 1)

        def start_of(match: int) -> int:
            return batch.low + int(starts[candidate_of(match) if match < matches else current])

        self.search.budget.spend(matches, events, int(run.state[STEPS]), start_of)
        run.state[STEPS] = 0

    def _too_few(self, batch: Batch, candidates: Candidates) -> bool:
        """Whether there are no windows, or not the events that a match needs."""
        return not len(candidates.starts) or self.search.tables.fewest > batch.high - batch.low


def _candidate_of(totals: Indices, spent: int, match: int) -> int:
    """The candidate of match `match` behind the first `spent`, of which ``totals[w]`` belong to candidate w."""
    return int(np.searchsorted(np.cumsum(totals), spent + match, side="right"))
