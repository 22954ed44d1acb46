"""All matches as one graph: a node for each way in which an event is bound, and ranges of nodes that may come before it.

After the shared versioned buffer of SASE+ and the enumeration structure of
CORE (tECS): what partial matches have in common is stored once, and every
node knows the latest start of all paths that reach it, so that a walk back
from a last event meets no dead end.

A *group* g holds the nodes that bind to one variable and lead to one state, in
the order of their events. The nodes that may precede one are then a range of
each group that leads to a state before its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.scalars import is_labelled
from gpu_cep_kernels.rules.tables import Flags, Ints

# Which nodes of a group may precede an event: all that are there, those of earlier times, or those of its own time.
ALL, EARLIER, TIED = range(3)


class GroupTable(NamedTuple):
    """Group g binds events with the label of ``variable[g]``; it may begin a match (`begins`) or end one (`ends`).

    Nodes of the groups ``source[source_first[g]:source_first[g + 1]]`` may
    precede its own, as `scope` says. The nodes of g are numbered from
    ``base[g]`` on, and ``base[g + 1]`` leaves room for all.
    """

    variable: Ints
    begins: Flags
    ends: Flags
    source_first: Ints
    source: Ints
    scope: Ints
    base: Ints


class NodeTable(NamedTuple):
    """Node n binds ``event[n]``, and begins a match if ``start[n]``.

    The latest of all matches that reach it begins at ``latest[n]``. Its
    predecessors by the k-th source of its group are the nodes ``first[n, k]``
    to ``last[n, k]`` (none if that is less).
    """

    event: Ints
    start: Flags
    latest: Ints
    first: Ints
    last: Ints


class Growth(NamedTuple):
    """What is known of each group in the stream: its nodes, how many there were before the current time, and the first in the window.

    `best`, `best_before` and `best_tied` are the latest starts of all nodes, of
    those of earlier times and of those of the current time; ``pending[g]`` is
    that of the node which the current event adds, or −1.
    """

    used: Ints
    before: Ints
    floor: Ints
    best: Ints
    best_before: Ints
    best_tied: Ints
    pending: Ints


@rule
def _begin_stream(growth: Growth) -> None:
    for g in range(growth.used.size):
        growth.before[g] = growth.floor[g] = growth.used[g]
        growth.best[g] = growth.best_before[g] = growth.best_tied[g] = -1


@rule
def _move_on(growth: Growth) -> None:
    """Make the nodes so far those of earlier times."""
    for g in range(growth.used.size):
        growth.before[g] = growth.used[g]
        growth.best_before[g] = growth.best[g]
        growth.best_tied[g] = -1


@rule
def _range_of(node: int, place: int, k: int, earliest: int, groups: GroupTable, growth: Growth, nodes: NodeTable) -> int:
    """Write the range of predecessors of a node by the source at `place`; return the latest start among them, or −1."""
    h, scope = groups.source[place], groups.scope[place]
    base = groups.base[h]
    floor = growth.floor[h]
    while floor < growth.used[h] and nodes.latest[base + floor] < earliest:
        floor += 1
    growth.floor[h] = floor
    low, high, best = floor, growth.used[h], growth.best[h]
    if scope == EARLIER:
        high, best = growth.before[h], growth.best_before[h]
    elif scope == TIED:
        low, best = max(floor, growth.before[h]), growth.best_tied[h]
    found = low < high and best >= earliest
    nodes.first[node, k] = base + low if found else 0
    nodes.last[node, k] = base + high - 1 if found else -1
    return int(best) if found else -1


@rule
def _node(g: int, event: int, earliest: int, starting: Any, groups: GroupTable, growth: Growth, nodes: NodeTable) -> int:
    """Write the node that the event would add to group g; return the latest start of what reaches it, or −1 if nothing does."""
    node = groups.base[g] + growth.used[g]
    begins = groups.begins[g] and starting[event]
    latest = event if begins else -1
    for place in range(groups.source_first[g], groups.source_first[g + 1]):
        latest = max(latest, _range_of(node, place, place - groups.source_first[g], earliest, groups, growth, nodes))
    nodes.event[node] = event
    nodes.start[node] = begins
    nodes.latest[node] = latest
    return latest


@rule
def _commit(g: int, growth: Growth) -> None:
    """Account for the node that the current event has added to group g."""
    latest = growth.pending[g]
    growth.used[g] += 1
    growth.best[g] = max(growth.best[g], latest)
    growth.best_tied[g] = max(growth.best_tied[g], latest)


@sequential(writes=("growth", "nodes"))
def grow_graph(
    offsets: Any, after: Any, labels: Any, earliest: Any, starting: Any, groups: GroupTable, growth: Growth, nodes: NodeTable
) -> None:
    """Write the nodes of all events; ``growth.used[g]`` of them are in group g at the end.

    Stream s holds the events ``offsets[s]`` to ``offsets[s + 1]``; ``earliest[e]``
    is the first event whose window holds e, ``starting[e]`` says whether a
    match may begin at e. `after` is empty where ties do not matter.
    """
    for s in range(offsets.size - 1):
        _begin_stream(growth)
        for e in range(offsets[s], offsets[s + 1]):
            if e > offsets[s] and (after.size == 0 or after[e - 1] == e):
                _move_on(growth)
            for g in range(groups.variable.size):
                fits = is_labelled(e, groups.variable[g], labels)
                growth.pending[g] = _node(g, e, earliest[e], starting, groups, growth, nodes) if fits else -1
            for g in range(groups.variable.size):
                if growth.pending[g] >= 0:
                    _commit(g, growth)


@rule
def _cover(node: int, g: int, groups: GroupTable, nodes: NodeTable, covered: Any) -> None:
    """Count the ranges of a node of group g: ``covered[n]`` more of them end at node n than begin behind it."""
    for place in range(groups.source_first[g], groups.source_first[g + 1]):
        k = place - groups.source_first[g]
        first, last = nodes.first[node, k], nodes.last[node, k]
        if last >= first:
            covered[last] += 1
            if first > groups.base[groups.source[place]]:
                covered[first - 1] -= 1


@sequential(writes=("useful",), scratch=("cursor", "open_ranges", "covered"))
def mark_useful(
    events: int, groups: GroupTable, used: Any, nodes: NodeTable, cursor: Any, open_ranges: Any, covered: Any, useful: Any
) -> None:
    """``useful[n]``: whether a match binds node n, as far as windows do not tell: walks back from the nodes that end one.

    `covered` is zero at first; `cursor` and `open_ranges` are scratch, one number for each group.
    """
    for g in range(used.size):
        cursor[g] = used[g] - 1
        open_ranges[g] = 0
    for back in range(events):
        event = events - 1 - back
        for g in range(used.size):
            node = groups.base[g] + cursor[g]
            if cursor[g] >= 0 and nodes.event[node] == event:
                open_ranges[g] += covered[node]
                useful[node] = groups.ends[g] or open_ranges[g] > 0
                cursor[g] -= 1
                if useful[node]:
                    _cover(node, g, groups, nodes, covered)
