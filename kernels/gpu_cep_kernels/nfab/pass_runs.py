"""Add, extend and free the runs of NFA^b's pass (SASE+ paper, section 4)."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.nfab.match_buffer import MatchBuffer, MatchEnds, add_node, begin_path, follow
from gpu_cep_kernels.nfab.merged_runs import MergedRuns, ReadTable
from gpu_cep_kernels.rules.conditions import conditions_hold
from gpu_cep_kernels.rules.running import accumulate
from gpu_cep_kernels.rules.tables import Conditions, EventPath, EventTable, Ints, PatternTable
from gpu_cep_kernels.rules.ties import first_behind


class _PassState(NamedTuple):
    """Name the numbers in the state of a pass."""

    EVENT: int = 0  # the next event
    STREAM_END: int = 1  # where its stream ends
    NODES: int = 2  # how many nodes the buffer has,
    LINKS: int = 3  # how many links,
    ENDS: int = 4  # and how many ends of matches
    ACTIVE: int = 5  # how many runs are active
    FREE: int = 6  # how many runs there is room for
    ADDED: int = 7  # how many runs the current event has added
    OFFERED: int = 8  # how often an event was offered to a run
    FAULT: int = 9  # a start of the run in which a condition overflowed first, or −1
    CUTS: int = 10  # whether completed matches rule others out
    FIRST: int = 11  # the first event of the completed match that begins last,
    LAST: int = 12  # and its last event


PassState = _PassState()


class Pass(NamedTuple):
    """Hold all that a pass writes.

    - path: the run whose conditions are being judged; its places are nodes of the buffer.
    - buffer: what all runs bind.
    - runs: the runs.
    - reads: what conditions read, with scratch.
    - ends: the nodes at which matches end.
    - state: numbers that PassState names.
    """

    path: EventPath
    buffer: MatchBuffer
    runs: MergedRuns
    reads: ReadTable
    ends: MatchEnds
    state: Ints


@rule
def _load(r: int, work: Pass) -> None:
    """Copy run r to ``work.path``, where conditions read it."""
    runs, path = work.runs, work.path
    for v in range(path.bound.size):
        path.bound[v] = runs.bound[r, v]
        path.first[v] = runs.first[r, v]
        path.last[v] = runs.last[r, v]


@rule
def _clear(path: EventPath) -> None:
    """Empty all bindings of `path`."""
    for v in range(path.bound.size):
        path.bound[v] = 0
        path.first[v] = path.last[v] = -1


@rule
def _bind(r: int, v: int, event: int, pattern: PatternTable, conditions: Conditions, work: Pass) -> int:
    """Add a node that binds `event` to v in run r; return the node."""
    runs, n = work.runs, work.state[PassState.NODES]
    work.state[PassState.NODES] = n + 1
    before = runs.last[r, v]
    add_node(n, event, v, before, work.buffer)
    accumulate(v, before, n, conditions.base + event, conditions.aggregates, conditions.bank, work.path.aggregates)
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
def _new_run(source: int, pattern: PatternTable, work: Pass) -> int:
    """Add a copy of run `source` (−1: an empty run); return its number."""
    runs, state = work.runs, work.state
    state[PassState.FREE] -= 1
    r = runs.free[state[PassState.FREE]]
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
    runs.active[state[PassState.ACTIVE] + state[PassState.ADDED]] = r
    state[PassState.ADDED] += 1
    return int(r)


@rule
def release_run(r: int, work: Pass) -> None:
    """Free the number r of a run."""
    work.runs.free[work.state[PassState.FREE]] = r
    work.state[PassState.FREE] += 1


@rule
def _extend(source: int, v: int, event: int, pattern: PatternTable, conditions: Conditions, work: Pass) -> None:
    """Add the run that binds what run `source` binds and `event` to v; with −1 the event begins a match."""
    r = _new_run(source, pattern, work)
    n = _bind(r, v, event, pattern, conditions, work)
    if source < 0:
        begin_path(n, work.buffer)
    else:
        follow(n, work.runs.head[source], work.state[PassState.LINKS], work.buffer)
        work.state[PassState.LINKS] += 1


@rule
def _in_order(r: int, v: int, event: int, after: Any, pattern: PatternTable, work: Pass) -> bool:
    """Return whether `event` is later than all events of the variables that precede v."""
    path, runs = work.path, work.runs
    true = True
    if after.size > 0:
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            true = true and event >= first_behind(after, path.event[runs.last[r, pattern.direct[k]]])
    return true


@rule
def extend_run(r: int, event: int, events: EventTable, pattern: PatternTable, conditions: Conditions, work: Pass) -> int:
    """Add the runs that run r becomes by binding `event` to some variable; return how many (ext(g, e))."""
    path, runs = work.path, work.runs
    found = 0
    loaded = False
    for v in range(pattern.order.size):
        fits = runs.blockers[r, v] == 0 and runs.bound[r, v] < pattern.maximum[v] and events.occurrence[v, event] == event
        if fits and _in_order(r, v, event, events.after, pattern, work):
            if not loaded:
                _load(r, work)
                loaded = True
            if conditions_hold(v, event, pattern, conditions, path):
                _extend(r, v, event, pattern, conditions, work)
                found += 1
    return found


@rule
def begin_runs(event: int, events: EventTable, pattern: PatternTable, conditions: Conditions, work: Pass) -> None:
    """Add the runs that begin with `event`."""
    path = work.path
    cleared = False
    for v in range(pattern.order.size):
        fits = events.occurrence[v, event] == event
        for u in range(pattern.order.size):
            fits = fits and not pattern.precedes[u, v]
        if fits and conditions.table.alone[v]:
            if not cleared:
                _clear(path)
                cleared = True
            fits = conditions_hold(v, event, pattern, conditions, path)
        if fits:
            _extend(-1, v, event, pattern, conditions, work)
