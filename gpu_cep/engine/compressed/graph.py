"""Build the graph of nodes that all matches share.

Where labels decide the matches, the graph grows with the events, and no match is enumerated.
Otherwise it is the prefix tree of the matches that were found.

After the shared versioned buffer of SASE+ (NFA^b, section 5) and CORE's
enumeration structure with union lists (tECS).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import window_clock
from gpu_cep.engine.events.matches import Flags, FoundMatches, Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import Own
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.plan.event_plan import EventPlan, PlannedBranch
from gpu_cep.plan.states import StateSpace, Transition, branch_states
from gpu_cep_kernels.device.primitives import marked_events
from gpu_cep_kernels.labels_decide.graph import ALL, EARLIER, TIED, GroupTable, Growth, NodeTable, grow_graph, mark_useful
from gpu_cep_kernels.phase_one.ordering import streams_of
from gpu_cep_kernels.phase_one.windows import WindowLimits, mark_streams, window_ends

# Stands for no group (nodes of a tree), no parent, and no earliest start (nodes that end no match).
NONE = -1


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of all matches; each path from an end node back to a start node is a match.

    Event numbers are positions in the ordered events. Node n is described by:

    - ``event[n]`` and ``variable[n]``: the event, and the query's variable that binds it.
    - ``group[n]``: the variable and state that the node stands for; −1 in a prefix tree.
    - ``range_offsets[n]`` to ``range_offsets[n + 1]``: the ranges of its predecessors.
      Range r holds the nodes ``range_first[r]`` to ``range_last[r]``, both included.
    - ``start[n]``: whether a match begins with it.
    - ``latest[n]``: the latest event at which a path to it begins.
    - ``earliest[n]``: the first event at which a match that ends with it may begin; −1 if none ends here.
    """

    event: Indices
    variable: Indices
    group: Indices
    range_offsets: Indices
    range_first: Indices
    range_last: Indices
    start: Flags
    latest: Indices
    earliest: Indices


def label_graph(plan: EventPlan, ordered: OrderedEvents, own: Own) -> Graph | None:
    """Return the graph of all matches that start in `own`, or None.

    It is None if labels do not decide the matches, or if two branches may find the same match.
    """
    # test the plan first: it rules out most queries, and costs less than the events
    if not plan.finds_once or any(branch_states(plan, branch, tied=False) is None for branch in plan.branches):
        return None
    windows = graph_windows(plan, ordered, own)
    spaces = [(branch, branch_states(plan, branch, bool(windows.after.size))) for branch in plan.branches]
    graphs = [_branch_graph(ordered, windows, branch, space) for branch, space in spaces if space is not None]
    return join_graphs(graphs) if len(graphs) == len(spaces) else None


@dataclass(frozen=True, slots=True)
class GraphWindows:
    """What windows and ties allow at each event.

    `after`: the first event of a later time; empty if no two events of a stream tie.
    `earliest`: the first event that is in one window with this one.
    `starting`: whether a match may start at the event.
    """

    after: npt.NDArray[np.int32]
    earliest: Indices
    starting: Flags


def graph_windows(plan: EventPlan, ordered: OrderedEvents, own: Own) -> GraphWindows:
    """Return the windows of all ordered events; matches may start at the events of `own`."""
    size = len(ordered.times)
    events = np.arange(size)
    stream_end, after, ends = np.empty(size, np.int32), np.empty(size + 1, np.int32), np.empty(size, np.int32)
    ties = mark_streams(0, ordered.offsets, 0, len(ordered.offsets) - 1, ordered.times, stream_end, after)
    clock, length = window_clock(plan, ordered, 0, size)
    window_ends(0, size, events, events, WindowLimits(clock, stream_end, length), ends)
    untied = plan.query.ties == "position" or ties == 0
    earliest = np.searchsorted(ends, events, side="right").astype(np.int64)
    return GraphWindows(after[:0] if untied else after, earliest, own.holds(ordered.times, ordered.rows))


