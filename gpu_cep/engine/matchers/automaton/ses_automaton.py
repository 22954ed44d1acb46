"""Run the SES automaton over the candidate windows of a batch (phase 2, thesis Alg. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.accounting.match_budget import BudgetExceeded
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches, ones
from gpu_cep.engine.events.sampling import WorkSample, sum_samples
from gpu_cep.engine.lowering.jump_tables import JumpIndexes
from gpu_cep.engine.lowering.pattern_tables import STRATEGY
from gpu_cep.engine.matchers.automaton.walks import ROBUST, chain_kernel, walks, walks_chains, walks_on, window_kernel
from gpu_cep.engine.matchers.dead_ends import allocate_dead_ends
from gpu_cep.engine.matchers.match_tables import failed_condition, new_count_table, new_match_table
from gpu_cep.engine.matchers.search import Search, entry_of_match
from gpu_cep.engine.matchers.start_limit import StartLimit
from gpu_cep.engine.windows.candidates import BranchWindows
from gpu_cep.engine.windows.placed_windows import Candidates, candidate_ends
from gpu_cep.identity import Identity
from gpu_cep.records import record
from gpu_cep_kernels.automaton.chain_judgements import Chain
from gpu_cep_kernels.automaton.dead_ends import DeadEnds
from gpu_cep_kernels.automaton.enumeration import CandidateWindows, Mode, Shortcuts, enumerate_matches
from gpu_cep_kernels.automaton.jumps import Jumps
from gpu_cep_kernels.automaton.lookahead import wasted_searches
from gpu_cep_kernels.automaton.single_runs import Walk
from gpu_cep_kernels.rules.cut import KEEP_ALL
from gpu_cep_kernels.rules.path_arrays import deepen_path, new_path
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import (
    BY_PROGRAM,
    Conditions,
    Criteria,
    EventPath,
    EventTable,
    MatchTable,
    PathState,
    PatternTable,
    Status,
)

# Steps between two returns to Python, where an enumeration can be interrupted and its budget checked.
STEPS_PER_CALL = 1 << 21
# Steps after which it is first asked whether searches should jump; those of a walk, which take a quarter of the time.
FIRST_STEPS, FIRST_WALKED = 1 << 14, 1 << 16
# Steps in one window after which a robust search that the caller does not bound is an error.
MOST_ROBUST_STEPS = 1 << 26
_FEWER_STEPS = "give its variables event types or conditions of their own, or a shorter window; or allow more steps by max_steps="
# How many times as fast as other steps one over an event is that a sieve rules out.
_SIFTED = 3
# Events of a path that there is room for at first; if a variable may bind any number of them, so many times as many.
_PATH, _LONGER = 64, 16
# Matches that one output holds at most, and events. Room for one path comes on top: one match always fits.
_LARGEST_OUTPUT = 1 << 22
# Events that a sample's matches bind at most, and abandoned candidates after which a sample ends.
_LARGEST_SAMPLE, _ABANDONED = 1 << 16, 8


@record(slots=False)
class SesAutomaton:
    """Runs the automaton; one object serves all batches and threads."""

    search: Search

    def find(self, batch: Batch, windows: BranchWindows, candidates: Candidates, share: float = 1.0) -> Matches:
        """Return the matches that start at the candidates, in order of first event, last event and bindings.

        The candidates are a `share` of the batch's.
        """
        if self._has_no_match(batch, candidates):
            return concatenate_matches([], self.search.variable_count)
        return _Enumeration.of(self.search, batch, windows, candidates, share).find()

    def count(self, batch: Batch, windows: BranchWindows, candidates: Candidates, share: float = 1.0) -> Indices:
        """Return the number of matches that start at each candidate, a `share` of the batch's."""
        if self._has_no_match(batch, candidates):
            return np.zeros(len(candidates.starts), np.int64)
        return _Enumeration.of(self.search, batch, windows, candidates, share).count()

    def sample(self, batch: Batch, windows: BranchWindows, candidates: Candidates, steps: int) -> WorkSample:
        """Return a sample of the work on the candidates.

        A candidate is abandoned after a fraction of `steps`; sampling stops
        after eight abandoned ones. Searches jump if they would when all starts
        are searched.
        """
        if self._has_no_match(batch, candidates):
            return WorkSample(len(candidates.starts), len(candidates.starts), 0, 0, 0)
        enumeration = _Enumeration.of(self.search, batch, windows, candidates, 1.0)
        sample = enumeration.sample(steps)
        jumping = enumeration.with_jumps(sample, len(windows.starts) / sample.tried)
        return sample if jumping is None else jumping.sample(steps)

    def _has_no_match(self, batch: Batch, candidates: Candidates) -> bool:
        """Return whether there are no candidates, or fewer events than a match needs."""
        return not len(candidates.starts) or self.search.tables.fewest > batch.high - batch.low


