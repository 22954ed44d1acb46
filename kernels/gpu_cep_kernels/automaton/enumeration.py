"""Enumerate matches depth first by the SES automaton (thesis Alg. 2), one run per candidate window; a call can resume.

A state is how often each variable is bound so far. States are computed and
never tabulated. From each state the run jumps to the next event that some
variable can bind. The next-occurrence arrays give it, so that irrelevant events
cost nothing. Three more shortcuts spare searches:

- jumps over many events in a row that conditions rule out (:mod:`gpu_cep_kernels.automaton.jumps`),
- an end to long runs that can become no match (:mod:`gpu_cep_kernels.automaton.lookahead`),
- remembered dead ends of the robust strategy (:mod:`gpu_cep_kernels.automaton.dead_ends`).

In Alg. 2 an event branches an instance into several. Here these are the
choices at one place of the path. (Erratum: the instance that branches does
not itself live on.)

The strategies differ in the events that a run passes over (docs/strategies.md):

- skip_till_next_match binds the first event that can be bound.
- contiguity looks at the very next event only.
- skip_till_any_match binds an event that can be bound, and also passes it over.
- robust skip_till_next_match passes an event over if no binding of it leads to
  a match. (Thesis Alg. 4: the choices at one place are siblings in the
  execution tree. Backtracking is blocked there once one of them has led to a
  match.)

skip_till_any_match reports every complete state, the others a state that no
further event extends.

``after_match`` may take only some matches. Then each one found cuts runs off
(:mod:`gpu_cep_kernels.rules.cut`). A run is cut off at an event that no match
to be taken binds. It then ends without a match, even if it is complete: the
event would extend it all the same. The robust strategy cuts no run off. It
must know whether events lead to a match, taken or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.automaton.dead_ends import DeadEnds, first_alive, is_dead_end, keep_dead_end
from gpu_cep_kernels.automaton.jumps import Jumps, jump, set_bounds
from gpu_cep_kernels.automaton.lookahead import (
    begin_searches,
    can_complete,
    can_complete_within_bounds,
    end_searches,
    looks_ahead,
    set_next_look,
)
from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.conditions import conditions_hold
from gpu_cep_kernels.rules.cut import begin_cut, is_cut_off, search_end
from gpu_cep_kernels.rules.path import bind, count_match, earliest_place, is_match, unbind, write_if_taken
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, EventTable, MatchTable, PathState, PatternTable, Status, Strategy
from gpu_cep_kernels.rules.walked import JudgedConditions, SearchingPath

BEGIN, TAKE, REPORT, SEARCH, DONE = range(5)


class CandidateWindows(NamedTuple):
    """Hold the windows to search; the matches of a window begin at its first event.

    - starts[w]: the first event of window w.
    - ends[w]: the event before which it ends.
    """

    starts: Any
    ends: Any


class Shortcuts(NamedTuple):
    """Hold what lets a search skip events: jumps by the bounds of conditions, and the dead ends found so far."""

    jumps: Jumps
    dead_ends: DeadEnds


class Mode(NamedTuple):
    """Say how to enumerate.

    - strategy: which events are passed over (a value of Strategy).
    - counting: whether matches are counted and not written.
    - step_limit: how many steps one call may make.
    """

    strategy: int
    counting: bool
    step_limit: int


@rule
def begin_run(start: int, events: EventTable, pattern: PatternTable, conditions: Conditions, path: EventPath) -> None:
    """Set the choices at the start event: the variables that may begin a match and whose properties and conditions it satisfies."""
    path.choice_event[0] = start
    left = 0
    for k in range(list_available(pattern, path)):
        v = path.available[k]
        fits = events.occurrence[v, start] == start
        if fits and conditions.table.alone[v]:
            fits = conditions_hold(v, start, pattern, conditions, path)
        if fits:
            path.choices[0, left] = v
            left += 1
    path.left[0] = left


@rule
def bind_next(depth: int, pattern: PatternTable, conditions: JudgedConditions, path: SearchingPath) -> None:
    """Bind the event at place `depth` to the last variable chosen for it that is left."""
    left = path.left[depth] - 1
    v = path.choices[depth, left]
    event = path.choice_event[depth]
    path.left[depth] = left
    bind(v, event, depth, pattern, conditions, path)
    path.choice_event[depth + 1] = event
    path.left[depth + 1] = 0
    path.led[depth + 1] = False


@rule
def is_complete(path: SearchingPath) -> bool:
    """Return whether every variable binds its minimum."""
    return path.state[PathState.UNSATISFIED] == 0


@rule
def list_available(pattern: PatternTable, path: SearchingPath) -> int:
    """Write to ``path.available`` the variables that may bind a further event; return how many.

    All before them have their minimum, none behind them is bound, and they are below their maximum.
    """
    count = 0
    for v in range(pattern.order.size):
        if path.blockers[v] == 0 and path.bound[v] < pattern.maximum[v]:
            path.available[count] = v
            count += 1
    return count


@rule
def _nearest(
    available: int, position: int, end: int, events: EventTable, pattern: PatternTable, dead_ends: DeadEnds, path: EventPath
) -> int:
    """Return the first event behind `position` that an `available` variable may bind, or `end`.

    Its label must allow it, and it must be no known dead end. Each variable's own
    first event is written to ``path.next_place``.
    """
    nearest = end
    for k in range(available):
        v = path.available[k]
        place = int(events.occurrence[v, earliest_place(v, position, events.after, pattern, path)])
        path.next_place[k] = first_alive(v, place, end, events.occurrence, path, dead_ends)
        nearest = min(nearest, path.next_place[k])
    return nearest


@rule
def _nearest_within_bounds(
    available: int, position: int, end: int, fresh: bool, events: EventTable, criteria: Criteria, shortcuts: Shortcuts, path: EventPath
) -> int:  # fmt: skip
    """Do as :func:`_nearest`, but skip events that the bounds of jumps rule out; `fresh` if these must be computed first."""
    pattern, conditions = criteria.pattern, criteria.conditions
    jumps, dead_ends = shortcuts
    nearest = end
    for k in range(available):
        v = path.available[k]
        if fresh:
            set_bounds(v, position, False, pattern, conditions, jumps, path)
        if fresh or path.next_place[k] <= position:
            place, alive = -1, earliest_place(v, position, events.after, pattern, path)
            while place < alive < end:
                place = jump(v, alive, end, events, conditions, jumps)
                alive = first_alive(v, place, end, events.occurrence, path, dead_ends)
            path.next_place[k] = alive
        nearest = min(nearest, path.next_place[k])
    return nearest


@rule
def _successor(available: int, position: int, end: int, events: EventTable, pattern: PatternTable, path: EventPath) -> int:
    """Return the event that follows in the partition, or `end`; write where each `available` variable may bind next."""
    nearest = min(int(events.successor[position]) if events.successor.size else position + 1, end)
    for k in range(available):
        v = path.available[k]
        path.next_place[k] = events.occurrence[v, max(nearest, earliest_place(v, position, events.after, pattern, path))]
    return nearest


@rule
def _choose(depth: int, nearest: int, available: int, pattern: PatternTable, conditions: Conditions, path: EventPath) -> int:
    """Write the choices at `depth`, the available variables to which `nearest` may be bound; return how many (ext(g, e))."""
    left = 0
    for k in range(available):
        v = path.available[k]
        if path.next_place[k] == nearest and conditions_hold(v, nearest, pattern, conditions, path):
            path.choices[depth, left] = v
            left += 1
    return left


@rule
def search_next(
    depth: int, end: int, strategy: int, limit: int, events: EventTable, criteria: Criteria, shortcuts: Shortcuts, path: EventPath
) -> bool:
    """Find the next event that can be bound behind ``choice_event[depth]``, and list its variables.

    Where no event can lead to a match, the event is `end`, with no choices. After
    `limit` steps the search pauses, and a further call goes on from there. Return
    whether the search is over.
    """
    pattern, conditions = criteria.pattern, criteria.conditions
    jumps, dead_ends = shortcuts
    until = _search_end(end, strategy, path)
    available = list_available(pattern, path)
    position = path.choice_event[depth]
    nearest = position
    left = 0
    passed = 0
    viable = available > 0
    path.state[PathState.SEARCHES] += 1
    if viable and strategy in (Strategy.ANY, Strategy.ROBUST) and not is_complete(path):
        viable = can_complete(position, until, events, pattern, path)
    if viable and looks_ahead(path) and not is_complete(path):
        viable = can_complete_within_bounds(position, until, events, pattern, conditions, jumps, path)
        set_next_look(viable, path)
    while viable and left == 0 and path.state[PathState.STEPS] <= limit:
        path.state[PathState.STEPS] += 1
        if strategy == Strategy.CONTIGUOUS:
            nearest = _successor(available, position, until, events, pattern, path)
        elif passed < jumps.patience:
            nearest = _nearest(available, position, until, events, pattern, dead_ends, path)
        else:
            nearest = _nearest_within_bounds(available, position, until, passed == jumps.patience, events, criteria, shortcuts, path)
        viable = nearest < until
        if viable:
            left = _choose(depth, nearest, available, pattern, conditions, path)
            position = nearest
            passed += left == 0
        viable = viable and strategy != Strategy.CONTIGUOUS
    over = left > 0 or not viable
    path.state[PathState.REJECTED] += passed
    path.left[depth] = left
    path.choice_event[depth] = end if over and left == 0 else nearest
    return over


@rule
def phase_after_binding(strategy: int, path: SearchingPath) -> int:
    """Return the phase that follows the binding of an event."""
    return REPORT if strategy == Strategy.ANY and is_complete(path) else SEARCH


@rule
def phase_after_choices(depth: int, end: int, strategy: int, path: SearchingPath) -> int:
    """Return the phase that follows once no choice is left at a place.

    It is SEARCH for a later event, TAKE to step back, or DONE at the start.
    """
    passes_over = strategy == Strategy.ANY or (strategy == Strategy.ROBUST and not path.led[depth])
    if depth == 0:
        phase = DONE
    elif passes_over and path.choice_event[depth] < end:
        phase = SEARCH
    else:
        phase = TAKE
    return phase


@rule
def phase_after_search(depth: int, strategy: int, path: SearchingPath) -> int:
    """Return the phase that follows a search: REPORT a match, or TAKE a choice or a step back."""
    return REPORT if path.left[depth] == 0 and strategy != Strategy.ANY and is_complete(path) else TAKE


@rule
def _search_end(end: int, strategy: int, path: EventPath) -> int:
    """Return the event before which a search ends.

    It is the window's end if only a full search tells whether the path is a match; otherwise a cut may end it earlier.
    """
    decides = strategy == Strategy.ROBUST or (strategy != Strategy.ANY and is_complete(path))
    return end if decides else search_end(end, path)


@rule
def step_back(depth: int, pattern: PatternTable, path: SearchingPath) -> None:
    """Unbind the event at place `depth`, and keep there whether some choice behind it led to a match."""
    unbind(depth, pattern, path)
    path.led[depth] |= path.led[depth + 1]


@sequential(writes=("shortcuts.jumps.bounds", "shortcuts.dead_ends", "path", "matches"))
def enumerate_matches(
    windows: CandidateWindows,
    events: EventTable,
    criteria: Criteria,
    shortcuts: Shortcuts,
    mode: Mode,
    path: EventPath,
    matches: MatchTable,
) -> Status:
    """Enumerate the matches of all windows from where ``path.state`` stands; return why it stopped.

    On OUTPUT_FULL, PATH_FULL or STEPS_SPENT the caller makes room and calls
    again.
    """
    candidates, ends = windows
    pattern, conditions = criteria.pattern, criteria.conditions
    jumps, dead_ends = shortcuts
    strategy, counting = mode.strategy, mode.counting
    state = path.state
    limit = state[PathState.STEPS] + mode.step_limit
    status = Status.FINISHED
    depth = state[PathState.DEPTH]
    phase = state[PathState.PHASE]
    w = state[PathState.CANDIDATE]
    while w < candidates.size and status == Status.FINISHED:
        end = ends[w]
        if phase == BEGIN:
            begin_cut(candidates[w], path.cut)
            begin_run(candidates[w], events, pattern, conditions, path)
            begin_searches(jumps.patience, path)
            phase = TAKE
        elif phase == TAKE and path.left[depth] > 0 and strategy != Strategy.ROBUST and is_cut_off(path.choice_event[depth], path):
            path.left[depth] = 0
        elif phase == TAKE and path.left[depth] > 0 and depth >= path.event.size:
            status = Status.PATH_FULL
        elif phase == TAKE and path.left[depth] > 0:
            bind_next(depth, pattern, conditions, path)
            depth += 1
            phase = phase_after_binding(strategy, path)
        elif phase == TAKE:
            phase = phase_after_choices(depth, end, strategy, path)
            if phase == TAKE:
                if strategy == Strategy.ROBUST and not path.led[depth]:
                    keep_dead_end(depth, end, events.after, pattern, path, dead_ends)
                depth -= 1
                step_back(depth, pattern, path)
        elif (
            phase == SEARCH
            and strategy == Strategy.ROBUST
            and is_dead_end(depth, path.choice_event[depth], end, events.after, pattern, path, dead_ends)
        ):
            path.choice_event[depth] = end
            phase = TAKE
        elif phase == SEARCH:
            if search_next(depth, end, strategy, limit, events, criteria, shortcuts, path):
                phase = phase_after_search(depth, strategy, path)
            if state[PathState.STEPS] > limit:
                status = Status.STEPS_SPENT
        elif (
            phase == REPORT
            and not counting
            and (state[PathState.MATCHES] >= matches.starts.size or state[PathState.EVENTS] + depth > matches.events.size)
        ):
            status = Status.OUTPUT_FULL
        elif phase == REPORT:
            if is_match(depth, criteria, path):
                path.led[depth] = True
                begin_searches(jumps.patience, path)
                if counting:
                    count_match(w, matches, path)
                else:
                    write_if_taken(w, depth, matches, path)
            phase = SEARCH if strategy == Strategy.ANY else TAKE
        else:
            end_searches(path)
            w += 1
            phase = BEGIN
        if state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
    state[PathState.CANDIDATE] = w
    state[PathState.DEPTH] = depth
    state[PathState.PHASE] = phase
    return status
