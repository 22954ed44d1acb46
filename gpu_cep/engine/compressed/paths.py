"""Enumerate and count the paths through a graph of matches.

The time between two enumerated paths is bounded by their lengths. Counting enumerates nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.compressed.path_graph import PathGraph, first_of_groups, reach_of_groups
from gpu_cep.engine.compressed.path_sums import PathCells, path_cells, sum_paths
from gpu_cep_kernels.rules.tables import Ints

Objects = npt.NDArray[Any]

# The most starts of sliding windows that are counted together: each takes a row of large numbers.
_ROWS = 1 << 12
# With more groups, paths are counted by shared sums: a vector with entries for all groups would be too long.
_MOST_GROUPS = 64


def each_path(graph: PathGraph) -> Iterator[list[int]]:
    """Yield the nodes of each match, in the order of their events.

    The search walks back from each end node. It enters only nodes that can be reached from a start in
    the window, so every walk ends with a match.
    """
    walk = _Walk.over(graph)
    for end in np.flatnonzero(graph.earliest >= 0).tolist():
        yield from walk.back_from(end, int(graph.earliest[end]))


@dataclass(frozen=True, slots=True)
class _Walk:
    """The graph's arrays as lists.

    `begins_at`: the event of a node with which a match begins; −1 for others.
    `reach`: the latest start of the nodes up to this one in its group.
    """

    offsets: list[int]
    first: list[int]
    last: list[int]
    begins_at: list[int]
    latest: list[int]
    reach: list[int]

    @classmethod
    def over(cls, graph: PathGraph) -> _Walk:
        """Return a graph's arrays as lists."""
        ranges = graph.range_offsets.tolist(), graph.range_first.tolist(), graph.range_last.tolist()
        begins_at = np.where(graph.start, graph.event, -1).tolist()
        return cls(*ranges, begins_at, graph.latest.tolist(), reach_of_groups(graph).tolist())

    def back_from(self, end: int, limit: int) -> Iterator[list[int]]:
        """Yield the paths to `end` that begin at event `limit` or later."""
        path = [end]
        choices = [self._choices(end, limit)]
        while path:
            node = next(choices[-1], None)
            if node is None:
                path.pop()
                choices.pop()
            elif node < 0:
                yield path[::-1]
            else:
                path.append(node)
                choices.append(self._choices(node, limit))

    def _choices(self, node: int, limit: int) -> Iterator[int]:
        """Yield −1 if a match may begin with the node, then its predecessors on paths that begin at `limit` or later."""
        if self.begins_at[node] >= limit:
            yield -1
        for place in range(self.offsets[node], self.offsets[node + 1]):
            for before in range(self.last[place], self.first[place] - 1, -1):
                if self.reach[before] < limit:
                    break
                if self.latest[before] >= limit:
                    yield before


class _Node(NamedTuple):
    """A node, as the counting pass sees it; numbers of paths are kept in a vector.

    `start`: whether a match begins with it. `end`: whether one ends with it.
    `sources`: the entries of the vector that hold the paths to its predecessors.
    `target`: the entry to which its own paths are added.
    """

    start: bool
    sources: list[int]
    target: int
    end: bool


class _Event(NamedTuple):
    """The nodes of one event.

    `moved`: whether its time differs from that of the event before.
    `earliest`: the first event at which a match that ends here may begin; −1 if none ends here.
    """

    number: int
    moved: bool
    earliest: int
    nodes: list[_Node]


def count_paths(graph: PathGraph) -> int:
    """Return the number of matches.

    One pass over the events carries a vector of numbers of paths, with two entries for each group g.
    Entry g counts the paths to nodes of earlier times, entry `groups` + g those of the current time.
    Entry 2 `groups` counts the matches.
    """
    in_trees = graph.group < 0
    total = int(np.count_nonzero(graph.earliest[in_trees] >= 0))
    if len(np.unique(graph.group)) > _MOST_GROUPS:
        shared = shared_cells(graph)
        return total + sum(sum_paths(shared.cells, shared.ends))
    order = np.lexsort([graph.group, graph.event, graph.stream])
    order = order[~in_trees[order]]
    borders = np.flatnonzero(np.diff(graph.stream[order])) + 1
    lists = _Lists.of(graph)
    return total + sum(_count_stream(lists, nodes.tolist()) for nodes in np.split(order, borders) if len(nodes))


