"""Run NFA^b (SASE+ paper, sections 4 and 5): one pass over the events with all runs at once.

A *run* is what the paper calls a computation state: which variables are bound,
and the events that decide how it goes on. Partial matches that agree in that
are one run, and their conditions are judged once. What they bind is kept in
the shared buffer. A run ends when all its starts have left the window. Matches
are read off the buffer in :mod:`gpu_cep_kernels.nfab.buffer_paths`.

Where matches must not overlap, a completed match rules out runs (section 4.2;
:mod:`gpu_cep_kernels.rules.cut`). These are the runs whose latest start is that
of the match or earlier. A complete run that may still be extended goes on: it
is a match only if nothing extends it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.nfab.match_buffer import add_sibling, share_node
from gpu_cep_kernels.nfab.merged_runs import MergedRuns, enter, find_alike, leave, write_signature
from gpu_cep_kernels.nfab.pass_runs import Pass, PassState, begin_runs, extend_run, release_run
from gpu_cep_kernels.rules.cut import is_ruled_out_by
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Conditions, EventTable, PathState, PatternTable, Status, Strategy


class EventWindows(NamedTuple):
    """Say which windows hold an event e.

    - earliest[e]: the first event whose window holds e. Once e is taken, it is
      the first event at which a match that ends at e may begin and be taken.
    - stream_end[e]: the event before which the stream of e ends.
    - starting[e]: whether a match may begin at e.
    """

    earliest: Any
    stream_end: Any
    starting: Any


@rule
def _end_matches(node: int, whole: bool, last_start: int, work: Pass) -> None:
    """Report the paths to a node, and to its siblings if `whole`, that begin at `last_start` or earlier."""
    ends, state = work.ends, work.state
    k = state[PassState.ENDS]
    ends.node[k] = node
    ends.whole[k] = whole
    ends.last_start[k] = last_start
    state[PassState.ENDS] = k + 1


@rule
def _complete(first: int, last: int, state: Any) -> None:
    """Keep in `state` the first and last event of a completed match if it begins later than the one kept.

    The match that begins last rules out most.
    """
    if state[PassState.CUTS] != 0 and first > state[PassState.FIRST]:
        state[PassState.FIRST], state[PassState.LAST] = first, last


@rule
def _is_ruled_out(start: int, event: int, state: Any) -> bool:
    """Return whether no match is taken that begins at `start` or before and binds `event`."""
    return state[PassState.CUTS] != 0 and is_ruled_out_by(start, event, state[PassState.FIRST], state[PassState.LAST])


@rule
def _is_final(r: int, strategy: int, pattern: PatternTable, runs: MergedRuns) -> bool:
    """Return whether run r is complete and stays a match, whatever follows."""
    final = runs.unsatisfied[r] == 0
    for v in range(pattern.order.size):
        final = final and (strategy == Strategy.ANY or runs.blockers[r, v] > 0 or runs.bound[r, v] >= pattern.maximum[v])
    return bool(final)


@rule
def _merge_added(event: int, strategy: int, after: Any, pattern: PatternTable, conditions: Conditions, work: Pass) -> None:
    """Merge each run that the current event has added with an equivalent one, or make it active; free those ruled out."""
    runs, state = work.runs, work.state
    begin, added = state[PassState.ACTIVE], state[PassState.ADDED]
    state[PassState.ADDED] = 0
    for k in range(begin, begin + added):
        r = runs.active[k]
        if _is_ruled_out(work.buffer.latest[runs.head[r]], event, state):
            release_run(r, work)
        else:
            _merge(r, event, strategy, after, pattern, conditions, work)


@rule
def _merge(r: int, event: int, strategy: int, after: Any, pattern: PatternTable, conditions: Conditions, work: Pass) -> None:
    """Merge an added run with the active one of its signature, or make it active if there is none."""
    runs, state = work.runs, work.state
    n = runs.head[r]
    write_signature(r, event, after, pattern, conditions, work)
    q = find_alike(r, runs)
    shared = q >= 0 and share_node(n, runs.head[q], work.buffer)
    if q < 0:
        enter(r, runs)
        runs.active[state[PassState.ACTIVE]] = r
        state[PassState.ACTIVE] += 1
    elif not shared:
        add_sibling(n, runs.head[q], work.buffer)
        runs.head[q] = n
    if strategy == Strategy.ANY and not shared and runs.unsatisfied[r] == 0:
        _end_matches(n, False, UNBOUNDED, work)
    if _is_final(r, strategy, pattern, runs):
        _complete(work.buffer.latest[n], event, state)
    if q >= 0:
        release_run(r, work)


@rule
def _end_run(k: int, strategy: int, work: Pass) -> None:
    """End the active run at place k, which nothing extends; report its paths as matches if it is complete."""
    runs = work.runs
    r = runs.active[k]
    if strategy != Strategy.ANY and runs.unsatisfied[r] == 0:
        head = runs.head[r]
        _end_matches(head, True, UNBOUNDED, work)
        _complete(work.buffer.latest_of_run[head], work.buffer.event[head], work.state)
    _remove(k, work)


@rule
def _replace_run(k: int, earliest: int, window: int, work: Pass) -> None:
    """End the active run at place k, which the current event extends.

    Paths that begin before event `window` have left the window of that event.
    Nothing extends them, and they are matches if the run is complete. The earliest
    path begins at `earliest`.
    """
    runs = work.runs
    r = runs.active[k]
    if earliest < window and runs.unsatisfied[r] == 0:
        _end_matches(runs.head[r], True, window - 1, work)
    _remove(k, work)


@rule
def _remove(k: int, work: Pass) -> None:
    """Remove the active run at place k, and free its number."""
    runs = work.runs
    r = runs.active[k]
    leave(r, runs)
    release_run(r, work)
    runs.active[k] = -1


@rule
def _end_all(strategy: int, work: Pass) -> None:
    """End all active runs, since the stream has ended."""
    state = work.state
    for k in range(state[PassState.ACTIVE]):
        _end_run(k, strategy, work)
    state[PassState.ACTIVE] = 0


@rule
def _close_gaps(begin: int, work: Pass) -> None:
    """Close the gaps that ended runs have left in the list of active runs.

    The first `begin` entries were active before the current event; the runs that it added follow.
    """
    runs, state = work.runs, work.state
    kept = 0
    for k in range(begin + state[PassState.ADDED]):
        r = runs.active[k]
        runs.active[kept] = r
        kept += 1 if r >= 0 else 0
    state[PassState.ACTIVE] = kept - state[PassState.ADDED]


@rule
def _next_of(r: int, events: EventTable, work: Pass) -> int:
    """Return the event that follows a run's last one in its partition."""
    buffer, runs = work.buffer, work.runs
    last = buffer.event[runs.head[r]]
    return int(events.successor[last]) if events.successor.size > 0 else last + 1


