"""Walk through the candidate windows of a chain on a card: the matches that have no choice are found there (phase 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_cep.engine.lowering.pattern_tables import MatcherTables, is_chain, of_singles
from gpu_cep.engine.phase_one.device.device_matches import DeviceMatches, cut_sizes
from gpu_cep.engine.phase_one.device.disjoint_matches import keeps_disjoint
from gpu_cep.engine.phase_one.device.held_windows import OpenedWindows, WindowBytes, bytes_of_held, conditions_without_bank
from gpu_cep.plan.event_plan import EventPlan, PlannedBranch
from gpu_cep_kernels.automaton.chain_judgements import Chain
from gpu_cep_kernels.automaton.chain_negations import rule_out_runs
from gpu_cep_kernels.automaton.chain_windows import (
    ChainCriteria,
    ChainMatches,
    ChainRuns,
    ChainScratch,
    ChainWalk,
    RunNumber,
    chain_criteria,
    new_runs,
    new_scratch,
    walk_chain_windows,
    walk_compared_windows,
)
from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.automaton.robust_windows import (
    walk_negated_robust_windows,
    walk_robust_compared_windows,
    walk_robust_windows,
)
from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.primitives import sum_as
from gpu_cep_kernels.rules.tables import PathState, Status

# Steps that a run makes in a launch, and launches after which the CPU searches the windows whose runs have not ended.
STEPS_PER_LAUNCH, MOST_LAUNCHES = 1 << 12, 8
# Bytes per window beside those of its run: its place in order, sorted in scratch, what became of it, and where its match is written.
_WINDOW = 8 + 4 + 32 + 8 + 2 * 8
# The same, beside what is let go of these, where matches are taken apart: their ends, hops in blocks of five sizes, what is kept.
_TAKEN_APART = 2 * (8 + 4) + 5 * 4 + 8
# Bytes where there are negations: per window its number; per held event its label and times,
# and its place for each negation.
_JUDGED, _PLACED, _NEGATED = 8, 8 + 2 * 8, 8 + 1


def walks_patterns(plan: EventPlan) -> bool:
    """Return whether a card walks through the candidate windows of a plan.

    Each branch is a chain under skip-till-next-match, so that each start has one match of it at most.
    Negations may rule it out. Under robust skip-till-next-match its variables bind one event each.
    No condition calls a function of the CPU.
    """
    judged = not {"summary", "chain"}.isdisjoint(plan.pruning)
    asked = plan.settings.limit_per_start is None and plan.settings.output != "compressed"
    if not judged or not asked or "ses_automaton" not in plan.contenders:
        return False
    return all(_is_walked(plan, branch) for branch in plan.branches)


def _is_walked(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether a card walks through the candidate windows of a branch."""
    followed = plan.strategy == "skip_till_next_match" or (is_robust(plan) and of_singles(plan, branch))
    return followed and not any(condition.program.calls for condition in branch.conditions) and is_chain(plan, branch)


def is_robust(plan: EventPlan) -> bool:
    """Return whether runs of a plan step back from events that lead to no match."""
    return plan.strategy == "robust_skip_till_next_match"


@dataclass(frozen=True, slots=True)
class WalkTables:
    """The tables of a chain on a card, which also judges its negations; its bank is empty.

    `walk` follows the runs of windows.
    """

    criteria: ChainCriteria
    chain: Chain
    walk: Kernel[..., Any]

    @property
    def steps_back(self) -> bool:
        """Return whether runs step back from matches that negations rule out."""
        return self.walk is walk_negated_robust_windows


def walk_tables(plan: EventPlan, tables: MatcherTables, device: Device) -> WalkTables:
    """Return the tables of a branch that is a chain, on the card."""
    criteria = chain_criteria(tables.pattern, conditions_without_bank(tables))
    criteria, chain = to_device(device, (criteria, tables.walked_chain))
    return WalkTables(criteria, chain, _walk_of(tables, is_robust(plan)))


def _walk_of(tables: MatcherTables, robust: bool) -> Kernel[..., Any]:
    """Return the kernel that follows runs; it has no code for programs, or for negations, where none are needed."""
    if robust and tables.branch.negations:
        return walk_negated_robust_windows
    if tables.only_compares:
        return walk_robust_compared_windows if robust else walk_compared_windows
    return walk_robust_windows if robust else walk_chain_windows


def bytes_of_walk(tables: MatcherTables, plan: EventPlan) -> WindowBytes:
    """Return the bytes that a walk takes."""
    variables, values = len(tables.pattern.order), len(tables.aggregates.step)
    slot = 8 * len(PathState) + 16 * max(1, tables.conditions.roles) + 17 * max(1, tables.programs.registers)
    run = 4 * len(RunNumber) + 8 * (2 * variables + 1) + 24 * values * variables
    negations = len(tables.branch.negations)
    window = run + _WINDOW + (_TAKEN_APART if keeps_disjoint(plan) else 0) + (_JUDGED if negations else 0)
    negated = _PLACED + negations * _NEGATED if negations else 0
    slotted = bool(negations) or _walk_of(tables, is_robust(plan)).slotted
    return WindowBytes(window, slot if slotted else 0, bytes_of_held(tables, plan) + negated)


