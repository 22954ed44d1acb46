"""Bind quantified variables to partial matches, depth first: iteration in the lazy automata (lazy automata paper, section 4.5).

A *row* is a partial match that binds all single variables. Quantified
variables are bound last, each in a *stage* of its own. A stage lists events of
its variable's input buffer. The ordering filters and the window must allow
them, and all conditions on a single event must hold. Sub-sequences of this list
are the bindings.

Some conditions between the events of a binding are decided by one event for
all later ones. Such are equality with another event of the binding, and a value
that never falls. They filter the list once for each event bound. So
sub-sequences are made within groups (section 4.5.3) and not of all events.

A call can stop at any place and resume.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.lazy.filters import select_holding, select_unbound
from gpu_cep_kernels.lazy.iteration_tables import (
    ALONE,
    CLOSING,
    FILTERING,
    FIRST,
    FOLLOWING,
    GROUPING,
    Iterations,
    IterationTable,
    LazyMode,
    Scope,
)
from gpu_cep_kernels.phase_one.input_buffers import Buffered, Streams, between, is_early, is_late, stream_of
from gpu_cep_kernels.rules.conditions import condition_holds, is_decided
from gpu_cep_kernels.rules.negation import is_ruled_out
from gpu_cep_kernels.rules.path import bind, unbind, write_match
from gpu_cep_kernels.rules.tables import (
    NO_EVENT,
    NO_VARIABLE,
    Conditions,
    Criteria,
    EventPath,
    Ints,
    MatchTable,
    PathState,
    PatternTable,
    Status,
)

# Phases: bind a row, list what a stage may bind, bind an event of a list, end a stage, unbind an event, unbind a row.
LOAD, OPEN, TAKE, CLOSE, BACK, DONE = range(6)


@rule
def _range(v: int, place: int, buffered: Buffered, pattern: PatternTable, stack: Iterations, path: EventPath) -> tuple[int, int]:
    """Return the range of v's buffer that order and window allow after what is bound before `place`."""
    buffers, streams = buffered
    begin, end = stack.scope[Scope.BEGIN], stack.scope[Scope.END]
    earliest, latest = stack.earliest[place], stack.latest[place]
    prec, succ = -1, streams.times.size
    for u in range(pattern.order.size):
        if path.last[u] >= 0 and pattern.precedes[u, v]:
            prec = max(prec, path.event[path.last[u]])
        if path.last[u] >= 0 and pattern.precedes[v, u]:
            succ = min(succ, path.event[path.first[u]])
    if path.last[v] >= 0:
        begin = max(begin, path.event[path.last[v]] + 1)
    begin, end = between(prec, succ, begin, end, streams)
    low, high = buffers.first[v], buffers.first[v + 1]
    while low < high:
        middle = (low + high) // 2
        if is_early(buffers.events[middle], begin, latest, streams):
            low = middle + 1
        else:
            high = middle
    first = low
    high = buffers.first[v + 1]
    while low < high:
        middle = (low + high) // 2
        if is_late(buffers.events[middle], end, earliest, streams):
            high = middle
        else:
            low = middle + 1
    return first, low


@rule
def _load(
    row: int, rows: Any, starting: bool, streams: Streams, pattern: PatternTable, conditions: Conditions, stack: Iterations, path: EventPath
) -> None:
    """Bind the events of a row, and set ``stack.scope``."""
    base, depth = conditions.base, stack.fixed.size
    earliest, latest = streams.times.size, -1
    for d in range(depth):
        v = stack.fixed[d]
        event = rows[row, v] - base
        bind(v, event, d, pattern, conditions, path)
        earliest, latest = min(earliest, event), max(latest, event)
    stack.earliest[depth], stack.latest[depth] = earliest, latest
    stack.stage[depth] = stack.free[depth] = 0
    s = stream_of(base + earliest, streams.offsets)
    stack.scope[Scope.BEGIN] = earliest + 1 if starting else max(streams.offsets[s] - base, 0)
    stack.scope[Scope.END] = min(streams.offsets[s + 1] - base, streams.times.size)
    stack.scope[Scope.STREAM] = s - stream_of(base, streams.offsets)


@rule
def _begin_stages(choosing: bool, buffered: Buffered, pattern: PatternTable, stack: Iterations, path: EventPath) -> bool:
    """Prepare the stages of a row; return whether every variable has as many events in range as it needs.

    If `choosing`, order the variables by how many they have.
    """
    depth, enough = stack.fixed.size, True
    for k in range(stack.order.size):
        v = stack.order[k]
        low, high = _range(v, depth, buffered, pattern, stack, path)
        enough = enough and path.bound[v] + high - low >= pattern.minimum[v]
        stack.sizes[k] = high - low
        place = k
        # a variable whose first event the row binds stays in front
        while choosing and place > 0 and stack.sizes[place - 1] > stack.sizes[place] and path.bound[stack.order[place - 1]] == 0:
            stack.order[place - 1], stack.order[place] = stack.order[place], stack.order[place - 1]
            stack.sizes[place - 1], stack.sizes[place] = stack.sizes[place], stack.sizes[place - 1]
            place -= 1
    for n in range(stack.judged.size):
        stack.judged[n] = -1
        for k in range(stack.order.size):
            if stack.needs[n, stack.order[k]]:
                stack.judged[n] = k
    return enough


