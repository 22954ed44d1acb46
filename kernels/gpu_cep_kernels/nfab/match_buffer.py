"""Store what all runs of NFA^b bind, each binding once: the shared match buffer (SASE+ paper, section 4.3).

A *node* binds an event to a variable. Its links lead to the runs that the event
has extended. Each leads to the newest node of such a run at that time; the
run's older nodes follow as siblings. A path from a node back to one that begins
a match is one partial match.

Not all paths into a node are in time: they must begin in the window of its
event. The paper has version numbers for that. Here every node knows the latest
event at which one of its paths begins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.tables import Flags, Ints


class MatchBuffer(NamedTuple):
    """Hold the shared buffer; n is a node, k a link.

    - event[n], bound_to[n]: the event, and the variable that binds it.
    - earlier[n]: the node of the event bound before to the same variable, or −1.
    - link[n]: its first link, or −1.
    - start[n]: whether it begins a match.
    - sibling[n]: the node before it in its run, or −1.
    - latest[n]: the latest start of the paths to n.
    - latest_of_run[n], earliest_of_run[n]: the latest and the earliest start of the paths to n and its siblings.
    - node[k]: the node to which link k leads.
    - next_link[k]: the link that follows, or −1.
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


# The arrays with an entry for each link, not each node.
LINKED = ("node", "next_link")


class MatchEnds(NamedTuple):
    """List the nodes at which matches end; k is an entry.

    - node[k]: the node.
    - whole[k]: whether matches end at its siblings, too.
    - last_start[k]: those that begin at this event or earlier are matches.
    """

    node: Ints
    whole: Flags
    last_start: Ints


def new_buffer(size: int) -> MatchBuffer:
    """Return a buffer with room for so many nodes, and as many links."""
    kinds: dict[str, Any] = dict.fromkeys(MatchBuffer._fields, np.int64) | {"bound_to": np.uint16, "start": np.bool_}
    return MatchBuffer(**{name: np.zeros(size, kind) for name, kind in kinds.items()})


def new_ends(size: int) -> MatchEnds:
    """Return a list with room for so many ends."""
    return MatchEnds(np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size, np.int64))


@rule
def add_node(n: int, event: int, v: int, earlier: int, buffer: MatchBuffer) -> None:
    """Write node n, which binds `event` to v; no link leads anywhere yet."""
    buffer.event[n] = event
    buffer.bound_to[n] = v
    buffer.earlier[n] = earlier
    buffer.link[n] = buffer.sibling[n] = -1
    buffer.start[n] = False


@rule
def begin_path(n: int, buffer: MatchBuffer) -> None:
    """Mark node n as the beginning of a match."""
    buffer.start[n] = True
    buffer.latest[n] = buffer.latest_of_run[n] = buffer.earliest_of_run[n] = buffer.event[n]


@rule
def follow(n: int, head: int, k: int, buffer: MatchBuffer) -> None:
    """Link node n to the run whose newest node is `head`; k is the number of the link, its first one."""
    buffer.node[k] = head
    buffer.next_link[k] = -1
    buffer.link[n] = k
    buffer.latest[n] = buffer.latest_of_run[n] = buffer.latest_of_run[head]
    buffer.earliest_of_run[n] = buffer.earliest_of_run[head]


@rule
def share_node(n: int, head: int, buffer: MatchBuffer) -> bool:
    """Find in a run the node that binds the same event to the same variable as node n; give it n's links.

    `head` is the run's newest node. Return whether there is such a node.
    """
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
    """Make node n the newest of the run whose newest node was `head`."""
    buffer.sibling[n] = head
    buffer.latest_of_run[n] = max(buffer.latest[n], buffer.latest_of_run[head])
    buffer.earliest_of_run[n] = min(buffer.earliest_of_run[n], buffer.earliest_of_run[head])


@sequential(writes=("last_start",))
def mark_ends(number: int, buffer: MatchBuffer, ends: MatchEnds, last_start: Any) -> None:
    """``last_start[n]``: the matches that end at node n begin there or earlier; −1, as at first, if none end there."""
    for k in range(number):
        node = ends.node[k]
        last_start[node] = ends.last_start[k]
        node = buffer.sibling[node] if ends.whole[k] else -1
        while node >= 0:
            last_start[node] = ends.last_start[k]
            node = buffer.sibling[node]


@sequential(writes=("used",), scratch=("run_used",))
def mark_used_nodes(buffer: MatchBuffer, used: Any, run_used: Any) -> None:
    """``used[n]``: whether a path through node n leads to an end.

    `used` is given with the ends marked, and `run_used`, which is scratch, as all false.
    """
    for back in range(used.size):
        n = used.size - 1 - back
        used[n] = used[n] or run_used[n]
        if run_used[n] and buffer.sibling[n] >= 0:
            run_used[buffer.sibling[n]] = True
        k = buffer.link[n] if used[n] else -1
        while k >= 0:
            run_used[buffer.node[k]] = True
            k = buffer.next_link[k]