def _branch_graph(ordered: OrderedEvents, windows: GraphWindows, branch: PlannedBranch, space: StateSpace) -> Graph:
    """Return the graph of the matches of a branch, without nodes that by labels alone no match binds."""
    groups = _group_table(ordered, branch, space)
    number, room = len(groups.variable), int(groups.base[-1])
    widest = int(np.diff(groups.source_first).max(initial=0))
    nodes = NodeTable(
        event=np.empty(room, np.int64),
        start=np.empty(room, np.bool_),
        latest=np.empty(room, np.int64),
        first=np.zeros((room, widest), np.int64),
        last=np.full((room, widest), -1, np.int64),
    )
    growth = Growth(*(np.zeros(number, np.int64) for _ in Growth._fields))
    grow_graph(ordered.offsets, windows.after, ordered.labels, windows.earliest, windows.starting, groups, growth, nodes)
    useful = np.zeros(room, np.bool_)
    scratch = np.empty(number, np.int64), np.empty(number, np.int64), np.zeros(room, np.int64)
    mark_useful(len(ordered.times), groups, growth.used, nodes, *scratch, useful)
    return _keep_useful(windows, groups, nodes, useful)


def _keep_useful(windows: GraphWindows, groups: GroupTable, nodes: NodeTable, useful: Flags) -> Graph:
    """Return the graph of the nodes marked `useful`, renumbered.

    The predecessors of a useful node are useful, too.
    """
    number = offsets(useful.astype(np.int64))
    group = np.repeat(np.arange(len(groups.variable)), np.diff(groups.base))[useful]
    first, last, event = nodes.first[useful], nodes.last[useful], nodes.event[useful]
    there = last >= first
    return Graph(
        event=event,
        variable=groups.variable[group],
        group=group,
        range_offsets=offsets(there.sum(axis=1)),
        range_first=number[first[there]],
        range_last=number[last[there]],
        start=nodes.start[useful],
        latest=nodes.latest[useful],
        earliest=np.where(groups.ends[group], windows.earliest[event], NONE),
    )


def _group_table(ordered: OrderedEvents, branch: PlannedBranch, space: StateSpace) -> GroupTable:
    """Return the groups of nodes: one for each variable and the state to which it leads."""
    by_group: dict[tuple[int, int], list[Transition]] = {}
    for transition in space.transitions:
        by_group.setdefault((transition.variable, transition.target), []).append(transition)
    targets = [target for _, target in by_group]
    sources = [_sources(space, transitions, targets) for transitions in by_group.values()]
    variables = [branch.positives[v] for v, _ in by_group]
    frequency = {v: int(np.count_nonzero(marked_events(ordered.labels, 1 << v))) for v in branch.positives}
    return GroupTable(
        variable=np.array(variables, np.int64),
        begins=np.array([any(each.source == 0 for each in transitions) for transitions in by_group.values()], np.bool_),
        ends=np.array([space.final[target] for target in targets], np.bool_),
        source_first=offsets([len(own) for own in sources]),
        source=np.array([h for own in sources for h in own], np.int64),
        scope=np.array([scope for own in sources for scope in own.values()], np.int64),
        base=offsets([frequency[v] for v in variables]),
    )


def _sources(space: StateSpace, transitions: list[Transition], targets: list[int]) -> dict[int, int]:
    """Return the groups whose nodes may precede a node that these transitions add, each with its scope.

    A scope says which nodes of the group count: all, those of earlier times, or those of the current time.
    """
    scopes: dict[int, int] = {}
    for transition in transitions:
        for h, state in enumerate(targets):
            scope = _scope(space, state, transition.source)
            if scope is not None:
                scopes[h] = scope if scopes.get(h, scope) == scope else ALL
    return scopes


