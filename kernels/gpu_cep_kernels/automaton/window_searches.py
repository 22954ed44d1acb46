"""Search windows side by side, each by itself, for all matches that its strategy finds in it.

The search is that of :mod:`gpu_cep_kernels.automaton.enumeration`, by the same rules. It keeps no dead ends,
skips no events by bounds, and cuts no run off. So it is stopped where a window takes many steps. Conditions are
judged as in :mod:`gpu_cep_kernels.automaton.single_runs`. A first search counts the matches of each window and
their events; a second one writes them where the counts say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.automaton.chain_windows import ChainConditions
from gpu_cep_kernels.automaton.enumeration import (
    DONE,
    REPORT,
    SEARCH,
    TAKE,
    CandidateWindows,
    Mode,
    bind_next,
    is_complete,
    list_available,
    phase_after_binding,
    phase_after_choices,
    phase_after_search,
    step_back,
)
from gpu_cep_kernels.automaton.lookahead import can_complete
from gpu_cep_kernels.automaton.single_runs import Judgements, may_bind
from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.path import earliest_place, write_match
from gpu_cep_kernels.rules.scalars import bit
from gpu_cep_kernels.rules.tables import (
    AggregateValues,
    Flags,
    Floats,
    Ints,
    PathState,
    PatternTable,
    Places,
    Registers,
    Status,
    Strategy,
    Variables,
)


class SearchCriteria(NamedTuple):
    """Hold what makes events a match: the pattern, the conditions, and where they are judged."""

    pattern: PatternTable
    conditions: ChainConditions
    judgements: Judgements


class _ByPlace(NamedTuple):
    """Name the rows of SearchScratch.places, as the fields of the same names of EventPath."""

    EVENT: int = 0
    EARLIER: int = 1
    CHOICE_EVENT: int = 2
    LEFT: int = 3
    LED: int = 4


class _ByVariable(NamedTuple):
    """Name the rows of SearchScratch.variables, as the fields of the same names of EventPath."""

    LAST: int = 0
    FIRST: int = 1
    BOUND: int = 2
    BLOCKERS: int = 3
    NEXT_PLACE: int = 4
    EARLIEST: int = 5


_PLACE, _VARIABLE = _ByPlace(), _ByVariable()


class SearchScratch(NamedTuple):
    """Hold the path of each slot.

    - places [slot, name, d]: what _ByPlace names of each place d; there is one place more than a path may have events.
    - bound_to [slot, d], choices [slot, d, k], available [slot, k]: as the fields of the same names of EventPath.
    - variables [slot, name, v]: what _ByVariable names of each variable v.
    - state [slot]: numbers that PathState names.
    - whole [slot, 0, k, d], [slot, 1, k, d]: the counts and ints of AggregateValues; floats [slot, k, d].
    - roles [slot, 0], [slot, 1]: the rows and places of Registers; the registers of each type [slot].
    """

    places: Places
    bound_to: Variables
    choices: Variables
    available: Variables
    variables: Places
    state: Ints
    whole: Ints
    floats: Floats
    roles: Ints
    int_registers: Ints
    float_registers: Floats
    null_registers: Flags


class SearchPath(NamedTuple):
    """Hold the state of a search, as the fields of the same names of EventPath."""

    event: Places
    bound_to: Variables
    earlier: Places
    choice_event: Places
    choices: Variables
    left: Places
    led: Places
    last: Places
    first: Places
    bound: Places
    blockers: Places
    available: Variables
    next_place: Places
    earliest: Places
    state: Ints
    aggregates: AggregateValues
    registers: Registers


class _SearchNumber(NamedTuple):
    """Name the numbers that are kept of a window's search."""

    MATCHES: int = 0  # how many matches were found,
    EVENTS: int = 1  # and how many events they bind together
    STEPS: int = 2  # how many steps were made
    STATUS: int = 3  # why the search stopped
    FAULT: int = 4  # 0, or 1 plus the condition that overflowed
    LAST: int = 5  # the last event of the match that ends first; any number if there is none


SearchNumber = _SearchNumber()


class SearchedMatches(NamedTuple):
    """Receive matches; they are written where it is known how many there are.

    - match[w]: the number of window w's first match, and place[w]: where its events begin.
    - starts, counts, events: as the fields of the same names of MatchTable; a match starts at an event.
    """

    match: Ints
    place: Ints
    starts: Ints
    counts: Places
    events: Places