@rule
def _note_fault(start: int, work: Pass) -> None:
    """Keep `start` as that of the run in which a condition overflowed first, if one has."""
    path, state = work.path, work.state
    if path.state[PathState.ERROR_CONDITION] != 0 and state[PassState.FAULT] < 0:
        state[PassState.FAULT] = start


@rule
def _advance_runs(
    event: int, window: int, strategy: int, events: EventTable, pattern: PatternTable, conditions: Conditions, work: Pass
) -> None:
    """Offer `event` to all active runs, and end those that cannot go on.

    `window` is the first event whose window holds `event`.
    """
    buffer, runs, state = work.buffer, work.runs, work.state
    begin = state[PassState.ACTIVE]
    for k in range(begin):
        r = runs.active[k]
        head = runs.head[r]
        awaited = event if strategy != Strategy.CONTIGUOUS else _next_of(r, events, work)
        if buffer.latest_of_run[head] < window or awaited < event:
            _end_run(k, strategy, work)
        elif _is_ruled_out(buffer.latest_of_run[head], event, state) and (strategy == Strategy.ANY or runs.unsatisfied[r] > 0):
            _remove(k, work)
        elif awaited == event:
            state[PassState.OFFERED] += 1
            extended = extend_run(r, event, events, pattern, conditions, work) > 0
            _note_fault(buffer.latest_of_run[head], work)
            if strategy == Strategy.CONTIGUOUS and not extended:
                _end_run(k, strategy, work)
            elif strategy != Strategy.ANY and extended:
                _replace_run(k, buffer.earliest_of_run[head], window, work)
    _close_gaps(begin, work)


@rule
def _next_event(event: int, end: int, occurrence: Any) -> int:
    """Return the first event from `event` on that some variable may bind, or `end`."""
    nearest = end
    for v in range(occurrence.shape[0]):
        nearest = min(nearest, occurrence[v, event])
    return nearest


@rule
def _has_room(variables: int, work: Pass) -> bool:
    """Return whether one more event can be taken, whatever it adds."""
    buffer, runs, ends, state = work.buffer, work.runs, work.ends, work.state
    most = (state[PassState.ACTIVE] + 1) * variables
    return bool(
        state[PassState.NODES] + most <= buffer.event.size
        and state[PassState.LINKS] + most <= buffer.node.size
        and state[PassState.ENDS] + most + state[PassState.ACTIVE] <= ends.node.size
        and most <= state[PassState.FREE]
        and state[PassState.ACTIVE] + most <= runs.active.size
    )


@sequential(writes=("windows.earliest", "work"))
def grow_runs(
    end: int,
    windows: EventWindows,
    strategy: int,
    step_limit: int,
    events: EventTable,
    pattern: PatternTable,
    conditions: Conditions,
    work: Pass,
) -> Status:
    """Offer the events of a batch, up to `end`, to all runs from where ``work.state`` stands; return why it stopped.

    On NO_ROOM or STEPS_SPENT the caller makes room and calls again.
    """
    earliest, stream_end, starting = windows
    variables, path, state = pattern.order.size, work.path, work.state
    status = Status.FINISHED
    limit = state[PassState.OFFERED] + step_limit
    event = _next_event(state[PassState.EVENT], end, events.occurrence)
    while event < end and status == Status.FINISHED:
        if event >= state[PassState.STREAM_END]:
            _end_all(strategy, work)
            state[PassState.STREAM_END] = stream_end[event]
        if not _has_room(variables, work):
            status = Status.NO_ROOM
        elif state[PassState.OFFERED] > limit:
            status = Status.STEPS_SPENT
        else:
            window = earliest[event]
            earliest[event] = max(window, state[PassState.FIRST] + 1) if state[PassState.CUTS] != 0 else window
            _advance_runs(event, window, strategy, events, pattern, conditions, work)
            if starting[event]:
                begin_runs(event, events, pattern, conditions, work)
                _note_fault(event, work)
            _merge_added(event, strategy, events.after, pattern, conditions, work)
            event = _next_event(event + 1, end, events.occurrence)
        if path.state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
    state[PassState.EVENT] = event
    if event >= end and status == Status.FINISHED:
        _end_all(strategy, work)
    return status