def _scope(space: StateSpace, state: int, source: int) -> int | None:
    """Return after which nodes that led to `state` a match is in state `source` at the current event.

    They are ALL nodes, those of EARLIER times, those of the current time (TIED), or none (None).
    """
    if space.settled[state] == source:
        return ALL if state == source else EARLIER
    return TIED if state == source else None


def join_graphs(graphs: list[Graph]) -> Graph:
    """Return one graph that has the paths of all `graphs`."""
    before = offsets([len(graph.event) for graph in graphs])
    groups = offsets([int(graph.group.max(initial=NONE)) + 1 for graph in graphs])
    ranges = offsets([len(graph.range_first) for graph in graphs])
    return Graph(
        event=np.concatenate([graph.event for graph in graphs]),
        variable=np.concatenate([graph.variable for graph in graphs]),
        group=np.concatenate([graph.group + groups[b] for b, graph in enumerate(graphs)]),
        range_offsets=np.concatenate([[0], *(graph.range_offsets[1:] + ranges[b] for b, graph in enumerate(graphs))]),
        range_first=np.concatenate([graph.range_first + before[b] for b, graph in enumerate(graphs)]),
        range_last=np.concatenate([graph.range_last + before[b] for b, graph in enumerate(graphs)]),
        start=np.concatenate([graph.start for graph in graphs]),
        latest=np.concatenate([graph.latest for graph in graphs]),
        earliest=np.concatenate([graph.earliest for graph in graphs]),
    )


def match_tree(matches: FoundMatches) -> Graph:
    """Return the prefix tree of matches, no two of them equal: each node has at most one predecessor."""
    sizes, variables = np.diff(matches.offsets), matches.counts.shape[1]
    owner = np.repeat(np.arange(len(matches)), sizes)
    bound_to = np.repeat(np.tile(np.arange(variables), len(matches)), matches.counts.ravel())
    in_order = np.lexsort([matches.events, owner])
    events, bound_to = matches.events[in_order], bound_to[in_order]
    reached = np.full(len(matches), NONE, np.int64)
    levels = [np.empty((0, 3), np.int64)]
    count = 0
    for depth in range(int(sizes.max(initial=0))):
        longer = np.flatnonzero(sizes > depth)
        places = matches.offsets[longer] + depth
        level, found = np.unique(np.stack([reached[longer], events[places], bound_to[places]], axis=1), axis=0, return_inverse=True)
        reached[longer] = count + found.ravel()
        levels.append(level)
        count += len(level)
    parent, event, variable = np.concatenate(levels).T.copy()
    first = np.empty(count, np.int64)
    first[:] = event
    inner = parent != NONE
    _inherit(first, parent, offsets([len(level) for level in levels[1:]]))
    earliest = np.full(count, NONE, np.int64)
    earliest[reached] = matches.first
    return Graph(
        event=event, variable=variable, group=np.full(count, NONE, np.int64),
        range_offsets=offsets(inner), range_first=parent[inner], range_last=parent[inner],
        start=~inner, latest=first, earliest=earliest,
    )  # fmt: skip


def _inherit(first: Indices, parent: Indices, levels: Indices) -> None:
    """Copy each parent's entry of `first` to its children, level by level from the root."""
    for low, high in zip(levels[1:-1], levels[2:], strict=True):
        first[low:high] = first[parent[low:high]]


def moments(ordered: OrderedEvents, strict: bool) -> Indices:
    """Return a number for the time of each ordered event, counted up through all streams.

    Unless ties are `strict`, each event counts as a time of its own.
    """
    size = len(ordered.times)
    if not strict:
        return np.arange(size)
    stream = np.empty(size, np.int64)
    streams_of(np.arange(size), ordered.offsets, stream)
    moved = (ordered.times[1:] != ordered.times[:-1]) | (stream[1:] != stream[:-1])
    return np.concatenate([np.zeros(min(size, 1), np.int64), np.cumsum(moved, dtype=np.int64)])
