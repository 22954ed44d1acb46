"""The shared match buffer of NFA^b (SASE+ paper, section 4.3): what all runs bind, each binding once.

A node binds an event to a variable. Its links lead to the runs that the event
has extended, each as the newest node that had ended in that run by then; the
run's older nodes follow as siblings. A path back from a node to one that
begins a match is what one partial match binds. Of the paths into a node only
those begin in time that begin in the window of its event: in the place of
version numbers every node knows the latest event at which one begins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.tables import Flags, Ints


class MatchBuffer(NamedTuple):
    """The shared buffer: node n binds ``event[n]`` to variable ``bound_to[n]``, after the node ``earlier[n]`` (or −1) in some run.

    Its links are those from ``link[n]`` on (−1: none), and it begins a match
    if ``start[n]``. ``sibling[n]`` is the node before it in its run. Paths to n begin at
    ``latest[n]`` or earlier, those to n and its siblings at ``latest_of_run[n]`` or
    earlier and ``earliest_of_run[n]`` or later. Link k leads to node ``node[k]`` and its
    siblings; ``next_link[k]`` is the link that follows.
    """

    event: Ints
    bound_to: npt.NDArray[np.uint16]
    earlier: Ints
    link: Ints
    start: Flags
    sibling: Ints
    latest: Ints
    latest_of_run: Ints
    earliest_of_run: Ints
    node: Ints
    next_link: Ints


# What the buffer has one of for each link.
LINKED = ("node", "next_link")


class MatchEnds(NamedTuple):
    """Matches end at node ``node[k]``, and at its siblings if ``whole[k]``: those that begin at ``last_start[k]`` or earlier."""

    node: Ints
    whole: Flags
    last_start: Ints


def new_buffer(size: int) -> MatchBuffer:
    """Room for so many nodes, and as many links."""
    kinds: dict[str, Any] = dict.fromkeys(MatchBuffer._fields, np.int64) | {"bound_to": np.uint16, "start": np.bool_}
    return MatchBuffer(**{name: np.zeros(size, kind) for name, kind in kinds.items()})


def new_ends(size: int) -> MatchEnds:
    """Room for so many ends."""
    return MatchEnds(np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size, np.int64))


@rule
def add_node(n: int, event: int, v: int, earlier: int, buffer: MatchBuffer) -> None:
    """Let node n bind `event` to v, with nothing before it yet."""
    buffer.event[n] = event
    buffer.bound_to[n] = v
    buffer.earlier[n] = earlier
    buffer.link[n] = buffer.sibling[n] = -1
    buffer.start[n] = False


@rule
def begin_path(n: int, buffer: MatchBuffer) -> None:
    """Let node n begin a match."""
    buffer.start[n] = True
    buffer.latest[n] = buffer.latest_of_run[n] = buffer.earliest_of_run[n] = buffer.event[n]


@rule
def follow(n: int, head: int, k: int, buffer: MatchBuffer) -> None:
    """Let node n follow the run whose newest node is `head`, by its first link, k."""
    buffer.node[k] = head
    buffer.next_link[k] = -1
    buffer.link[n] = k
    buffer.latest[n] = buffer.latest_of_run[n] = buffer.latest_of_run[head]
    buffer.earliest_of_run[n] = buffer.earliest_of_run[head]


@rule
def share_node(n: int, head: int, buffer: MatchBuffer) -> bool:
    """Give what leads to node n to the one that binds its event to its variable in the run with the newest node `head`, if it has one."""
    m = head
    while m >= 0 and buffer.event[m] == buffer.event[n] and buffer.bound_to[m] != buffer.bound_to[n]:
        m = buffer.sibling[m]
    shared = m >= 0 and buffer.event[m] == buffer.event[n]
    if shared:
        if buffer.link[n] >= 0:
            buffer.next_link[buffer.link[n]] = buffer.link[m]
            buffer.link[m] = buffer.link[n]
        buffer.start[m] = buffer.start[m] or buffer.start[n]
        buffer.latest[m] = max(buffer.latest[m], buffer.latest[n])
        newer = head
        while newer >= 0 and buffer.event[newer] == buffer.event[n]:
            buffer.latest_of_run[newer] = max(buffer.latest_of_run[newer], buffer.latest[n])
            buffer.earliest_of_run[newer] = min(buffer.earliest_of_run[newer], buffer.earliest_of_run[n])
            newer = buffer.sibling[newer]
    return bool(shared)


@rule
def add_sibling(n: int, head: int, buffer: MatchBuffer) -> None:
    """Let node n be newer than node `head` of its run."""
    buffer.sibling[n] = head
    buffer.latest_of_run[n] = max(buffer.latest[n], buffer.latest_of_run[head])
    buffer.earliest_of_run[n] = min(buffer.earliest_of_run[n], buffer.earliest_of_run[head])


@sequential(writes=("last_start",))
def mark_ends(number: int, buffer: MatchBuffer, ends: MatchEnds, last_start: Any) -> None:
    """``last_start[n]``: matches end at node n, those that begin there or earlier; −1, which it is at first: none do."""
    for k in range(number):
        node = ends.node[k]
        last_start[node] = ends.last_start[k]
        node = buffer.sibling[node] if ends.whole[k] else -1
        while node >= 0:
            last_start[node] = ends.last_start[k]
            node = buffer.sibling[node]


@sequential(writes=("used",), scratch=("run_used",))
def mark_used_nodes(buffer: MatchBuffer, used: Any, run_used: Any) -> None:
    """``used[n]``: paths through node n lead to an end. At first the ends are marked; `run_used` is scratch, false at first."""
    for back in range(used.size):
        n = used.size - 1 - back
        used[n] = used[n] or run_used[n]
        if run_used[n] and buffer.sibling[n] >= 0:
            run_used[buffer.sibling[n]] = True
        k = buffer.link[n] if used[n] else -1
        while k >= 0:
            run_used[buffer.node[k]] = True
            k = buffer.next_link[k]