@dataclass(frozen=True, slots=True)
class ChainWalks(OpenedWindows):
    """Walks through the held windows of a batch."""

    own: WalkTables

    def count(self, low: int, high: int) -> CountedRuns:
        """Return what became of the runs of the windows [low, high), without their matches.

        Raises
        ------
        ConditionOverflow
            A condition overflowed; of several windows the first one is named.
        """
        windows = self.windows(low, high)
        xp, variables = self.device.xp, self.variables
        runs = new_runs(xp, high - low, variables, len(self.tables.aggregates.step))
        none = xp.empty(0, np.int64)
        matches = ChainMatches(none, none, xp.empty((0, variables), np.int32), xp.empty(0, np.int32))
        self._walk(windows, self.longest_first(windows), ChainWalk(counting=True, step_limit=STEPS_PER_LAUNCH), runs, matches)
        numbers = runs.numbers
        self._rule_out(runs)
        self.refuse_overflow(windows, numbers[RunNumber.FAULT])
        status = numbers[RunNumber.STATUS]
        finished = status == int(Status.FINISHED)
        found = xp.flatnonzero(finished & (numbers[RunNumber.DEPTH] != 0))
        left = xp.flatnonzero(status != int(Status.FINISHED))
        # the CPU counts those of the windows that are left
        steps = int(sum_as(np.int64, numbers[RunNumber.STEPS] * finished))
        return CountedRuns(self, windows, runs, found, left, steps)

    def _walk(self, windows: CandidateWindows, going: Array, walk: ChainWalk, runs: ChainRuns, matches: ChainMatches) -> None:
        """Let the runs of the windows `going` go on until all have ended, or there were too many launches."""
        scratch = (self._scratch(int(going.size)),) if self.own.walk.slotted else ()
        criteria, launches = self.own.criteria._replace(conditions=self.with_bank(self.own.criteria.conditions)), 0
        while going.size and launches < MOST_LAUNCHES:
            judged = criteria, self.own.chain, *([self.held.negations] if self.own.steps_back else [])
            arguments = windows, self.held.following, *judged, walk, *scratch, runs, matches
            self.device.launch(self.own.walk, int(going.size), going, *arguments)
            going = going[runs.numbers[RunNumber.STATUS][going] == int(Status.STEPS_SPENT)]
            launches += 1

    def _rule_out(self, runs: ChainRuns) -> None:
        """Let runs that end in a match end in none if a negation rules it out."""
        negations, xp = self.held.negations, self.device.xp
        if negations is None or self.own.steps_back:
            return
        found = xp.flatnonzero((runs.numbers[RunNumber.STATUS] == int(Status.FINISHED)) & (runs.numbers[RunNumber.DEPTH] != 0))
        if found.size:
            scratch, size = self._scratch(int(found.size)), int(found.size)
            conditions = self.with_bank(self.own.criteria.conditions)
            self.device.launch(rule_out_runs, size, found, conditions, self.own.chain, negations, scratch, runs)

    def _scratch(self, size: int) -> ChainScratch:
        """Return scratch for a launch over `size` windows."""
        roles, registers = self.tables.conditions.roles, self.tables.programs.registers
        return new_scratch(self.device.xp, self.device.slots(size), roles, registers)

    def write(self, counted: CountedRuns, found: Array, depth: Array) -> DeviceMatches:
        """Return the matches of the windows `found`, which bind `depth` events each: their runs are walked anew."""
        xp, windows, runs = self.device.xp, counted.windows, counted.runs
        runs.numbers[RunNumber.DEPTH, found] = 0
        match = xp.empty(windows.starts.size, np.int64)
        match[found] = xp.arange(found.size, dtype=np.int64)
        place, events = self.places(windows, found, depth)
        counts = xp.empty((int(found.size), self.variables), np.int32)
        matches = ChainMatches(match, place, counts, xp.empty(events, np.int32))
        self._walk(windows, self.longest_first(windows, found), ChainWalk(counting=False, step_limit=STEPS_PER_LAUNCH), runs, matches)
        return DeviceMatches(windows.starts[found], counts, matches.events)


@dataclass(frozen=True, slots=True)
class CountedRuns:
    """What became of the runs of some windows.

    `found` are the windows with a match, ascending, `left` those that the CPU is to search. `steps` are those
    of all others.
    """

    walks: ChainWalks
    windows: CandidateWindows
    runs: ChainRuns
    found: Array
    left: Array
    steps: int

    def start_of(self, match: int) -> int:
        """Return the ordered event at which a match starts; behind the last match, that of the last window."""
        found = self.found[match : match + 1] if match < self.found.size else slice(-1, None)
        return self.walks.event_of(self.windows.starts[found])

    def write(self, most: int) -> Iterator[DeviceMatches]:
        """Yield the matches, by the numbers of held events; so many at a time that they bind about `most` events."""
        if self.found.size:
            depth = self.runs.numbers[RunNumber.DEPTH][self.found].astype(np.int64)
            for low, high in cut_sizes(self.walks.device, depth, most):
                yield self.walks.write(self, self.found[low:high], depth[low:high])

    @property
    def matches(self) -> int:
        """Return how many matches were found."""
        return int(self.found.size)

    @property
    def bound(self) -> int:
        """Return how many events they bind."""
        return int(sum_as(np.int64, self.runs.numbers[RunNumber.DEPTH][self.found]))

    @property
    def each(self) -> None:
        """Return how many matches each window of those found has: one."""

    def ends(self) -> tuple[Array, Array]:
        """Return the first (int64) and the last event (int32) of each match that was found, as numbers of held events."""
        # the slot behind the last variable's first event has the row of its last one, which is the event's number
        return self.windows.starts[self.found], self.runs.slots[self.found, -2].astype(np.int32)
