"""Build one graph of all matches: a node for each way in which an event is bound, with ranges of nodes before it.

It follows the shared versioned buffer of SASE+ and the enumeration structure of
CORE (tECS). What partial matches have in common is stored once. Every node knows
the latest start of all paths that reach it. So a walk back from a last event
meets no dead end.

A *group* holds the nodes that bind to one variable and lead to one state. They
are in the order of their events. So the nodes that may precede one are ranges:
one of each group that leads to a state before its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.scalars import is_labelled
from gpu_cep_kernels.rules.tables import Flags, Ints

# Which nodes of a group may precede an event: all that are there, those of earlier times, or those of its own time.
ALL, EARLIER, TIED = range(3)


class GroupTable(NamedTuple):
    """List the groups; g is one.

    - variable[g]: the variable to which its nodes bind events.
    - begins[g], ends[g]: whether a node may begin, or end, a match.
    - source, source_first: for each group those whose nodes may precede its own:
      ``source[source_first[g]:source_first[g + 1]]``.
    - scope: for each entry of `source` which nodes those are (ALL, EARLIER, TIED).
    - base[g]: the number of its first node; ``base[g + 1]`` leaves room for all.
    """

    variable: Ints
    begins: Flags
    ends: Flags
    source_first: Ints
    source: Ints
    scope: Ints
    base: Ints


class NodeTable(NamedTuple):
    """List the nodes; n is one.

    - event[n]: the event that it binds.
    - start[n]: whether it begins a match.
    - latest[n]: the latest start of the paths that reach it.
    - first[n, k], last[n, k]: the range of nodes before it by the k-th source of
      its group; empty if the last is less.
    """

    event: Ints
    start: Flags
    latest: Ints
    first: Ints
    last: Ints


class Growth(NamedTuple):
    """Hold what is known so far of each group g in the current stream.

    - used[g]: how many nodes it has.
    - before[g]: how many it had before the current time.
    - floor[g]: its first node with a latest start in the window.
    - best[g]: the latest start of all its nodes.
    - best_before[g]: that of the nodes of earlier times.
    - best_tied[g]: that of the nodes of the current time.
    - pending[g]: that of the node which the current event adds, or −1.
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
    """Begin a stream: exclude all nodes so far from the predecessors of later nodes."""
    for g in range(growth.used.size):
        growth.before[g] = growth.floor[g] = growth.used[g]
        growth.best[g] = growth.best_before[g] = growth.best_tied[g] = -1


@rule
def _move_on(growth: Growth) -> None:
    """Advance the time: count all nodes so far as nodes of earlier times."""
    for g in range(growth.used.size):
        growth.before[g] = growth.used[g]
        growth.best_before[g] = growth.best[g]
        growth.best_tied[g] = -1


@rule
def _range_of(node: int, place: int, k: int, earliest: int, groups: GroupTable, growth: Growth, nodes: NodeTable) -> int:
    """Write range k of the predecessors of `node`, from the source at `place`; return their latest start, −1 if none."""
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
    """Write a node of group g for the event; return the latest start of a path to it, −1 if none: it is not kept."""
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
    """Keep the node that was written last in group g."""
    latest = growth.pending[g]
    growth.used[g] += 1
    growth.best[g] = max(growth.best[g], latest)
    growth.best_tied[g] = max(growth.best_tied[g], latest)


@sequential(writes=("growth", "nodes"))
def grow_graph(
    offsets: Any, after: Any, labels: Any, earliest: Any, starting: Any, groups: GroupTable, growth: Growth, nodes: NodeTable
) -> None:
    """Write the nodes of all events; ``growth.used[g]`` of them are in group g at the end.

    Stream s holds the events ``offsets[s]`` to ``offsets[s + 1]``. ``earliest[e]``
    is the first event whose window holds e. ``starting[e]`` says whether a match may
    begin at e. `after` is empty where ties do not matter.
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
    """Count in `covered` the ranges of nodes before `node`, which is of group g.

    ``covered[n]`` is raised where a range ends at node n, and lowered where one
    begins right behind it.
    """
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
    """``useful[n]``: whether a match binds node n, as far as labels tell; windows may rule it out.

    It walks back from the nodes that end a match. `covered` is given as zeros.
    `cursor` and `open_ranges` are scratch, one number for each group.
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
