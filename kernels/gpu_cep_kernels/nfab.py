"""NFA^b (SASE+ paper, sections 4 and 5): one pass over the events with all runs at once.

A *run* is what the paper calls a computation state: which variables are bound,
and the events that decide how it goes on. Partial matches that agree in that
are one run, whatever else they bind, and their conditions are judged once.
What they bind is kept in the shared buffer; runs all of whose matches have
left the window are given up. Matches are read off the buffer in
:mod:`gpu_cep_kernels.buffer_paths`.

Where matches must not overlap, runs are given up, too, once another one has
completed that began with their latest start or later (section 4.2;
:mod:`gpu_cep_kernels.overlap`). A complete run that may still be extended goes
on, since it is a match only if it is not; what extends it is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.conditions import conditions_hold, conditions_hold_apart
from gpu_cep_kernels.jit import rule, sequential
from gpu_cep_kernels.match_buffer import MatchBuffer, MatchEnds, add_node, add_sibling, begin_path, follow, share_node
from gpu_cep_kernels.merged_runs import MergedRuns, ReadTable, enter, found, leave, write_signature
from gpu_cep_kernels.overlap import is_ruled_out_by
from gpu_cep_kernels.rules import UNBOUNDED, following
from gpu_cep_kernels.running import accumulate
from gpu_cep_kernels.tables import (
    ANY,
    CONTIGUOUS,
    ERROR_CONDITION,
    FINISHED,
    OVERFLOWED,
    STEPS_SPENT,
    Conditions,
    EventTable,
    Ints,
    PatternTable,
    Run,
)

# Why the pass stopped, beside what all enumerations stop for.
NO_ROOM = 100


# Places in the state of a pass: the event that is next, where its stream ends; how many nodes, links, ends, active, free and added runs
# there are; how often an event was offered to a run; a start of the run in which a condition overflowed; and whether completed runs rule
# others out, with the first and the last event of the one that began last.
EVENT, STREAM_END, NODES, LINKS, ENDS, ACTIVE, FREE, ADDED, OFFERED, FAULT, CUTS, FIRST, LAST = range(13)
PASS_STATE = 13


class Pass(NamedTuple):
    """What a pass writes; `run` is a run as conditions read it, with the buffer's nodes in the place of a path's."""

    run: Run
    buffer: MatchBuffer
    runs: MergedRuns
    ends: MatchEnds
    state: Ints


@rule
def _end_matches(node: int, whole: bool, last_start: int, work: Any) -> None:
    """Report the paths to a node, and to its siblings if `whole`, that begin at `last_start` or earlier."""
    ends, state = work.ends, work.state
    k = state[ENDS]
    ends.node[k] = node
    ends.whole[k] = whole
    ends.last_start[k] = last_start
    state[ENDS] = k + 1


@rule
def _complete(first: int, last: int, state: Any) -> None:
    """Let what a match from event `first` to event `last` rules out be ruled out."""
    if state[CUTS] != 0 and first > state[FIRST]:
        state[FIRST], state[LAST] = first, last


@rule
def _is_ruled_out(start: int, event: int, state: Any) -> bool:
    """Whether no match is taken that begins at `start` or before and binds `event`."""
    return state[CUTS] != 0 and is_ruled_out_by(start, event, state[FIRST], state[LAST])


@rule
def _load(r: int, work: Any) -> None:
    """Let ``work.run`` be run r."""
    runs, run = work.runs, work.run
    for v in range(run.bound.size):
        run.bound[v] = runs.bound[r, v]
        run.first[v] = runs.first[r, v]
        run.last[v] = runs.last[r, v]


@rule
def _clear(run: Any) -> None:
    """Let `run` have nothing bound."""
    for v in range(run.bound.size):
        run.bound[v] = 0
        run.first[v] = run.last[v] = -1


@rule
def _bind(r: int, v: int, event: int, pattern: Any, conditions: Any, work: Any) -> int:
    """Add a node that binds `event` to v in run r; returns it."""
    runs, n = work.runs, work.state[NODES]
    work.state[NODES] = n + 1
    before = runs.last[r, v]
    add_node(n, event, v, before, work.buffer)
    accumulate(v, before, n, conditions.base + event, conditions.aggregates, conditions.bank, work.run.aggregates)
    bound = runs.bound[r, v] + 1
    runs.bound[r, v] = bound
    runs.last[r, v] = n
    if bound == 1:
        runs.first[r, v] = n
    for u in range(pattern.order.size):
        if bound == 1 and pattern.precedes[u, v]:
            runs.blockers[r, u] += 1
        if bound == pattern.minimum[v] and pattern.precedes[v, u]:
            runs.blockers[r, u] -= 1
    runs.unsatisfied[r] -= 1 if bound == pattern.minimum[v] else 0
    runs.head[r] = n
    return int(n)


@rule
def _new_run(source: int, pattern: Any, work: Any) -> int:
    """A run of its own that binds what run `source` does (−1: nothing)."""
    runs, state = work.runs, work.state
    state[FREE] -= 1
    r = runs.free[state[FREE]]
    for v in range(pattern.order.size):
        runs.bound[r, v] = runs.bound[source, v] if source >= 0 else 0
        runs.first[r, v] = runs.first[source, v] if source >= 0 else -1
        runs.last[r, v] = runs.last[source, v] if source >= 0 else -1
        runs.blockers[r, v] = runs.blockers[source, v] if source >= 0 else 0
    if source < 0:
        for u in range(pattern.order.size):
            for v in range(pattern.order.size):
                runs.blockers[r, v] += pattern.precedes[u, v]
    runs.unsatisfied[r] = runs.unsatisfied[source] if source >= 0 else pattern.order.size
    # runs that the current event adds stand behind the active ones
    runs.active[state[ACTIVE] + state[ADDED]] = r
    state[ADDED] += 1
    return int(r)


@rule
def _release(r: int, work: Any) -> None:
    """Let r be the number of no run."""
    work.runs.free[work.state[FREE]] = r
    work.state[FREE] += 1


@rule
def _extend(source: int, v: int, event: int, pattern: Any, conditions: Any, work: Any) -> None:
    """Add the run that run `source` becomes by binding `event` to v; −1: the match begins."""
    r = _new_run(source, pattern, work)
    n = _bind(r, v, event, pattern, conditions, work)
    if source < 0:
        begin_path(n, work.buffer)
    else:
        follow(n, work.runs.head[source], work.state[LINKS], work.buffer)
        work.state[LINKS] += 1


@rule
def _in_order(r: int, v: int, event: int, after: Any, pattern: Any, work: Any) -> bool:
    """Whether `event` is later than all events of the variables that precede v."""
    run, runs = work.run, work.runs
    true = True
    if after.size > 0:
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            true = true and event >= following(after, run.event[runs.last[r, pattern.direct[k]]])
    return true


@rule
def _extend_run(r: int, event: int, events: Any, pattern: Any, conditions: Any, work: Any) -> int:
    """ext(g, e): add the runs that run r becomes by binding `event`; returns how many."""
    run, runs = work.run, work.runs
    found = 0
    loaded = False
    for v in range(pattern.order.size):
        fits = runs.blockers[r, v] == 0 and runs.bound[r, v] < pattern.maximum[v] and events.occurrence[v, event] == event
        if fits and _in_order(r, v, event, events.after, pattern, work):
            if not loaded:
                _load(r, work)
                loaded = True
            if conditions_hold(v, event, pattern, conditions, run):
                _extend(r, v, event, pattern, conditions, work)
                found += 1
    return found


@rule
def _begin(event: int, events: Any, pattern: Any, conditions: Any, work: Any) -> None:
    """Add the runs that begin with `event`."""
    run = work.run
    cleared = False
    for v in range(pattern.order.size):
        fits = events.occurrence[v, event] == event
        for u in range(pattern.order.size):
            fits = fits and not pattern.precedes[u, v]
        if fits and conditions.table.alone[v]:
            if not cleared:
                _clear(run)
                cleared = True
            fits = conditions_hold_apart(v, event, pattern, conditions, run)
        if fits:
            _extend(-1, v, event, pattern, conditions, work)


@rule
def _is_final(r: int, strategy: int, pattern: Any, runs: Any) -> bool:
    """Whether run r is complete, and its paths matches whatever follows."""
    final = runs.unsatisfied[r] == 0
    for v in range(pattern.order.size):
        final = final and (strategy == ANY or runs.blockers[r, v] > 0 or runs.bound[r, v] >= pattern.maximum[v])
    return bool(final)


@rule
def _merge_added(event: int, strategy: int, after: Any, pattern: Any, conditions: Any, reads: Any, work: Any) -> None:
    """Make the runs that the current event has added active, or merge them with those that they are like; but not those ruled out."""
    runs, state = work.runs, work.state
    begin, added = state[ACTIVE], state[ADDED]
    state[ADDED] = 0
    for k in range(begin, begin + added):
        r = runs.active[k]
        if _is_ruled_out(work.buffer.latest[runs.head[r]], event, state):
            _release(r, work)
        else:
            _merge(r, event, strategy, after, pattern, conditions, reads, work)


@rule
def _merge(r: int, event: int, strategy: int, after: Any, pattern: Any, conditions: Any, reads: Any, work: Any) -> None:
    """Make an added run active, or merge it with the one that it is like."""
    run, runs, state = work.run, work.runs, work.state
    n = runs.head[r]
    write_signature(r, event, after, pattern, conditions, reads, run, runs)
    q = found(r, runs)
    shared = q >= 0 and share_node(n, runs.head[q], work.buffer)
    if q < 0:
        enter(r, runs)
        runs.active[state[ACTIVE]] = r
        state[ACTIVE] += 1
    elif not shared:
        add_sibling(n, runs.head[q], work.buffer)
        runs.head[q] = n
    if strategy == ANY and not shared and runs.unsatisfied[r] == 0:
        _end_matches(n, False, UNBOUNDED, work)
    if _is_final(r, strategy, pattern, runs):
        _complete(work.buffer.latest[n], event, state)
    if q >= 0:
        _release(r, work)


@rule
def _end_run(k: int, strategy: int, work: Any) -> None:
    """End the active run at place k: nothing extends its paths, which are matches if it is complete."""
    runs = work.runs
    r = runs.active[k]
    if strategy != ANY and runs.unsatisfied[r] == 0:
        head = runs.head[r]
        _end_matches(head, True, UNBOUNDED, work)
        _complete(work.buffer.reach[head], work.buffer.event[head], work.state)
    _remove(k, work)


@rule
def _replace_run(k: int, floor: int, window: int, work: Any) -> None:
    """End the active run at place k, whose paths begin at `floor` or later, because an event in the windows from `window` on extends it."""
    runs = work.runs
    r = runs.active[k]
    if floor < window and runs.unsatisfied[r] == 0:
        _end_matches(runs.head[r], True, window - 1, work)
    _remove(k, work)


@rule
def _remove(k: int, work: Any) -> None:
    """Give up the active run at place k."""
    runs = work.runs
    r = runs.active[k]
    leave(r, runs)
    _release(r, work)
    runs.active[k] = -1


@rule
def _end_all(strategy: int, work: Any) -> None:
    """The stream has ended."""
    state = work.state
    for k in range(state[ACTIVE]):
        _end_run(k, strategy, work)
    state[ACTIVE] = 0


@rule
def _close_gaps(begin: int, work: Any) -> None:
    """Remove the active runs that have ended from the list, of which `begin` were there before the current event."""
    runs, state = work.runs, work.state
    kept = 0
    for k in range(begin + state[ADDED]):
        r = runs.active[k]
        runs.active[kept] = r
        kept += 1 if r >= 0 else 0
    state[ACTIVE] = kept - state[ADDED]


@rule
def _next_of(r: int, events: Any, work: Any) -> int:
    """The event that follows a run's last one in its partition."""
    buffer, runs = work.buffer, work.runs
    last = buffer.event[runs.head[r]]
    return int(events.successor[last]) if events.successor.size > 0 else last + 1