def new_search_scratch(xp: Any, slots: int, room: int, variables: int, aggregates: int, roles: int, registers: int) -> SearchScratch:
    """Return scratch for `slots` threads whose paths have `room` for so many events, as arrays of the module `xp`."""
    ints, floats, nulls = (xp.empty((slots, max(1, registers)), kind) for kind in (xp.int64, xp.float64, xp.bool_))
    return SearchScratch(
        places=xp.empty((slots, len(_PLACE), room + 1), xp.int32),
        bound_to=xp.empty((slots, room), xp.uint16),
        choices=xp.empty((slots, room + 1, variables), xp.uint16),
        available=xp.empty((slots, variables), xp.uint16),
        variables=xp.empty((slots, len(_VARIABLE), variables), xp.int32),
        state=xp.empty((slots, len(PathState)), xp.int64),
        whole=xp.empty((slots, 2, aggregates, room), xp.int64),
        floats=xp.empty((slots, aggregates, room), xp.float64),
        roles=xp.empty((slots, 2, max(1, roles)), xp.int64),
        int_registers=ints,
        float_registers=floats,
        null_registers=nulls,
    )


@rule
def _path_of(slot: int, scratch: SearchScratch) -> SearchPath:
    """Return the path of a slot."""
    places, variables, whole, roles = scratch.places[slot], scratch.variables[slot], scratch.whole[slot], scratch.roles[slot]
    ints, floats, nulls = scratch.int_registers[slot], scratch.float_registers[slot], scratch.null_registers[slot]
    return SearchPath(
        places[_PLACE.EVENT],
        scratch.bound_to[slot],
        places[_PLACE.EARLIER],
        places[_PLACE.CHOICE_EVENT],
        scratch.choices[slot],
        places[_PLACE.LEFT],
        places[_PLACE.LED],
        variables[_VARIABLE.LAST],
        variables[_VARIABLE.FIRST],
        variables[_VARIABLE.BOUND],
        variables[_VARIABLE.BLOCKERS],
        scratch.available[slot],
        variables[_VARIABLE.NEXT_PLACE],
        variables[_VARIABLE.EARLIEST],
        scratch.state[slot],
        AggregateValues(whole[0], whole[1], scratch.floats[slot]),
        Registers(roles[0], roles[1], ints, floats, nulls),
    )


@rule
def _clear(pattern: PatternTable, path: SearchPath) -> None:
    """Unbind all variables."""
    variables = pattern.order.size
    for v in range(variables):
        path.bound[v] = 0
        path.last[v] = -1
        path.first[v] = -1
        path.blockers[v] = 0
        for u in range(variables):
            path.blockers[v] += pattern.precedes[u, v]
    path.state[PathState.UNSATISFIED] = variables
    path.state[PathState.STEPS] = 0
    path.state[PathState.ERROR_CONDITION] = 0


@rule
def _bound_variables(path: SearchPath) -> np.uint64:
    """Return the mask of the variables that bind an event."""
    bound = np.uint64(0)
    for v in range(path.bound.size):
        if path.bound[v] > 0:
            bound |= bit(v)
    return bound


@rule
def _choose(
    depth: int, event: int, available: int, bound: np.uint64, events: NextEvents, criteria: SearchCriteria, path: SearchPath
) -> None:  # fmt: skip
    """Write the choices at place `depth`, the available variables that may bind `event`; let those that may not look behind it."""
    left = 0
    for k in range(available):
        v = path.available[k]
        if path.next_place[k] == event:
            if may_bind(v, event, bound, criteria.conditions, criteria.judgements, path):
                path.choices[depth, left] = v
                left += 1
            path.next_place[k] = events.occurrence[v, event + 1]
    path.left[depth] = left


@rule
def _nearest(available: int, end: int, path: SearchPath) -> int:
    """Return the first of the next places of the available variables, or `end`."""
    nearest = end
    for k in range(available):
        nearest = min(nearest, path.next_place[k])
    return nearest


@rule
def _begin(start: int, events: NextEvents, criteria: SearchCriteria, path: SearchPath) -> None:
    """Set the choices at the start: the variables that may begin a match with it."""
    available = list_available(criteria.pattern, path)
    for k in range(available):
        path.next_place[k] = events.occurrence[path.available[k], start]
    path.choice_event[0] = start
    _choose(0, start, available, np.uint64(0), events, criteria, path)


