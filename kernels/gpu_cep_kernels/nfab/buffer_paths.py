"""Read matches off the shared buffer of NFA^b: the paths that lead to the nodes at which matches end.

A walk goes back from such a node. It enters a node only if a path from a start
in the window leads there. Each path is judged by what only the end of a match
decides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.nfab.match_buffer import MatchBuffer, MatchEnds, mark_ends
from gpu_cep_kernels.rules.path import bind, is_match, unbind, write_match
from gpu_cep_kernels.rules.path_arrays import double_rows
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, Ints, MatchTable, PathState, PatternTable, Status


class PathEnds(NamedTuple):
    """Hold the nodes at which matches end.

    - node[k]: the node.
    - last_start[k]: its matches begin at this event or earlier.
    """

    node: Ints
    last_start: Ints


class BufferPaths(NamedTuple):
    """Hold a shared buffer and the nodes at which its matches end."""

    buffer: MatchBuffer
    ends: PathEnds


class BufferWalk(NamedTuple):
    """Hold the way back from a last event; d is a number of steps.

    - node[d]: the node that is d steps before the last one.
    - before[d]: the first untried node before that one; its siblings follow.
    - link[d]: the link that leads there; those behind it follow.
    - state: numbers that WalkState names.
    """

    node: Ints
    link: Ints
    before: Ints
    state: Ints


class _WalkState(NamedTuple):
    """Name the numbers in the state of a walk."""

    LENGTH: int = 0  # how many steps it has made
    ARRIVED: int = 1  # whether its path is still to be reported


WalkState = _WalkState()


def new_walk(depth: int) -> BufferWalk:
    """Return an empty walk with room for so many steps."""
    return BufferWalk(np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(len(WalkState), np.int64))


def deepen_walk(walk: BufferWalk) -> BufferWalk:
    """Return `walk` with room for twice as many steps."""
    return BufferWalk(double_rows(walk.node), double_rows(walk.link), double_rows(walk.before), walk.state)


def last_starts(nodes: int, number: int, buffer: MatchBuffer, ends: MatchEnds) -> Ints:
    """Return for each of the first `nodes` nodes the last start of the matches that end there; −1 if none do.

    The first `number` of the ends say so (see :func:`mark_ends`).
    """
    last_start = np.full(nodes, -1)
    mark_ends(number, buffer, ends, last_start)
    return last_start


def path_ends(nodes: int, number: int, buffer: MatchBuffer, ends: MatchEnds) -> PathEnds:
    """Return the nodes at which matches end, among the first `nodes` of a buffer.

    The first `number` of its ends say so.
    """
    last_start = last_starts(nodes, number, buffer, ends)
    ending = np.flatnonzero(last_start >= 0)
    return PathEnds(ending, last_start[ending])


@rule
def _enter(node: int, buffer: MatchBuffer, walk: BufferWalk) -> None:
    """Append `node` to the walk, one step further back."""
    d = walk.state[WalkState.LENGTH]
    walk.node[d] = node
    walk.link[d] = buffer.link[node]
    walk.before[d] = buffer.node[buffer.link[node]] if buffer.link[node] >= 0 else -1
    walk.state[WalkState.LENGTH] = d + 1
    walk.state[WalkState.ARRIVED] = 1 if buffer.start[node] else 0


@rule
def _step(earliest: int, buffer: MatchBuffer, walk: BufferWalk) -> int:
    """Return the next untried node before the walk's last node; −1 if none is left.

    A path from a start at `earliest` or later must lead to it.
    """
    d = walk.state[WalkState.LENGTH] - 1
    found = -1
    while found < 0 and walk.link[d] >= 0:
        node = walk.before[d]
        if node >= 0 and buffer.latest_of_run[node] >= earliest:
            walk.before[d] = buffer.sibling[node]
            found = node if buffer.latest[node] >= earliest else -1
        else:
            walk.link[d] = buffer.next_link[walk.link[d]]
            walk.before[d] = buffer.node[walk.link[d]] if walk.link[d] >= 0 else -1
    return int(found)


@rule
def _bind_path(buffer: MatchBuffer, walk: BufferWalk, pattern: PatternTable, conditions: Conditions, path: EventPath) -> None:
    """Bind the events of the walk in their order."""
    length = walk.state[WalkState.LENGTH]
    for d in range(length):
        node = walk.node[length - 1 - d]
        bind(buffer.bound_to[node], buffer.event[node], d, pattern, conditions, path)


@rule
def _unbind_path(length: int, pattern: PatternTable, path: EventPath) -> None:
    """Unbind the `length` events of the path."""
    for d in range(length):
        unbind(length - 1 - d, pattern, path)


@rule
def _report(start: int, counting: bool, length: int, criteria: Criteria, path: EventPath, matches: MatchTable) -> None:
    """Write or count the bound path if it is a match."""
    if is_match(length, criteria, path):
        if counting:
            matches.totals[start] += 1
            path.state[PathState.MATCHES] += 1
        else:
            write_match(start, matches, path)


@sequential(writes=("walk", "path", "matches"))
def enumerate_paths(
    earliest: Any,
    counting: bool,
    step_limit: int,
    read: BufferPaths,
    criteria: Criteria,
    walk: BufferWalk,
    path: EventPath,
    matches: MatchTable,
) -> Status:
    """Find the matches of all ends from where `walk` and ``path.state`` stand; return why it stopped.

    ``earliest[e]`` is the first event whose window holds e. ``matches.starts`` gets
    each match's first event. With `counting`, only ``matches.totals[e]`` is
    written: it is raised by the matches that begin at event e. On OUTPUT_FULL,
    PATH_FULL or STEPS_SPENT the caller makes room and calls again.
    """
    buffer, ends = read
    pattern, conditions = criteria.pattern, criteria.conditions
    state = path.state
    limit = state[PathState.STEPS] + step_limit
    status = Status.FINISHED
    k = state[PathState.CANDIDATE]
    while k < ends.node.size and status == Status.FINISHED:
        length = walk.state[WalkState.LENGTH]
        if length == 0:
            _enter(ends.node[k], buffer, walk)
        elif state[PathState.STEPS] > limit:
            status = Status.STEPS_SPENT
        elif (
            walk.state[WalkState.ARRIVED] != 0
            and not counting
            and (state[PathState.MATCHES] >= matches.starts.size or state[PathState.EVENTS] + length > matches.events.size)
        ):
            status = Status.OUTPUT_FULL
        elif walk.state[WalkState.ARRIVED] != 0:
            walk.state[WalkState.ARRIVED] = 0
            start = buffer.event[walk.node[length - 1]]
            if earliest[buffer.event[walk.node[0]]] <= start and start <= ends.last_start[k]:
                _bind_path(buffer, walk, pattern, conditions, path)
                _report(start, counting, length, criteria, path, matches)
                _unbind_path(length, pattern, path)
        elif length >= walk.node.size:
            status = Status.PATH_FULL
        else:
            state[PathState.STEPS] += 1
            before = _step(earliest[buffer.event[walk.node[0]]], buffer, walk)
            if before >= 0:
                _enter(before, buffer, walk)
            else:
                walk.state[WalkState.LENGTH] = length - 1
                k += length == 1
        if state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
    state[PathState.CANDIDATE] = k
    return status
