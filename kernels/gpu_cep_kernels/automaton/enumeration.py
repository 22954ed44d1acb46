"""The SES automaton (thesis Alg. 2) as a resumable depth-first enumeration, one run per candidate window.

A state is how often each variable is bound so far, computed and never tabulated.
From each state the run jumps to the next event that some variable can bind,
through the next-occurrence arrays, so irrelevant events cost nothing; where
conditions rule out many in a row, it jumps over these, too
(:mod:`gpu_cep_kernels.automaton.jumps`), and a long run that cannot become a match any
more is given up (:mod:`gpu_cep_kernels.automaton.lookahead`). The instances of Alg. 2
that branch from one event are the choices at one place of the path (erratum:
the branching instance itself does not live on).

The strategies differ in the events that a run passes over (SPEC section 3).
skip_till_next_match binds the first event that can be bound and reports a
match where no further event can, contiguity looks at the very next event
only, skip_till_any_match also passes it over and reports every complete
state, and robust skip_till_next_match passes it over if nothing that it could
be bound to leads to a match (thesis Alg. 4: the choices at one place are
siblings in the execution tree, and backtracking is blocked there as soon as
one of them has led to a match). A state that has led nowhere is not searched
again (:mod:`gpu_cep_kernels.automaton.dead_ends`).

Where ``after_match`` takes only some matches, each that is found cuts runs off
(:mod:`gpu_cep_kernels.rules.cut`): those that would bind an event that no match
to be taken binds. Such a run ends without a match, also if it is complete: the
event extends it all the same. Under the robust strategy no run is cut off,
since it tells whether events lead to a match, taken or not.
"""

from __future__ import annotations

from typing import Any

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
from gpu_cep_kernels.rules.conditions import conditions_hold, conditions_hold_apart
from gpu_cep_kernels.rules.cut import begin_cut, cut_off_by, cuts, is_cut_off, may_be_taken, searched_until
from gpu_cep_kernels.rules.path import bind, is_match, unbind, write_match
from gpu_cep_kernels.rules.scalars import following
from gpu_cep_kernels.rules.tables import (
    ANY,
    CANDIDATE,
    CONTIGUOUS,
    DEPTH,
    ERROR_CONDITION,
    EVENTS,
    FINISHED,
    MATCHES,
    OUTPUT_FULL,
    OVERFLOWED,
    PASSED,
    PATH_FULL,
    PHASE,
    ROBUST,
    SEARCHES,
    STEPS,
    STEPS_SPENT,
    UNSATISFIED,
    Conditions,
    EventTable,
    MatchTable,
    NegationTable,
    PatternTable,
    Run,
)

BEGIN, TAKE, REPORT, SEARCH, DONE = range(5)


@rule
def _begin(start: int, events: Any, pattern: Any, conditions: Any, run: Any) -> None:
    """The choices at the start event: the variables that nothing precedes and whose properties and conditions it satisfies."""
    run.choice_event[0] = start
    left = 0
    for k in range(_available(pattern, run)):
        v = run.available[k]
        fits = events.occurrence[v, start] == start
        if fits and conditions.table.alone[v]:
            fits = conditions_hold_apart(v, start, pattern, conditions, run)
        if fits:
            run.choices[0, left] = v
            left += 1
    run.left[0] = left


@rule
def _bind_next(depth: int, pattern: Any, conditions: Any, run: Any) -> None:
    """Bind the event at place `depth` to the last variable chosen for it that is left."""
    left = run.left[depth] - 1
    v = run.choices[depth, left]
    event = run.choice_event[depth]
    run.left[depth] = left
    bind(v, event, depth, pattern, conditions, run)
    run.choice_event[depth + 1] = event
    run.left[depth + 1] = 0
    run.led[depth + 1] = False


@rule
def _is_complete(run: Any) -> bool:
    """Whether every variable binds its minimum."""
    return run.state[UNSATISFIED] == 0


@rule
def _available(pattern: Any, run: Any) -> int:
    """List the variables that may bind a further event; returns how many.

    All before them have their minimum, none behind them is bound, and they are below their maximum.
    """
    count = 0
    for v in range(pattern.order.size):
        if run.blockers[v] == 0 and run.bound[v] < pattern.maximum[v]:
            run.available[count] = v
            count += 1
    return count


@rule
def _earliest_place(v: int, position: int, after: Any, pattern: Any, run: Any) -> int:
    """The first event that may be bound to v: behind `position`, and later than all events of the variables before v.

    Of these only the last ones count, which precede v immediately.
    """
    begin = position + 1
    if after.size > 0:
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            begin = max(begin, following(after, run.event[run.last[pattern.direct[k]]]))
    return begin


