"""Phase 2: the SES automaton over the candidate windows of a batch (thesis Alg. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Matches, concatenated
from gpu_cep.engine.events.sampling import Sample, joined
from gpu_cep.engine.lowering.jump_tables import JumpIndexes
from gpu_cep.engine.lowering.pattern_tables import STRATEGY
from gpu_cep.engine.matchers.dead_ends import dead_ends
from gpu_cep.engine.matchers.search import ConditionOverflow, Search
from gpu_cep.engine.windows.candidates import Candidates, Windows, candidate_ends
from gpu_cep_kernels.automaton.dead_ends import DeadEnds
from gpu_cep_kernels.automaton.enumeration import enumerate_matches
from gpu_cep_kernels.automaton.jumps import Jumps
from gpu_cep_kernels.automaton.lookahead import wasted_searches
from gpu_cep_kernels.rules.cut import KEEP_ALL
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import (
    CANDIDATE,
    ERROR_CONDITION,
    EVENTS,
    FINISHED,
    LOOK,
    MATCHES,
    OUTPUT_FULL,
    OVERFLOWED,
    PATH_FULL,
    REJECTED,
    STEPS,
    STEPS_SPENT,
    Conditions,
    EventPath,
    EventTable,
    MatchTable,
    deepen_path,
    new_path,
)

Indices = npt.NDArray[np.int64]


# Steps between two returns to Python, so that a long enumeration can be interrupted and its budget checked.
_STEPS_PER_CALL = 1 << 21
# Steps after which it is first asked whether searches should jump.
_FIRST_STEPS = 1 << 14
_PATH = 64
# Matches, and events, that one buffer holds at most; events and one more path, so that it always has room for one match.
_LARGEST_BUFFER = 1 << 22
# Events that the matches of a sample bind at most; and how many of its candidates may take many steps.
_LARGEST_SAMPLE, _HEAVY = 1 << 16, 8


def _output(matches: int, events: int, variables: int) -> MatchTable:
    counts = np.empty((matches, variables), np.int32)
    return MatchTable(np.empty(matches, np.int64), counts, np.empty(events, np.int64), totals=np.empty(0, np.int64))


@dataclass(frozen=True)
class SesAutomaton:
    """Runs the automaton; one object serves all batches and threads."""

    search: Search

    def find(self, batch: Batch, windows: Windows, candidates: Candidates, share: float = 1.0) -> Matches:
        """The matches that start at the candidates, a `share` of the batch's, in order of first event, last event and bindings."""
        if self._too_few(batch, candidates):
            return concatenated([], len(self.search.tables.pattern.order))
        return _Enumeration.of(self.search, batch, windows, candidates, share).matches()

    def count(self, batch: Batch, windows: Windows, candidates: Candidates, share: float = 1.0) -> Indices:
        """The number of matches that start at each candidate."""
        if self._too_few(batch, candidates):
            return np.zeros(len(candidates.starts), np.int64)
        return _Enumeration.of(self.search, batch, windows, candidates, share).count()

    def sample(self, batch: Batch, windows: Windows, candidates: Candidates, steps: int) -> Sample:
        """What the candidates take; one that takes more than so many `steps` is given up, and so are all behind a few of that kind.

        They jump where all starts together would come to do so.
        """
        if self._too_few(batch, candidates):
            return Sample(len(candidates.starts), len(candidates.starts), 0, 0, 0)
        walk = _Enumeration.of(self.search, batch, windows, candidates, 1.0)
        sample = walk.sample(steps)
        jumping = walk.jumping(sample, len(windows.starts) / sample.tried)
        return sample if jumping is None else jumping.sample(steps)

    def _too_few(self, batch: Batch, candidates: Candidates) -> bool:
        """Whether there are no windows, or not the events that a match needs."""
        return not len(candidates.starts) or self.search.tables.fewest > batch.high - batch.low