@rule
def _note_fault(start: int, work: Any) -> None:
    """Keep the start of the run in which a condition overflowed first."""
    run, state = work.run, work.state
    if run.state[ERROR_CONDITION] != 0 and state[FAULT] < 0:
        state[FAULT] = start


@rule
def _advance_runs(event: int, window: int, strategy: int, events: Any, pattern: Any, conditions: Any, work: Any) -> None:
    """Offer `event` to all active runs; `window` is the first event whose window holds it."""
    buffer, runs, state = work.buffer, work.runs, work.state
    begin = state[ACTIVE]
    for k in range(begin):
        r = runs.active[k]
        head = runs.head[r]
        awaited = event if strategy != CONTIGUOUS else _next_of(r, events, work)
        if buffer.reach[head] < window or awaited < event:
            _end_run(k, strategy, work)
        elif _is_ruled_out(buffer.reach[head], event, state) and (strategy == ANY or runs.unsatisfied[r] > 0):
            _remove(k, work)
        elif awaited == event:
            state[OFFERED] += 1
            extended = _extend_run(r, event, events, pattern, conditions, work) > 0
            _note_fault(buffer.reach[head], work)
            if strategy == CONTIGUOUS and not extended:
                _end_run(k, strategy, work)
            elif strategy != ANY and extended:
                _replace_run(k, buffer.floor[head], window, work)
    _close_gaps(begin, work)