@rule
def _search_next(depth: int, end: int, mode: Mode, events: NextEvents, criteria: SearchCriteria, path: SearchPath) -> None:
    """Find the next event that can be bound behind ``choice_event[depth]``, and list its variables.

    Where there is none, the event is `end`, with no choices. The search gives up once too many steps were made.
    """
    pattern, position = criteria.pattern, int(path.choice_event[depth])
    available, bound = list_available(pattern, path), _bound_variables(path)
    goes_back = mode.strategy == Strategy.ANY or mode.strategy == Strategy.ROBUST
    nearest = end
    path.left[depth] = 0
    path.state[PathState.STEPS] += 1
    if not goes_back or is_complete(path) or can_complete(position, end, events, pattern, path):
        for k in range(available):
            v = path.available[k]
            path.next_place[k] = events.occurrence[v, earliest_place(v, position, events.after, pattern, path)]
        nearest = _nearest(available, end, path)
    while nearest < end and path.left[depth] == 0 and path.state[PathState.STEPS] <= mode.step_limit:
        path.state[PathState.STEPS] += 1
        _choose(depth, nearest, available, bound, events, criteria, path)
        if path.left[depth] == 0:
            nearest = _nearest(available, end, path)
    path.choice_event[depth] = nearest


@rule
def _search_window(
    start: int, end: int, mode: Mode, events: NextEvents, criteria: SearchCriteria, path: SearchPath, matches: SearchedMatches
) -> tuple[Status, int]:  # fmt: skip
    """Find the matches of a window, and count or write them; return why the search stopped, and where the first match ends."""
    pattern, conditions, strategy, state = criteria.pattern, criteria.conditions, mode.strategy, path.state
    room = path.bound_to.size
    _clear(pattern, path)
    _begin(start, events, criteria, path)
    depth, phase, status, last = 0, TAKE, Status.FINISHED, end
    while phase != DONE and status == Status.FINISHED:
        if phase == TAKE and path.left[depth] > 0:
            if depth < room:
                bind_next(depth, pattern, conditions, path)
                depth += 1
                phase = phase_after_binding(strategy, path)
            else:
                status = Status.PATH_FULL
        elif phase == TAKE:
            phase = phase_after_choices(depth, end, strategy, path)
            if phase == TAKE:
                depth -= 1
                step_back(depth, pattern, path)
        elif phase == SEARCH:
            _search_next(depth, end, mode, events, criteria, path)
            phase = phase_after_search(depth, strategy, path)
            if state[PathState.STEPS] > mode.step_limit:
                status = Status.STEPS_SPENT
        elif phase == REPORT:
            path.led[depth] = 1
            last = min(last, int(path.event[depth - 1]))
            phase = SEARCH if strategy == Strategy.ANY else TAKE
            if mode.counting:
                state[PathState.MATCHES] += 1
                state[PathState.EVENTS] += depth
            else:
                write_match(start, matches, path)
        if state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
    return status, last


@kernel(writes=("numbers", "matches.starts", "matches.counts", "matches.events"), scratch=("scratch",))
def search_windows(
    low: int, high: int, slot: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: SearchCriteria, mode: Mode,
    scratch: SearchScratch, numbers: Places, matches: SearchedMatches,
) -> None:  # fmt: skip
    """Search the windows ``going[low:high]`` from their starts; keep for each one what SearchNumber names.

    A search is FINISHED, or OVERFLOWED. Else it takes more steps than it may, or binds more events than there is room for:
    STEPS_SPENT, PATH_FULL.
    """
    for i in range(low, high):
        w = going[i]
        path = _path_of(slot, scratch)
        state = path.state
        first, place = (0, 0) if mode.counting else (int(matches.match[w]), int(matches.place[w]))
        state[PathState.MATCHES] = first
        state[PathState.EVENTS] = place
        status, last = _search_window(int(windows.starts[w]), int(windows.ends[w]), mode, events, criteria, path, matches)
        numbers[SearchNumber.MATCHES, w] = state[PathState.MATCHES] - first
        numbers[SearchNumber.EVENTS, w] = state[PathState.EVENTS] - place
        numbers[SearchNumber.STEPS, w] = state[PathState.STEPS]
        numbers[SearchNumber.STATUS, w] = status
        numbers[SearchNumber.FAULT, w] = state[PathState.ERROR_CONDITION]
        numbers[SearchNumber.LAST, w] = last