@rule
def _filter_list(
    v: int, place: int, begin: int, opening: bool, uses: IterationTable, conditions: Conditions, stack: Iterations, path: EventPath
) -> None:
    """Filter the list at `place` by the conditions that can judge each of its events now.

    It is done when a stage begins (`opening`), and after v has bound an event.
    """
    size = stack.stop[place] - begin
    events = stack.events[begin : begin + size]
    if opening:
        size = select_unbound(events, size, place, path)
    for k in range(uses.first[v], uses.first[v + 1]):
        c, when = uses.listed[k], uses.when[k]
        filters = (opening and when == ALONE) or (path.bound[v] == 1 and when == GROUPING) or (path.bound[v] > 0 and when == FILTERING)
        if filters and is_decided(c, v, conditions.table, path):
            size = select_holding(c, v, place, events, size, conditions, path)
    stack.cursor[place] = begin
    stack.stop[place] = begin + size


@rule
def _filters_later(v: int, bound: int, uses: IterationTable) -> bool:
    """Return whether v's event number `bound` lets some condition filter the events that may follow in the binding."""
    found = False
    for k in range(uses.first[v], uses.first[v + 1]):
        found = found or uses.when[k] == FILTERING or (uses.when[k] == GROUPING and bound == 1)
    return found


@rule
def _open(
    place: int, buffered: Buffered, pattern: PatternTable, uses: IterationTable, conditions: Conditions, stack: Iterations, path: EventPath
) -> bool:
    """List the events of the variable whose stage begins at `place`; return whether there was room."""
    v = stack.order[stack.stage[place]]
    low, high = _range(v, place, buffered, pattern, stack, path)
    size, free = high - low, stack.free[place]
    fits = free + size <= stack.events.size
    if fits:
        for k in range(size):
            stack.events[free + k] = buffered.buffers.events[low + k]
        stack.stop[place] = free + size
        _filter_list(v, place, free, True, uses, conditions, stack, path)
        path.state[PathState.STEPS] += size
        if path.bound[v] + stack.stop[place] - free < pattern.minimum[v]:
            stack.cursor[place] = stack.stop[place]
    return fits


@rule
def _fits(v: int, event: int, uses: IterationTable, conditions: Conditions, path: EventPath) -> bool:
    """Return whether `event` satisfies the conditions that it decides with the events that v binds already."""
    true = True
    for k in range(uses.first[v], uses.first[v + 1]):
        c, when = uses.listed[k], uses.when[k]
        asked = (when == FIRST and path.bound[v] == 0) or (when == FOLLOWING and path.bound[v] > 0)
        if true and asked and is_decided(c, v, conditions.table, path):
            true = condition_holds(c, v, event, conditions, path)
    return true


@rule
def _extend(
    v: int, event: int, place: int, pattern: PatternTable, uses: IterationTable, conditions: Conditions, stack: Iterations, path: EventPath
) -> None:
    """Bind `event` to v at `place`; list at the next place the events that v may bind after it."""
    free = max(stack.free[place], stack.stop[place])
    bind(v, event, place, pattern, conditions, path)
    stack.earliest[place + 1] = min(stack.earliest[place], event)
    stack.latest[place + 1] = max(stack.latest[place], event)
    stack.stage[place + 1] = stack.stage[place]
    stack.free[place + 1] = free
    left = stack.stop[place] - stack.cursor[place]
    stack.cursor[place + 1], stack.stop[place + 1] = stack.cursor[place], stack.stop[place]
    if path.bound[v] == pattern.maximum[v]:
        stack.cursor[place + 1] = stack.stop[place + 1]
    elif left > 0 and _filters_later(v, path.bound[v], uses):
        for k in range(left):
            stack.events[free + k] = stack.events[stack.cursor[place] + k]
        stack.stop[place + 1] = free + left
        _filter_list(v, place + 1, free, False, uses, conditions, stack, path)
        path.state[PathState.STEPS] += left
    if path.bound[v] + stack.stop[place + 1] - stack.cursor[place + 1] < pattern.minimum[v]:
        stack.cursor[place + 1] = stack.stop[place + 1]


@rule
def _closes(v: int, place: int, uses: IterationTable, criteria: Criteria, stack: Iterations, path: EventPath) -> bool:
    """Return whether v's binding can end here: it has its minimum, and the conditions and negations judged now allow it."""
    pattern, conditions = criteria.pattern, criteria.conditions
    true = path.bound[v] >= pattern.minimum[v]
    for k in range(uses.first[v], uses.first[v + 1]):
        c = uses.listed[k]
        if true and uses.when[k] == CLOSING and is_decided(c, -1, conditions.table, path):
            true = condition_holds(c, NO_VARIABLE, NO_EVENT, conditions, path)
    for n in range(stack.judged.size):
        if true and stack.judged[n] == stack.stage[place]:
            true = not is_ruled_out(n, stack.earliest[place], stack.latest[place], place, False, criteria, path)
    return true