class SharedCells(NamedTuple):
    """The sums that nodes share, and the end nodes outside of trees.

    `ends`: each with the first event at which its paths may begin, by stream, in ascending order of these events.
    ``group_first[n]`` is the first node of n's group.
    """

    cells: PathCells
    ends: list[tuple[int, int]]
    group_first: Ints


def shared_cells(graph: PathGraph) -> SharedCells:
    """Return how the paths of a graph are counted by shared sums."""
    group_first = first_of_groups(graph)
    cells = path_cells(graph, group_first)
    ends = np.flatnonzero((graph.group >= 0) & (graph.earliest >= 0))
    ends = ends[np.lexsort([graph.earliest[ends], graph.stream[ends]])]
    return SharedCells(cells, list(zip(ends.tolist(), graph.earliest[ends].tolist(), strict=True)), group_first)


def path_in_tree(graph: PathGraph, end: int) -> list[int]:
    """Return the nodes of the only match that ends with a node of a tree."""
    return next(_Walk.over(graph).back_from(end, int(graph.earliest[end])))


@dataclass(frozen=True, slots=True)
class _Lists:
    """The graph's arrays as lists, with three facts about each range of predecessors.

    `range_group`: the group of its nodes.
    `earlier`: whether it holds nodes of earlier times.
    `current`: whether it holds nodes of the current time.
    """

    group: list[int]
    event: list[int]
    moment: list[int]
    start: list[bool]
    earliest: list[int]
    offsets: list[int]
    range_group: list[int]
    earlier: list[bool]
    current: list[bool]

    @classmethod
    def of(cls, graph: PathGraph) -> _Lists:
        """Return a graph's arrays as lists, with the facts about ranges."""
        moment = graph.moment[np.repeat(np.arange(len(graph.event)), np.diff(graph.range_offsets))]
        earlier, current = graph.moment[graph.range_first] < moment, graph.moment[graph.range_last] == moment
        nodes = graph.group, graph.event, graph.moment, graph.start, graph.earliest
        return cls(*(array.tolist() for array in (*nodes, graph.range_offsets, graph.group[graph.range_last], earlier, current)))


def _count_stream(lists: _Lists, nodes: Sequence[int]) -> int:
    groups = {group: place for place, group in enumerate({lists.group[n] for n in nodes})}
    events = _events(lists, nodes, groups)
    first = next((event.number for event in events if any(node.start for node in event.nodes)), 0)
    cut = any(event.earliest > first for event in events)
    return _count_sliding(events, len(groups)) if cut else _count_all(events, len(groups))


def _events(lists: _Lists, nodes: Sequence[int], groups: dict[int, int]) -> list[_Event]:
    """Return the nodes of a stream, event by event."""
    events: list[_Event] = []
    moment = -1
    for n in nodes:
        number, earliest = lists.event[n], lists.earliest[n]
        if not events or events[-1].number != number:
            events.append(_Event(number, lists.moment[n] != moment, earliest, []))
        elif earliest >= 0:
            events[-1] = events[-1]._replace(earliest=earliest)
        moment = lists.moment[n]
        node = _Node(lists.start[n], _sources(lists, n, groups), len(groups) + groups[lists.group[n]], earliest >= 0)
        events[-1].nodes.append(node)
    return events


def _sources(lists: _Lists, n: int, groups: dict[int, int]) -> list[int]:
    """Return the entries of the vector that hold the paths to a node's predecessors."""
    found = []
    for place in range(lists.offsets[n], lists.offsets[n + 1]):
        group = groups[lists.range_group[place]]
        if lists.earlier[place]:
            found.append(group)
        if lists.current[place]:
            found.append(len(groups) + group)
    return found