@dataclass(slots=True)
class _Enumeration:
    """The search through the windows [starts, ends).

    `run` says how far it has come, and `steps` how many steps it took;
    `steps_here` of them in the window numbered `window`, where it is. If it
    goes `backwards`, the last start comes first, so that windows end ever
    earlier. A dead end of one is then a dead end of the next, and a match of
    one rules out matches of the next. It `walks` as long as each window has a
    single run, without a search.
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
    walks: bool
    steps: int = 0
    window: int = 0
    steps_here: int = 0

    @classmethod
    def of(cls, search: Search, batch: Batch, windows: BranchWindows, candidates: Candidates, share: float) -> _Enumeration:
        """Return the search through the candidates' windows before its first step."""
        conditions, indexes = search.conditions(batch), windows.indexes
        backwards = search.state_keys is not None or search.kept_matches != KEEP_ALL
        starts, ends = candidates.starts, candidate_ends(windows, candidates)
        return cls(
            search=search,
            batch=batch,
            starts=np.ascontiguousarray(starts[::-1]) if backwards else starts,
            ends=np.ascontiguousarray(ends[::-1]) if backwards else ends,
            events=search.event_table(batch, windows),
            conditions=conditions,
            indexes=indexes,
            share=share,
            backwards=backwards,
            jumps=indexes.none(),
            dead_ends=allocate_dead_ends(search.state_keys, starts, ends),
            run=_new_path(search, conditions),
            walks=walks(search.plan, search.tables),
        )

    def find(self) -> Matches:
        """Return all matches that may be kept, in order of first event, last event and bindings."""
        found: list[Matches] = []
        fresh, capacity, each = 0, len(self.starts) + 16, self.search.tables.fewest + 2
        output, before, filled = self._new_output(capacity, each), 0, 0
        status = Status.STEPS_SPENT
        while status != Status.FINISHED:
            status = self._advance(output, self._step_limit(), counting=False)
            state = self.run.state
            taken, bound = int(state[PathState.MATCHES]), int(state[PathState.EVENTS])
            self._spend(taken - before, bound - filled, partial(_entry_behind, output.starts, before))
            before, filled = taken, bound
            if taken and status in (Status.FINISHED, Status.OUTPUT_FULL):
                found.append(self._written(output, taken, bound))
                fresh += bound
                before = filled = state[PathState.MATCHES] = state[PathState.EVENTS] = 0
            if status == Status.OUTPUT_FULL:
                capacity, each = min(2 * capacity, _LARGEST_OUTPUT), max(each, 1 + bound // max(taken, 1))
                output = self._new_output(capacity, each)
            if fresh > _LARGEST_OUTPUT and self.search.limit is not None:
                found, fresh = [self._ascending([self._limited(found, self.search.limit)])], 0
        return self._ascending(found).sort_within_starts()

    def _written(self, output: MatchTable, taken: int, filled: int) -> Matches:
        """Return the matches in an output, which is not written to again: copies, unless they fill about half of it."""
        first, counts, events = self.starts[output.starts[:taken]] + self.batch.low, output.counts[:taken], output.events[:filled]
        singles = self.search.tables.of_singles
        if singles:
            counts = ones(taken, self.search.variable_count)
        if 2 * filled < len(output.events):
            return Matches(first, counts if singles else counts.copy(), events + self.batch.low)
        events += self.batch.low
        return Matches(first, counts, events)

    def _ascending(self, found: list[Matches]) -> Matches:
        """Return matches from the order in which they are found in that of their first events, or the other way."""
        matches = concatenate_matches(found, self.search.variable_count)
        return matches.reorder(np.arange(len(matches))[::-1]) if self.backwards else matches

    def _limited(self, found: list[Matches], limit: StartLimit) -> Matches:
        """Return those of the matches found so far that the limit keeps, in order of first event, last event and bindings."""
        matches = self._ascending(found).sort_within_starts()
        return limit.keep(matches, self.search.tables.branch.positives, self.search.budget)

    def _new_output(self, matches: int, each: int) -> MatchTable:
        """Return room for so many matches, which bind about so many events `each`; one may bind as many as the path has room for."""
        events = min(matches * each, _LARGEST_OUTPUT) + len(self.run.event)
        return new_match_table(matches, events, self.search.variable_count)

    def count(self) -> Indices:
        """Return the number of matches that start at each candidate, in the order of the candidates."""
        totals = np.zeros(len(self.starts), np.int64)
        output = new_count_table(totals, self.search.variable_count)
        status, spent = Status.OUTPUT_FULL, 0
        while status != Status.FINISHED:
            status = self._advance(output, self._step_limit(), counting=True)
            counted = int(totals.sum())
            self._spend(counted - spent, 0, partial(_entry_after, totals, spent))
            spent = counted
        return totals[::-1] if self.backwards else totals

    def sample(self, steps: int) -> WorkSample:
        """Return a sample of the work on the candidates.

        A candidate is abandoned after a fraction of `steps`; sampling stops
        after eight abandoned ones. The first of these is searched again, for
        longer, and all are taken to cost as much as it does.
        """
        limit = steps // _ABANDONED
        samples: list[WorkSample] = []
        abandoned: list[tuple[int, int]] = []
        begin = 0
        while begin < len(self.starts) and len(abandoned) < _ABANDONED:
            sample, spent = self._restart(begin, len(self.starts))._sample_until_abandoned(limit)
            samples.append(sample)
            begin += sample.tried
            abandoned += [(begin - 1, spent)] if spent else []
        total = replace(sum_samples(samples), places=len(self.starts))
        for candidate, _ in abandoned[:1]:
            longer, _ = self._restart(candidate, candidate + 1)._sample_until_abandoned(_ABANDONED * steps)
            total = total.add_share(longer, sum(max(1 - spent / max(longer.steps, 1), 0.0) for _, spent in abandoned))
        return total

    def _restart(self, begin: int, end: int) -> _Enumeration:
        """Return the search through the candidates [begin, end) before its first step."""
        run = _new_path(self.search, self.conditions)
        return replace(self, starts=self.starts[begin:end], ends=self.ends[begin:end], run=run)

    def _sample_until_abandoned(self, steps: int) -> tuple[WorkSample, int]:
        """Return a sample that ends with the first abandoned candidate, and about how many steps it took.

        The steps are 0 if no candidate is abandoned. One is if it takes more
        than `steps`, and more than all before it together.
        """
        output = new_match_table(_LARGEST_SAMPLE // 16, _LARGEST_SAMPLE, self.search.variable_count)
        status, at, before = Status.STEPS_SPENT, -1, 0
        while (
            status in (Status.STEPS_SPENT, Status.PATH_FULL)
            and at < self.run.state[PathState.CANDIDATE]
            and len(self.run.event) < _LARGEST_SAMPLE
        ):
            at = int(self.run.state[PathState.CANDIDATE]) if status == Status.STEPS_SPENT else at
            # each call is as long as all before it, so that few are needed
            before = int(self.run.state[PathState.STEPS])
            status = self._advance(output, max(steps, before), counting=False)
        state, finished = self.run.state, status == Status.FINISHED
        found = int(state[PathState.MATCHES]), int(state[PathState.EVENTS])
        tried = int(state[PathState.CANDIDATE]) + (not finished)
        passed, wasted = int(state[PathState.REJECTED]), wasted_searches(self.run)
        spent = 0 if finished else max(int(state[PathState.STEPS]) - before, 1)
        return WorkSample(len(self.starts), tried, int(state[PathState.STEPS]), *found, passed=passed, wasted=wasted), spent

    def with_jumps(self, sample: WorkSample, times: float) -> _Enumeration | None:
        """Return the search with jumps; None if they do not pay for `times` the work of the sample."""
        steps, passed, wasted = (int(times * each) for each in (sample.steps, sample.passed, sample.wasted))
        if not self.indexes.may_pay or not self.indexes.pay(steps, passed, wasted, self.share, self._speed):
            return None
        dead_ends = allocate_dead_ends(self.search.state_keys, self.starts, self.ends)
        walks = self.walks and not self.indexes.looking_ahead_pays(steps - passed, wasted, self.share)
        return replace(self, walks=walks, jumps=self.indexes.jumps(), dead_ends=dead_ends)

    def _advance(self, output: MatchTable, limit: int, *, counting: bool) -> Status:
        """Search on for about `limit` steps; returns why the kernel stopped. After PATH_FULL there is room for a longer path."""
        search, tables, run = self.search, self.search.tables, self.run
        windows, criteria = CandidateWindows(self.starts, self.ends), Criteria(tables.pattern, self.conditions, search.negations)
        strategy, status = STRATEGY[search.plan.strategy], Status.CHOICE
        walk = Walk(strategy, counting, limit)
        if self.walks and self.chain is not None:
            slots = np.empty(2 * search.variable_count + 1, np.int64)
            status = chain_kernel(tables)(windows, self.events, criteria, self.chain, walk, slots, run, output)
            self.walks = status != Status.CHOICE
        elif self.walks and tables.judgements is not None and walks_on(search.plan, tables):
            status = window_kernel(search.plan, tables)(windows, self.events, criteria, tables.judgements, self.jumps, walk, run, output)
            self.walks = status != Status.CHOICE
        if status == Status.CHOICE:
            shortcuts, mode = Shortcuts(self.jumps, self.dead_ends), Mode(strategy, counting, limit)
            status = enumerate_matches(windows, self.events, criteria, shortcuts, mode, run, output)
        if status == Status.OVERFLOWED:
            raise search.overflow(failed_condition(run), int(self.starts[run.state[PathState.CANDIDATE]]) + self.batch.low)
        if status == Status.PATH_FULL:
            self.run = deepen_path(run)
        return status

    @property
    def chain(self) -> Chain | None:
        """Return what a walk over a chain judges; None if the windows are walked in the general way, which jumps."""
        as_chain = walks_chains(self.search.plan, self.search.tables) and self.jumps.patience == UNBOUNDED
        return self.search.tables.chain if as_chain else None

    @property
    def _speed(self) -> int:
        """Return how many times as fast as other steps one over an event is."""
        return _SIFTED if self.walks and self.chain is not None and (self.chain.sieve.means != BY_PROGRAM).any() else 1

    def _step_limit(self) -> int:
        """Return how many steps the next call may take, and let searches jump from now on if that pays.

        As long as they may come to jump, a call takes about as many steps as all before it.
        """
        if self.jumps.patience < UNBOUNDED or not self.indexes.may_pay:
            return STEPS_PER_CALL
        passed, wasted = int(self.run.state[PathState.REJECTED]), wasted_searches(self.run) if self.steps else 0
        if self.steps and self.indexes.pay(self.steps, passed, wasted, self.share, self._speed):
            self.jumps = self.indexes.jumps()
            # a walk jumps, too, but looks ahead no further than the next event
            self.walks = self.walks and not self.indexes.looking_ahead_pays(self.steps - passed, wasted, self.share)
            # so that the current search looks ahead, too
            self.run.state[PathState.LOOK] = self.jumps.patience
            return STEPS_PER_CALL
        return min(max(self.steps, FIRST_WALKED if self.walks else FIRST_STEPS), STEPS_PER_CALL)

    def _spend(self, matches: int, events: int, candidate_of: Callable[[int], int]) -> None:
        """Account for matches and steps since the last call; ``candidate_of(i)`` is match i's candidate."""
        state = self.run.state
        current = min(int(state[PathState.CANDIDATE]), len(self.starts) - 1)

        def start_of(match: int) -> int:
            return self.batch.low + int(self.starts[candidate_of(match) if match < matches else current])

        self.search.budget.spend(matches, events, int(state[PathState.STEPS]), start_of)
        self.steps += int(state[PathState.STEPS])
        self.steps_here = self.steps_here + int(state[PathState.STEPS]) if current == self.window else 0
        self.window = current
        state[PathState.STEPS] = 0
        plan = self.search.plan
        if self.steps_here > MOST_ROBUST_STEPS and plan.strategy == ROBUST and plan.settings.max_steps is None:
            raise BudgetExceeded(start_of(matches), f"more than {MOST_ROBUST_STEPS:,} steps under {ROBUST}; {_FEWER_STEPS}")


def _new_path(search: Search, conditions: Conditions) -> EventPath:
    """Return an empty path."""
    pattern = search.tables.pattern
    return new_path(_depth(Identity(pattern)), pattern, conditions, search.kept_matches, search.kept_limit)


@lru_cache(maxsize=256)
def _depth(pattern: Identity[PatternTable]) -> int:
    """Return how many events a new path has room for."""
    return _PATH * _LONGER if (pattern.value.maximum == UNBOUNDED).any() else _PATH


def _entry_behind(candidates: Indices, before: int, match: int) -> int:
    """Return the candidate of match number `before` + `match`, of which ``candidates`` has one for each match."""
    return int(candidates[before + match])


def _entry_after(totals: Indices, spent: int, match: int) -> int:
    """Return the candidate of match number `spent` + `match` if candidate w has ``totals[w]`` matches."""
    return entry_of_match(totals, spent + match)