@rule
def _unload(pattern: PatternTable, stack: Iterations, path: EventPath) -> None:
    """Unbind the events of a row."""
    for d in range(stack.fixed.size):
        unbind(stack.fixed.size - 1 - d, pattern, path)


@rule
def _has_room(place: int, stack: Iterations) -> bool:
    """Return whether a copy of the rest of the list at `place` fits behind it."""
    return bool(max(stack.free[place], stack.stop[place]) + stack.stop[place] - stack.cursor[place] <= stack.events.size)


@rule
def _is_beyond(event: int, place: int, own: int, streams: Streams, stack: Iterations) -> bool:
    """Return whether `event`, and so all later ones, is too late: for the window, or to start the match before event `own`."""
    earliest = stack.earliest[place]
    return is_late(event, streams.times.size, earliest, streams) or (
        stack.stage[place] == stack.order.size - 1 and earliest >= own and event >= own
    )


@rule
def _phase_after_stage(place: int, stack: Iterations) -> int:
    """Return the phase that follows once all has been tried at `place`: BACK, or DONE with the row."""
    return DONE if place == stack.fixed.size else BACK


@rule
def _report(place: int, counting: bool, stack: Iterations, path: EventPath, matches: MatchTable) -> None:
    """Write the path up to `place` as a match, or count it."""
    earliest = stack.earliest[place]
    if counting:
        stream = stack.scope[Scope.STREAM]
        matches.totals[stream] += 1
        matches.starts[stream] = min(matches.starts[stream], earliest)
    else:
        write_match(earliest, matches, path)


@sequential(writes=("stack", "path", "matches"))
def enumerate_iterations(
    rows: Ints,
    buffered: Buffered,
    criteria: Criteria,
    uses: IterationTable,
    mode: LazyMode,
    stack: Iterations,
    path: EventPath,
    matches: MatchTable,
) -> Status:
    """Enumerate the matches that `rows` can be completed to, from where ``path.state`` stands; return why it stopped.

    ``rows[m, v]`` is the event of variable v in row m. If ``mode.starting``, no
    match starts earlier than its row. Each row then has its own order of stages.
    Counted matches are written as by
    :func:`~gpu_cep_kernels.lazy.chain.enumerate_chain`. On OUTPUT_FULL, PATH_FULL
    or STEPS_SPENT the caller makes room and calls again.
    """
    streams, pattern, conditions = buffered.streams, criteria.pattern, criteria.conditions
    own, starting, counting, step_limit = mode
    state = path.state
    limit = state[PathState.STEPS] + step_limit
    depth, last = stack.fixed.size, stack.order.size - 1
    row, place, phase = state[PathState.CANDIDATE], state[PathState.DEPTH], state[PathState.PHASE]
    status = Status.FINISHED
    while row < len(rows) and status == Status.FINISHED:
        if phase == LOAD:
            _load(row, rows, starting, streams, pattern, conditions, stack, path)
            place = depth
            phase = OPEN if _begin_stages(starting, buffered, pattern, stack, path) else DONE
        elif phase == DONE:
            _unload(pattern, stack, path)
            row += 1
            phase = LOAD
        elif phase == OPEN:
            if place + 1 < path.event.size and _open(place, buffered, pattern, uses, conditions, stack, path):
                phase = TAKE
            else:
                status = Status.PATH_FULL
        elif phase == TAKE and stack.cursor[place] == stack.stop[place]:
            phase = CLOSE
        elif phase == TAKE and (place + 1 >= path.event.size or not _has_room(place, stack)):
            status = Status.PATH_FULL
        elif phase == TAKE:
            v, event = stack.order[stack.stage[place]], stack.events[stack.cursor[place]]
            stack.cursor[place] += 1
            state[PathState.STEPS] += 1
            if _is_beyond(event, place, own, streams, stack):
                stack.cursor[place] = stack.stop[place]
            elif _fits(v, event, uses, conditions, path):
                _extend(v, event, place, pattern, uses, conditions, stack, path)
                place += 1
            if state[PathState.STEPS] > limit:
                status = Status.STEPS_SPENT
        elif not _closes(stack.order[stack.stage[place]], place, uses, criteria, stack, path):
            phase = _phase_after_stage(place, stack)
        elif stack.stage[place] < last:
            stack.stage[place] += 1
            phase = OPEN
        elif not counting and (state[PathState.MATCHES] >= matches.starts.size or state[PathState.EVENTS] + place > matches.events.size):
            status = Status.OUTPUT_FULL
        else:
            if stack.earliest[place] < own:
                _report(place, counting, stack, path, matches)
            phase = _phase_after_stage(place, stack)
        if phase == BACK:
            place -= 1
            unbind(place, pattern, path)
            phase = TAKE
        if state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
    state[PathState.CANDIDATE] = row
    state[PathState.DEPTH] = place
    state[PathState.PHASE] = phase
    return status