@rule
def _nearest(available: int, position: int, end: int, events: Any, pattern: Any, dead_ends: Any, run: Any) -> int:
    """The first event behind `position` that the label of one of the `available` variables allows, or `end`; none that is a dead end."""
    nearest = end
    for k in range(available):
        v = run.available[k]
        place = int(events.occurrence[v, _earliest_place(v, position, events.after, pattern, run)])
        run.next_place[k] = first_alive(v, place, end, events.occurrence, run, dead_ends)
        nearest = min(nearest, run.next_place[k])
    return nearest


@rule
def _nearest_left(
    available: int, position: int, end: int, fresh: bool, events: Any, pattern: Any, conditions: Any, jumps: Any, dead_ends: Any, run: Any
) -> int:  # fmt: skip
    """As :func:`_nearest`, without events that the bounds of jumps rule out; `fresh` where these are not known yet."""
    nearest = end
    for k in range(available):
        v = run.available[k]
        if fresh:
            set_bounds(v, position, False, pattern, conditions, jumps, run)
        if fresh or run.next_place[k] <= position:
            place, alive = -1, _earliest_place(v, position, events.after, pattern, run)
            while place < alive < end:
                place = jump(v, alive, end, events, conditions, jumps)
                alive = first_alive(v, place, end, events.occurrence, run, dead_ends)
            run.next_place[k] = alive
        nearest = min(nearest, run.next_place[k])
    return nearest


@rule
def _successor(available: int, position: int, end: int, events: Any, pattern: Any, run: Any) -> int:
    """The event that follows in the partition, or `end`; the labels tell which of the `available` variables allow it."""
    nearest = min(int(events.successor[position]) if events.successor.size else position + 1, end)
    for k in range(available):
        v = run.available[k]
        run.next_place[k] = events.occurrence[v, max(nearest, _earliest_place(v, position, events.after, pattern, run))]
    return nearest


@rule
def _choose(depth: int, nearest: int, available: int, pattern: Any, conditions: Any, run: Any) -> int:
    """ext(g, e): the choices at `depth` are the available variables that the nearest event behind `position` may be bound to."""
    left = 0
    for k in range(available):
        v = run.available[k]
        if run.next_place[k] == nearest and conditions_hold(v, nearest, pattern, conditions, run):
            run.choices[depth, left] = v
            left += 1
    return left


@rule
def _search(
    depth: int, end: int, until: int, strategy: int, limit: int, events: Any, pattern: Any, conditions: Any, jumps: Any, dead_ends: Any,
    run: Any,
) -> bool:  # fmt: skip
    """Choose the next event of the path, behind ``choice_event[depth]``, and the variables it may be bound to.

    Where there is none before `until` that is `end`, without choices. A search
    that has made more than `limit` steps is left where it stands; returns
    whether it was not.
    """
    available = _available(pattern, run)
    position = run.choice_event[depth]
    nearest = position
    left = 0
    passed = 0
    viable = available > 0
    run.state[SEARCHES] += 1
    if viable and strategy in (ANY, ROBUST) and not _is_complete(run):
        viable = can_complete(position, until, events, pattern, run)
    if viable and looks_ahead(run) and not _is_complete(run):
        viable = can_complete_within_bounds(position, until, events, pattern, conditions, jumps, run)
        set_next_look(viable, run)
    while viable and left == 0 and run.state[STEPS] <= limit:
        run.state[STEPS] += 1
        if strategy == CONTIGUOUS:
            nearest = _successor(available, position, until, events, pattern, run)
        elif passed < jumps.patience:
            nearest = _nearest(available, position, until, events, pattern, dead_ends, run)
        else:
            nearest = _nearest_left(
                available, position, until, passed == jumps.patience, events, pattern, conditions, jumps, dead_ends, run
            )
        viable = nearest < until
        if viable:
            left = _choose(depth, nearest, available, pattern, conditions, run)
            position = nearest
            passed += left == 0
        viable = viable and strategy != CONTIGUOUS
    over = left > 0 or not viable
    run.state[PASSED] += passed
    run.left[depth] = left
    run.choice_event[depth] = end if over and left == 0 else nearest
    return over


@rule
def _phase_after_binding(strategy: int, run: Any) -> int:
    """What comes once an event is bound."""
    return REPORT if strategy == ANY and _is_complete(run) else SEARCH


@rule
def _phase_after_choices(depth: int, end: int, strategy: int, run: Any) -> int:
    """What comes once no choice is left at a place: the search for a later event there, or a step back."""
    passes_over = strategy == ANY or (strategy == ROBUST and not run.led[depth])
    if depth == 0:
        phase = DONE
    elif passes_over and run.choice_event[depth] < end:
        phase = SEARCH
    else:
        phase = TAKE
    return phase