@dataclass(slots=True)
class _Enumeration:
    """The candidates of one call: `run` says how far they have come, `steps` how many steps that took.

    `backwards`, the last of them comes first: windows then end ever earlier, so that what led to no match in one does
    not in the next, and what is found in one rules out matches of the next.
    """

    search: Search
    batch: Batch
    starts: Indices
    ends: npt.NDArray[np.int32]
    events: EventTable
    conditions: Conditions
    indexes: JumpIndexes
    share: float
    backwards: bool
    jumps: Jumps
    dead_ends: DeadEnds
    run: EventPath
    steps: int = 0

    @classmethod
    def of(cls, search: Search, batch: Batch, windows: Windows, candidates: Candidates, share: float) -> _Enumeration:
        conditions, indexes = search.conditions(batch), windows.indexes
        assert indexes is not None, "windows are a branch's"
        backwards = search.states is not None or search.kept != KEEP_ALL
        starts, ends = candidates.starts, candidate_ends(windows, candidates)
        return cls(
            search=search,
            batch=batch,
            starts=np.ascontiguousarray(starts[::-1]) if backwards else starts,
            ends=np.ascontiguousarray(ends[::-1]) if backwards else ends,
            events=search.events(batch, windows),
            conditions=conditions,
            indexes=indexes,
            share=share,
            backwards=backwards,
            jumps=indexes.none(),
            dead_ends=dead_ends(search.states, starts, ends),
            run=new_path(_PATH, search.tables.pattern, conditions, search.kept),
        )

    def matches(self) -> Matches:
        """All matches."""
        tables = self.search.tables
        variables = len(tables.pattern.order)
        found: list[Matches] = []
        capacity = len(self.starts) + 16
        output = _output(capacity, min(capacity * (tables.fewest + 2), _LARGEST_BUFFER) + _PATH, variables)
        status = OUTPUT_FULL
        while status != FINISHED:
            status = self._advance(output, self._step_limit(), counting=False)
            taken, filled = int(self.run.state[MATCHES]), int(self.run.state[EVENTS])
            if taken:
                # copies, all three: the buffers are written again unless they were full
                first, counts = self.starts[output.starts[:taken]] + self.batch.low, output.counts[:taken].copy()
                found.append(Matches(first, counts, output.events[:filled] + self.batch.low))
            self._spend(taken, filled, output.starts.item)
            self.run.state[MATCHES] = self.run.state[EVENTS] = 0
            if status == OUTPUT_FULL:
                capacity = min(2 * capacity, _LARGEST_BUFFER)
                output = _output(capacity, min(capacity * (tables.fewest + 2), _LARGEST_BUFFER) + len(self.run.event), variables)
        matches = concatenated(found, variables)
        ascending = matches.reordered(np.arange(len(matches))[::-1]) if self.backwards else matches
        return ascending.sorted_within_starts()

    def count(self) -> Indices:
        """The number of matches that start at each candidate."""
        totals = np.zeros(len(self.starts), np.int64)
        output = _output(0, 0, len(self.search.tables.pattern.order))._replace(totals=totals)
        status, spent = OUTPUT_FULL, 0
        while status != FINISHED:
            status = self._advance(output, self._step_limit(), counting=True)
            counted = int(totals.sum())
            self._spend(counted - spent, 0, partial(_candidate_of, totals, spent))
            spent = counted
        return totals[::-1] if self.backwards else totals

    def sample(self, steps: int) -> Sample:
        """What the candidates take: those that take few steps in all, and those that take many as the first of them goes on."""
        few = steps // _HEAVY
        parts: list[Sample] = []
        heavy: list[tuple[int, int]] = []
        begin = 0
        while begin < len(self.starts) and len(heavy) < _HEAVY:
            part, spent = self._some(begin, len(self.starts))._sampled(few)
            parts.append(part)
            begin += part.tried
            heavy += [(begin - 1, spent)] if spent else []
        sample = replace(joined(parts), places=len(self.starts))
        for place, _ in heavy[:1]:
            whole, _ = self._some(place, place + 1)._sampled(_HEAVY * steps)
            sample = sample.raised(whole, sum(max(1 - spent / max(whole.steps, 1), 0.0) for _, spent in heavy))
        return sample

    def _some(self, begin: int, end: int) -> _Enumeration:
        """Some of the candidates, from the beginning."""
        run = new_path(_PATH, self.search.tables.pattern, self.conditions, self.search.kept)
        return replace(self, starts=self.starts[begin:end], ends=self.ends[begin:end], run=run)

    def _sampled(self, steps: int) -> tuple[Sample, int]:
        """What the candidates take up to the first that is given up, and about how many steps that one has taken; 0 if none is.

        It takes more than so many `steps`, and more than all before it.
        """
        output = _output(_LARGEST_SAMPLE // 16, _LARGEST_SAMPLE, len(self.search.tables.pattern.order))
        status, at, before = STEPS_SPENT, -1, 0
        while status in (STEPS_SPENT, PATH_FULL) and at < self.run.state[CANDIDATE] and len(self.run.event) < _LARGEST_SAMPLE:
            at = int(self.run.state[CANDIDATE]) if status == STEPS_SPENT else at
            # each call is as long as all before it, so that few are needed
            before = int(self.run.state[STEPS])
            status = self._advance(output, max(steps, before), counting=False)
        state, finished = self.run.state, status == FINISHED
        found = int(state[MATCHES]), int(state[EVENTS])
        tried = int(state[CANDIDATE]) + (not finished)
        passed, wasted = int(state[REJECTED]), wasted_searches(self.run)
        spent = 0 if finished else max(int(state[STEPS]) - before, 1)
        return Sample(len(self.starts), tried, int(state[STEPS]), *found, passed=passed, wasted=wasted), spent

    def jumping(self, sample: Sample, times: float) -> _Enumeration | None:
        """The same candidates with jumps; None if they do not pay where so many times the work of a sample is done."""
        steps, passed, wasted = (int(times * each) for each in (sample.steps, sample.passed, sample.wasted))
        if not self.indexes.may_pay or not self.indexes.pay(steps, passed, wasted, self.share):
            return None
        return replace(self, jumps=self.indexes.jumps(), dead_ends=dead_ends(self.search.states, self.starts, self.ends))

    def _advance(self, output: MatchTable, limit: int, *, counting: bool) -> int:
        search, tables, run = self.search, self.search.tables, self.run
        status = enumerate_matches(
            self.starts, self.ends, self.events, tables.pattern, self.conditions, search.negations, self.jumps, self.dead_ends,
            STRATEGY[search.plan.strategy], counting, limit, run, output,
        )  # fmt: skip
        if status == OVERFLOWED:
            condition = tables.branch.conditions[int(run.state[ERROR_CONDITION]) - 1]
            raise ConditionOverflow(condition, int(self.starts[run.state[CANDIDATE]]) + self.batch.low)
        if status == PATH_FULL:
            self.run = deepen_path(run)
        return int(status)

    def _step_limit(self) -> int:
        """How many steps the next call may take; as long as searches may come to jump, about as many as were taken so far."""
        if self.jumps.patience < UNBOUNDED or not self.indexes.may_pay:
            return _STEPS_PER_CALL
        if self.indexes.pay(self.steps, int(self.run.state[REJECTED]), wasted_searches(self.run), self.share):
            self.jumps = self.indexes.jumps()
            # the run at hand may look ahead from now on, too
            self.run.state[LOOK] = self.jumps.patience
            return _STEPS_PER_CALL
        return min(max(self.steps, _FIRST_STEPS), _STEPS_PER_CALL)

    def _spend(self, matches: int, events: int, candidate_of: Callable[[int], int]) -> None:
        """Account for what was found since the last time; ``candidate_of(i)`` is the candidate of match i of it."""
        state = self.run.state
        current = min(int(state[CANDIDATE]), len(self.starts) - 1)

        def start_of(match: int) -> int:
            return self.batch.low + int(self.starts[candidate_of(match) if match < matches else current])

        self.search.budget.spend(matches, events, int(state[STEPS]), start_of)
        self.steps += int(state[STEPS])
        state[STEPS] = 0


def _candidate_of(totals: Indices, spent: int, match: int) -> int:
    """The candidate of match `match` behind the first `spent`, of which ``totals[w]`` belong to candidate w."""
    return int(np.searchsorted(np.cumsum(totals), spent + match, side="right"))