@rule
def _next_event(event: int, end: int, occurrence: Any) -> int:
    """The first event from `event` on that some variable may bind, or `end`."""
    nearest = end
    for v in range(occurrence.shape[0]):
        nearest = min(nearest, occurrence[v, event])
    return nearest


@rule
def _has_room(variables: int, work: Any) -> bool:
    """Whether one more event can be taken, whatever it adds."""
    buffer, runs, ends, state = work.buffer, work.runs, work.ends, work.state
    most = (state[ACTIVE] + 1) * variables
    return bool(
        state[NODES] + most <= buffer.event.size
        and state[LINKS] + most <= buffer.node.size
        and state[ENDS] + most + state[ACTIVE] <= ends.node.size
        and most <= state[FREE]
        and state[ACTIVE] + most <= runs.active.size
    )


@sequential
def grow_runs(
    end: int,
    earliest: Any,
    stream_end: Any,
    starting: Any,
    strategy: int,
    step_limit: int,
    events: EventTable,
    pattern: PatternTable,
    conditions: Conditions,
    reads: ReadTable,
    work: Pass,
) -> int:
    """Take the events of a batch, up to `end`, from where ``work.state`` stands; returns why it stopped.

    ``earliest[e]`` is the first event whose window holds e; once e is taken,
    the first one at which a match that ends at e may begin and be taken.
    ``stream_end[e]`` is the end of its stream, and ``starting[e]`` says whether
    a match may begin at it. On NO_ROOM or STEPS_SPENT the caller makes room
    and calls again.
    """
    variables, run, state = pattern.order.size, work.run, work.state
    status = FINISHED
    limit = state[OFFERED] + step_limit
    event = _next_event(state[EVENT], end, events.occurrence)
    while event < end and status == FINISHED:
        if event >= state[STREAM_END]:
            _end_all(strategy, work)
            state[STREAM_END] = stream_end[event]
        if not _has_room(variables, work):
            status = NO_ROOM
        elif state[OFFERED] > limit:
            status = STEPS_SPENT
        else:
            window = earliest[event]
            earliest[event] = max(window, state[FIRST] + 1) if state[CUTS] != 0 else window
            _advance_runs(event, window, strategy, events, pattern, conditions, work)
            if starting[event]:
                _begin(event, events, pattern, conditions, work)
                _note_fault(event, work)
            _merge_added(event, strategy, events.after, pattern, conditions, reads, work)
            event = _next_event(event + 1, end, events.occurrence)
        if run.state[ERROR_CONDITION] != 0:
            status = OVERFLOWED
    state[EVENT] = event
    if event >= end and status == FINISHED:
        _end_all(strategy, work)
    return status