def _count_all(events: Sequence[_Event], groups: int) -> int:
    """Return the number of matches of a stream whose windows cut no path, in one pass."""
    paths = [0] * (2 * groups)
    total = 0
    for event in events:
        if event.moved:
            _settle(paths, groups)
        added = [(node, int(node.start) + sum(paths[c] for c in node.sources)) for node in event.nodes]
        for node, number in added:
            paths[node.target] += number
            total += number if node.end else 0
    return total


def _settle(paths: list[int], groups: int) -> None:
    """Add the numbers of paths that end at the current time to those that end earlier, as the time advances."""
    for g in range(groups):
        if paths[groups + g]:
            paths[g] += paths[groups + g]
            paths[groups + g] = 0


def _count_sliding(events: Sequence[_Event], groups: int) -> int:
    """Return the number of matches of a stream whose windows cut paths.

    Each event is a matrix that updates the vector of numbers. A window multiplies the matrices of its
    events. That product is split at a boundary, so that windows share the factors on either side.
    """
    starts = [place for place, event in enumerate(events) if any(node.start for node in event.nodes)]
    ends = _window_ends(events, starts)
    total = 0
    low = 0
    while low < len(starts):
        high = low + 1
        while high < min(len(starts), low + _ROWS) and starts[high] < ends[low]:
            high += 1
        boundary = min(ends[low], starts[high]) if high < len(starts) else ends[low]
        rows = _rows_before(events[starts[low] : boundary], groups)
        total += _count_behind(events, boundary, ends[low:high], rows, groups)
        low = high
    return total


def _window_ends(events: Sequence[_Event], starts: Sequence[int]) -> list[int]:
    """Return, for each start, the position behind the last event that can end one of its matches."""
    lasts = [place for place, event in enumerate(events) if event.earliest >= 0]
    earliest = [events[place].earliest for place in lasts]
    found = []
    for start in starts:
        behind = bisect_right(earliest, events[start].number)
        found.append(max(start, lasts[behind - 1] if behind else 0) + 1)
    return found


def _rows_before(events: Sequence[_Event], groups: int) -> list[Objects]:
    """Return a vector for each start among the events: the numbers of its paths after the last event."""
    ways = np.eye(2 * groups + 1, dtype=object)
    rows = []
    for event in reversed(events):
        gains = [ways[node.target] + (ways[2 * groups] if node.end else 0) for node in event.nodes]
        begun = [gain for node, gain in zip(event.nodes, gains, strict=True) if node.start]
        if begun:
            rows.append(sum(begun[1:], begun[0]))
        for node, gain in zip(event.nodes, gains, strict=True):
            for c in node.sources:
                ways[c] = ways[c] + gain
        if event.moved:
            ways[groups : 2 * groups] = ways[:groups]
    return rows[::-1]


def _count_behind(events: Sequence[_Event], boundary: int, ends: Sequence[int], rows: Sequence[Objects], groups: int) -> int:
    """Return the number of matches of several starts.

    ``rows[i]`` are the numbers of start i's paths at the boundary, and ``ends[i]`` is the end of its window.
    """
    ways = np.eye(2 * groups + 1, dtype=object)
    total = 0
    place = boundary
    for row, end in zip(rows, ends, strict=True):
        for event in events[place:end]:
            _extend(ways, event, groups)
        place = max(place, end)
        total += int((row * ways[2 * groups]).sum())
    return total


def _extend(ways: Objects, event: _Event, groups: int) -> None:
    """Update `ways` by one event; ``ways[c, d]`` is the number of ways from entry c to entry d."""
    if event.moved:
        ways[:groups] += ways[groups : 2 * groups]
        ways[groups : 2 * groups] = 0
    added = [(node, ways[node.sources].sum(axis=0)) for node in event.nodes]
    for node, number in added:
        ways[node.target] = ways[node.target] + number
        if node.end:
            ways[2 * groups] = ways[2 * groups] + number
