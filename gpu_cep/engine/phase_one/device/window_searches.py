"""Search the candidate windows of any pattern on a card, also where an event leaves a choice, or a set has any order (phase 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.lowering.pattern_tables import (
    STRATEGY,
    MatcherTables,
    is_chain,
    is_judged_as_it_grows,
    of_singles,
)
from gpu_cep.engine.phase_one.device.device_matches import DeviceMatches, cut_sizes
from gpu_cep.engine.phase_one.device.held_windows import OpenedWindows, WindowBytes, bytes_of_held, conditions_without_bank
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.automaton.chain_windows import chain_criteria
from gpu_cep_kernels.automaton.enumeration import CandidateWindows, Mode
from gpu_cep_kernels.automaton.window_searches import (
    SearchCriteria,
    SearchedMatches,
    SearchNumber,
    SearchScratch,
    new_search_scratch,
    search_windows,
)
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.primitives import sum_as
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import PathState, Status

# Steps that a search makes at most, launch by launch: what takes more is searched again from its start, in the end by the CPU.
STEP_LIMITS = (1 << 12, 1 << 15)
# Events that a match binds at most; the CPU searches windows with longer runs.
MOST_BOUND = 64
# The strategies whose windows are searched, and the one of which matches are counted there.
_SEARCHED, _COUNTED = ("skip_till_next_match", "robust_skip_till_next_match"), "skip_till_any_match"
# Bytes per window: its place in order, sorted in scratch, what became of it, and where its matches are written.
_WINDOW = 8 + 32 + 4 * len(SearchNumber) + 8 + 4 * 8


def searches_patterns(plan: EventPlan) -> bool:
    """Return whether a card searches the candidate windows of a plan.

    Nothing is negated, and no condition waits for the end of a match, reads several events of a variable at once, or calls a
    function of the CPU. Under skip-till-any-match all matches are counted, of patterns that are more than events in a row.
    """
    settings = plan.settings
    judged = not {"summary", "chain"}.isdisjoint(plan.pruning) and (plan.strategy in _SEARCHED or _counts_any(plan))
    asked = settings.limit_per_start is None and settings.output != "compressed"
    if not judged or not asked or "ses_automaton" not in plan.contenders:
        return False
    called = any(condition.program.calls for branch in plan.branches for condition in branch.conditions)
    return not called and all(is_judged_as_it_grows(plan, branch) for branch in plan.branches)


def _counts_any(plan: EventPlan) -> bool:
    """Return whether a plan counts all matches under skip-till-any-match, and some branch has a set or a quantified variable."""
    counted = plan.strategy == _COUNTED and plan.settings.output == "count" and plan.settings.keeps_all
    apart = plan.finds_once
    return counted and apart and not all(of_singles(plan, branch) and is_chain(plan, branch) for branch in plan.branches)


@dataclass(frozen=True, slots=True)
class SearchTables:
    """The tables of a branch on a card; the bank of its conditions is empty.

    Its matches are searched by a `strategy`, and have `room` for so many events.
    """

    criteria: SearchCriteria
    strategy: int
    room: int


def search_tables(plan: EventPlan, tables: MatcherTables, device: Device) -> SearchTables:
    """Return the tables of a branch, on the card."""
    assert tables.judgements is not None, "judgements decide all of the branch"
    criteria = SearchCriteria(tables.pattern, chain_criteria(tables.pattern, conditions_without_bank(tables)).conditions, tables.judgements)
    return SearchTables(to_device(device, criteria), STRATEGY[plan.strategy], _room(tables))


def _room(tables: MatcherTables) -> int:
    """Return how many events a path may bind."""
    # several variables without a bound would overflow
    return int(np.minimum(tables.pattern.maximum, MOST_BOUND).sum().clip(max=MOST_BOUND))


def bytes_of_search(tables: MatcherTables, plan: EventPlan) -> WindowBytes:
    """Return the bytes that a search takes."""
    variables, places, values = len(tables.pattern.order), _room(tables) + 1, len(tables.aggregates.step)
    path = (4 * 5 + 2 + 2 * variables + 24 * values) * places + (2 + 4 * 6) * variables
    judged = 8 * len(PathState) + 16 * max(1, tables.conditions.roles) + 17 * max(1, tables.programs.registers)
    return WindowBytes(_WINDOW, path + judged, bytes_of_held(tables, plan))


@dataclass(frozen=True, slots=True)
class WindowSearches(OpenedWindows):
    """Searches through the held windows of a batch.

    Windows whose matches bind more than `most` events are left to the CPU.
    """

    own: SearchTables
    most: int

    def count(self, low: int, high: int) -> CountedSearches:
        """Return what was found in the windows [low, high), without the matches.

        Raises
        ------
        ConditionOverflow
            A condition overflowed; of several windows the first one is named.
        """
        windows, xp = self.windows(low, high), self.device.xp
        numbers, none = xp.empty((len(SearchNumber), high - low), xp.int32), xp.empty(0, np.int64)
        matches = SearchedMatches(none, none, none, xp.empty((0, self.variables), np.int32), xp.empty(0, np.int32))
        going, scratch = self.longest_first(windows), self._scratch(high - low)
        for limit in STEP_LIMITS:
            if going.size:
                self._search(windows, going, Mode(self.own.strategy, counting=True, step_limit=limit), scratch, numbers, matches)
                going = going[numbers[SearchNumber.STATUS][going] == int(Status.STEPS_SPENT)]
        self.refuse_overflow(windows, numbers[SearchNumber.FAULT])
        ended = (numbers[SearchNumber.STATUS] == int(Status.FINISHED)) & (numbers[SearchNumber.EVENTS] <= self.most)
        found = xp.flatnonzero(ended & (numbers[SearchNumber.MATCHES] != 0))
        # the CPU counts those of the windows that are left
        steps = int(sum_as(np.int64, numbers[SearchNumber.STEPS] * ended))
        return CountedSearches(self, windows, numbers, found, xp.flatnonzero(~ended), steps)

    def _search(
        self, windows: CandidateWindows, going: Array, mode: Mode, scratch: SearchScratch, numbers: Array, matches: SearchedMatches
    ) -> None:  # fmt: skip
        """Search the windows `going`."""
        criteria = self.own.criteria._replace(conditions=self.with_bank(self.own.criteria.conditions))
        arguments = windows, self.held.following, criteria, mode, scratch, numbers, matches
        self.device.launch(search_windows, int(going.size), going, *arguments)

    def _scratch(self, size: int) -> SearchScratch:
        """Return scratch for a launch over `size` windows."""
        tables, values = self.tables, len(self.tables.aggregates.step)
        slots, roles, registers = self.device.slots(size), tables.conditions.roles, tables.programs.registers
        return new_search_scratch(self.device.xp, slots, self.own.room, self.variables, values, roles, registers)

    def write(self, counted: CountedSearches, found: Array, each: Array, bound: Array) -> DeviceMatches:
        """Return the matches of the windows `found`: `each` has so many, which bind so many events. They are searched anew."""
        xp, windows = self.device.xp, counted.windows
        match, number = self.places(windows, found, each)
        place, events = self.places(windows, found, bound)
        starts, counts = xp.empty(number, np.int64), xp.empty((number, self.variables), np.int32)
        matches = SearchedMatches(match, place, starts, counts, xp.empty(events, np.int32))
        going, mode = self.longest_first(windows, found), Mode(self.own.strategy, counting=False, step_limit=UNBOUNDED)
        self._search(windows, going, mode, self._scratch(int(found.size)), counted.numbers, matches)
        return DeviceMatches(starts, counts, matches.events)


@dataclass(frozen=True, slots=True)
class CountedSearches:
    """What was found in some windows.

    `found` are the windows with matches, ascending, `left` those that the CPU is to search. `steps` are those
    of all others.
    """

    searches: WindowSearches
    windows: CandidateWindows
    numbers: Array
    found: Array
    left: Array
    steps: int

    def start_of(self, match: int) -> int:
        """Return the ordered event at which a match starts; behind the last match, that of the last window."""
        if match >= self.matches:
            return self.searches.event_of(self.windows.starts[-1:])
        device = self.searches.device
        window = device.xp.searchsorted(device.xp.cumsum(self.each), device.upload(np.array([match])), side="right")
        return self.searches.event_of(self.windows.starts[self.found[window]])

    def write(self, most: int) -> Iterator[DeviceMatches]:
        """Yield the matches, by the numbers of held events; so many at a time that they bind about `most` events."""
        if self.found.size:
            bound, each = self.numbers[SearchNumber.EVENTS][self.found].astype(np.int64), self.each
            for low, high in cut_sizes(self.searches.device, bound, most):
                yield self.searches.write(self, self.found[low:high], each[low:high], bound[low:high])

    def ends(self) -> tuple[Array, Array]:
        """Return of each window of those found the first event (int64) and the last one (int32) of the match that ends first."""
        return self.windows.starts[self.found], self.numbers[SearchNumber.LAST][self.found]

    @property
    def each(self) -> Array:
        """Return how many matches each window of those found has."""
        return self.numbers[SearchNumber.MATCHES][self.found].astype(np.int64)

    @property
    def matches(self) -> int:
        """Return how many matches were found."""
        return int(self.each.sum())

    @property
    def bound(self) -> int:
        """Return how many events they bind."""
        return int(sum_as(np.int64, self.numbers[SearchNumber.EVENTS][self.found]))