@rule
def _phase_after_search(depth: int, strategy: int, run: Any) -> int:
    """What comes once the next event is known, or that there is none."""
    return REPORT if run.left[depth] == 0 and strategy != ANY and _is_complete(run) else TAKE


@rule
def _searched_until(end: int, strategy: int, run: Any) -> int:
    """Where the search for a further event may stop: not before the window does if that decides whether the path is a match."""
    decides = strategy == ROBUST or (strategy != ANY and _is_complete(run))
    return end if decides else searched_until(end, run)


@rule
def _step_back(depth: int, pattern: Any, run: Any) -> None:
    """Take back the event at place `depth`; what led to a match behind it makes its own place lead to one."""
    unbind(depth, pattern, run)
    run.led[depth] |= run.led[depth + 1]


@rule
def _write(w: int, depth: int, matches: Any, run: Any) -> None:
    """Write the path as a match of candidate w if it may be taken; the search is cut off by it."""
    last, begin = run.event[depth - 1], run.state[EVENTS]
    if may_be_taken(last, run):
        write_match(w, matches, run)
        if cuts(run):
            cut_off_by(begin, last, matches.events, run)


@sequential
def enumerate_matches(
    candidates: Any,
    ends: Any,
    events: EventTable,
    pattern: PatternTable,
    conditions: Conditions,
    negations: NegationTable,
    jumps: Jumps,
    dead_ends: DeadEnds,
    strategy: int,
    counting: bool,
    step_limit: int,
    run: Run,
    matches: MatchTable,
) -> int:
    """Enumerate the matches of all `candidates` from where ``run.state`` stands; returns why it stopped.

    Candidate w starts at event ``candidates[w]`` and its window is
    ``[candidates[w], ends[w])``; with `counting` its matches are only counted.
    On OUTPUT_FULL, PATH_FULL or STEPS_SPENT the caller makes room and calls
    again.
    """
    state = run.state
    limit = state[STEPS] + step_limit
    status = FINISHED
    depth = state[DEPTH]
    phase = state[PHASE]
    w = state[CANDIDATE]
    while w < candidates.size and status == FINISHED:
        end = ends[w]
        if phase == BEGIN:
            begin_cut(candidates[w], run.cut)
            _begin(candidates[w], events, pattern, conditions, run)
            begin_searches(jumps.patience, run)
            phase = TAKE
        elif phase == TAKE and run.left[depth] > 0 and strategy != ROBUST and is_cut_off(run.choice_event[depth], run):
            run.left[depth] = 0
        elif phase == TAKE and run.left[depth] > 0 and depth >= run.event.size:
            status = PATH_FULL
        elif phase == TAKE and run.left[depth] > 0:
            _bind_next(depth, pattern, conditions, run)
            depth += 1
            phase = _phase_after_binding(strategy, run)
        elif phase == TAKE:
            phase = _phase_after_choices(depth, end, strategy, run)
            if phase == TAKE:
                if strategy == ROBUST and not run.led[depth]:
                    keep_dead_end(depth, end, events.after, pattern, run, dead_ends)
                depth -= 1
                _step_back(depth, pattern, run)
        elif (
            phase == SEARCH
            and strategy == ROBUST
            and is_dead_end(depth, run.choice_event[depth], end, events.after, pattern, run, dead_ends)
        ):
            run.choice_event[depth] = end
            phase = TAKE
        elif phase == SEARCH:
            until = _searched_until(end, strategy, run)
            if _search(depth, end, until, strategy, limit, events, pattern, conditions, jumps, dead_ends, run):
                phase = _phase_after_search(depth, strategy, run)
            if state[STEPS] > limit:
                status = STEPS_SPENT
        elif phase == REPORT and not counting and (state[MATCHES] >= matches.starts.size or state[EVENTS] + depth > matches.events.size):
            status = OUTPUT_FULL
        elif phase == REPORT:
            if is_match(depth, pattern, conditions, negations, run):
                run.led[depth] = True
                begin_searches(jumps.patience, run)
                if counting:
                    matches.totals[w] += 1
                else:
                    _write(w, depth, matches, run)
            phase = SEARCH if strategy == ANY else TAKE
        else:
            end_searches(run)
            w += 1
            phase = BEGIN
        if state[ERROR_CONDITION] != 0:
            status = OVERFLOWED
    state[CANDIDATE] = w
    state[DEPTH] = depth
    state[PHASE] = phase
    return status
