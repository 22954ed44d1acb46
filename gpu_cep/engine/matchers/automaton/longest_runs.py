"""Find the timeouts of a batch: for each start without a match, the longest run that the strategy would have gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Counts, Flags, Indices, Matches, concatenate_matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.lowering.jump_tables import JumpIndexes
from gpu_cep.engine.lowering.pattern_tables import STRATEGY
from gpu_cep.engine.matchers.automaton.ses_automaton import FIRST_STEPS, STEPS_PER_CALL
from gpu_cep.engine.matchers.dead_ends import allocate_dead_ends
from gpu_cep.engine.matchers.match_tables import failed_condition, new_match_table
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import BatchWindows, BranchWindows, branch_windows, match_windows
from gpu_cep_kernels.automaton.enumeration import CandidateWindows, Mode, Shortcuts
from gpu_cep_kernels.automaton.longest_runs import Longest, find_longest_runs
from gpu_cep_kernels.matches.groups import group_begins
from gpu_cep_kernels.rules.path_arrays import deepen_path, double_rows, new_path
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Criteria, EventPath, EventTable, MatchTable, PathState, Places, Status

# Events of a path that there is room for at first.
_PATH = 64


class Prefixes(NamedTuple):
    """The timeouts of some starts, one for each, by first event.

    `bound`: what the variables of the query bind. `missing`: which of them bind less than their branch demands, [prefix, variable].
    """

    bound: Matches
    missing: Flags


@dataclass(frozen=True, slots=True)
class LongestRuns:
    """Finds timeouts, batch by batch.

    `lone` says which ordered events have a key that equals no other one, so that no event goes with them (None: none has).
    """

    searches: tuple[Search, ...]
    ordered: OrderedEvents
    lone: Flags | None

    def find(self, batch: Batch) -> Prefixes:
        """Return the timeouts whose starts are in the batch."""
        search = self.searches[0]
        windows = match_windows(search.plan, self.ordered, batch, search.profile)
        found = [self._of_branch(own, batch, windows) for own in self.searches]
        if len(found) == 1:
            return found[0][0]
        prefixes = concatenate_prefixes([each for each, _ in found], len(search.plan.query.positives))
        unmatched = np.flatnonzero(~np.isin(prefixes.bound.first, np.concatenate([starts for _, starts in found])))
        return _longest(Prefixes(prefixes.bound.reorder(unmatched), prefixes.missing[unmatched]))

    def _of_branch(self, search: Search, batch: Batch, windows: BatchWindows) -> tuple[Prefixes, Indices]:
        """Return the timeouts of a branch by itself, and its starts with a match."""
        own = branch_windows(windows, self.ordered, batch, search.tables, search.own, search.profile)
        ends = own.ends(own.starts)
        if self.lone is not None:
            ends = np.where(self.lone[batch.low + own.starts], own.starts + 1, ends).astype(ends.dtype)
        with search.profile.stage("matching"):
            bound, matched = _Runs.of(search, batch, own, ends).find()
        return Prefixes(
            bound.widen(search.tables.branch.positives, len(search.plan.query.positives)), _missing(bound.counts, search)
        ), matched


@dataclass(slots=True)
class _Runs:
    """The search through the windows of a branch in a batch, which are those of `windows`; `path` says how far it has come.

    It jumps by `indexes` once that pays, after so many `steps`.
    """

    search: Search
    batch: Batch
    windows: CandidateWindows
    events: EventTable
    indexes: JumpIndexes
    criteria: Criteria
    shortcuts: Shortcuts
    path: EventPath
    longest: Longest
    found: MatchTable
    steps: int = 0

    @classmethod
    def of(cls, search: Search, batch: Batch, branch: BranchWindows, ends: Places) -> _Runs:
        """Return the search before its first step."""
        starts, conditions, pattern = branch.starts, search.conditions(batch), search.tables.pattern
        table = new_match_table(len(starts), len(starts) * (search.tables.fewest + 1) + _PATH, search.variable_count)
        return cls(
            search=search,
            batch=batch,
            windows=CandidateWindows(starts, ends),
            events=search.event_table(batch, branch),
            indexes=branch.indexes,
            criteria=Criteria(pattern, conditions, search.negations),
            shortcuts=Shortcuts(branch.indexes.none(), allocate_dead_ends(None, starts, ends)),
            path=new_path(_PATH, pattern, conditions),
            longest=Longest(*np.zeros((3, 1), np.int64)),
            found=table._replace(totals=np.zeros(len(starts), np.int64)),
        )

    def find(self) -> tuple[Matches, Indices]:
        """Return the longest run of each window without a match, by start, and the starts of windows with one."""
        strategy, status = STRATEGY[self.search.plan.strategy], Status.STEPS_SPENT
        counted = np.zeros(2, np.int64)
        while status != Status.FINISHED:
            mode = Mode(strategy, counting=False, step_limit=self._step_limit())
            status = find_longest_runs(
                self.windows, self.events, self.criteria, self.shortcuts, mode, self.path, self.longest, self.found
            )  # fmt: skip
            counted = self._spend(counted)
            self._make_room(status)
        runs, events = counted
        low, found = self.batch.low, self.found
        first = self.windows.starts[found.starts[:runs]] + low
        return Matches(first, found.counts[:runs], found.events[:events] + low), self.windows.starts[found.totals > 0] + low

    def _step_limit(self) -> int:
        """Return how many steps the next call may take, and let searches jump from now on if that pays.

        As long as they may come to jump, a call takes about as many steps as all before it.
        """
        if self.shortcuts.jumps.patience < UNBOUNDED or not self.indexes.may_pay:
            return STEPS_PER_CALL
        if self.indexes.skipping_pays(self.steps, int(self.path.state[PathState.REJECTED]), 1.0):
            self.shortcuts = self.shortcuts._replace(jumps=self.indexes.jumps())
            return STEPS_PER_CALL
        return min(max(self.steps, FIRST_STEPS), STEPS_PER_CALL)

    def _make_room(self, status: Status) -> None:
        """Make the room for which the kernel stopped.

        Raises
        ------
        ConditionOverflow
            It stopped since a condition overflowed.
        """
        if status == Status.OVERFLOWED:
            raise self.search.overflow(failed_condition(self.path), self._start())
        if status == Status.PATH_FULL:
            self.path = deepen_path(self.path)
        if status == Status.OUTPUT_FULL:
            self.found = self.found._replace(events=double_rows(self.found.events))

    def _spend(self, before: Indices) -> Indices:
        """Account for the runs and steps since the last call, and return how many runs and events there are."""
        state = self.path.state
        counted = state[[PathState.MATCHES, PathState.EVENTS]]
        runs, events = (counted - before).tolist()
        self.search.budget.spend(runs, events, int(state[PathState.STEPS]), lambda run: self._start(int(before[0]) + run))
        self.steps += int(state[PathState.STEPS])
        state[PathState.STEPS] = 0
        return counted

    def _start(self, run: int | None = None) -> int:
        """Return the start of a run, or of the current window if there is no such run."""
        written = run is not None and run < self.path.state[PathState.MATCHES]
        window = self.found.starts[run] if written else min(self.path.state[PathState.CANDIDATE], len(self.windows.starts) - 1)
        return int(self.windows.starts[window]) + self.batch.low


def concatenate_prefixes(parts: list[Prefixes], variables: int) -> Prefixes:
    """Return the timeouts of all parts, one part after the other."""
    bound = concatenate_matches([part.bound for part in parts], variables)
    return Prefixes(bound, np.concatenate([np.empty((0, variables), np.bool_), *(part.missing for part in parts)]))


def _missing(counts: Counts, search: Search) -> Flags:
    """Return which variables of the query bind less than the branch demands."""
    missing = np.zeros((len(counts), len(search.plan.query.positives)), np.bool_)
    missing[:, list(search.tables.branch.positives)] = counts < search.tables.pattern.minimum
    return missing


def _longest(prefixes: Prefixes) -> Prefixes:
    """Return one of the timeouts of each start.

    It is the longest; of several, the one that lacks the fewest variables, then the first in the order of results, then the one
    that lacks the earliest variables.
    """
    bound, missing = prefixes
    keys = np.stack([bound.first, -np.diff(bound.offsets), missing.sum(axis=1), bound.last])
    order = np.lexsort((*~missing.T[::-1], *keys[::-1]))
    keys = keys[:, order]
    heads = group_begins(keys[0])
    # those that only bindings tell from the first of their start
    alike = order[(keys == np.repeat(keys[:, heads], np.diff(heads, append=len(order)), axis=1)).all(axis=0)]
    bound, missing = bound.reorder(alike), missing[alike]
    by_bindings = bound.order_within_starts()
    chosen = group_begins(bound.first)
    chosen = chosen if by_bindings is None else by_bindings[chosen]
    return Prefixes(bound.reorder(chosen), missing[chosen])
