"""Draw paths of a graph, all with the same probability, without enumerating any other.

A path has a number: those of an end node follow one another, and so do those that reach it by the
same predecessor. Numbers are drawn, and the path of a number is found by sums that nodes share.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from random import Random

import numpy as np

from gpu_cep.engine.compressed.path_graph import PathGraph
from gpu_cep.engine.compressed.path_sums import PathCounts, sum_paths
from gpu_cep.engine.compressed.paths import SharedCells, path_in_tree, shared_cells

# Numbers are drawn one by one until they differ, if at most this share of all is asked for.
_SPARSE = 2


def sample_paths(graph: PathGraph, number: int, seed: int) -> Iterator[list[int]]:
    """Yield the nodes of so many different matches, or of all if there are fewer; every set of that size is as likely."""
    trees = np.flatnonzero((graph.group < 0) & (graph.earliest >= 0)).tolist()
    shared = shared_cells(graph)
    before = [0, *accumulate(sum_paths(shared.cells, shared.ends))]
    sums = PathCounts.of(shared.cells)
    for drawn in _distinct(before[-1] + len(trees), number, Random(seed)):
        if drawn >= before[-1]:
            yield path_in_tree(graph, trees[drawn - before[-1]])
        else:
            end = bisect_right(before, drawn) - 1
            yield _path_of_number(graph, shared, sums, *shared.ends[end], drawn - before[end])


def _distinct(total: int, number: int, random: Random) -> list[int]:
    """Return so many different numbers below `total`, ascending, or all of them."""
    if number >= total:
        return list(range(total))
    if _SPARSE * number >= total:
        return sorted(random.sample(range(total), number))
    drawn: set[int] = set()
    while len(drawn) < number:
        drawn.add(random.randrange(total))
    return sorted(drawn)


def _path_of_number(graph: PathGraph, shared: SharedCells, sums: PathCounts, node: int, earliest: int, number: int) -> list[int]:
    """Return the path with a number among those that end with a node and begin at event `earliest` or later."""
    path = [node]
    while True:
        if graph.start[node] and graph.event[node] >= earliest:
            if number == 0:
                return path[::-1]
            number -= 1
        node, number = _predecessor(graph, shared, sums, node, earliest, number)
        path.append(node)


def _predecessor(graph: PathGraph, shared: SharedCells, sums: PathCounts, node: int, earliest: int, number: int) -> tuple[int, int]:
    """Return the predecessor by which a path with a number reaches a node, and the path's number among those to it."""

    def up_to(before: int, first: int) -> int:
        """Return the number of paths to the nodes of a group from its first one to `before`."""
        return sums.count(2 * before + 1, earliest) if before >= first else 0

    for place in range(graph.range_offsets[node], graph.range_offsets[node + 1]):
        low, high = int(graph.range_first[place]), int(graph.range_last[place])
        first = int(shared.group_first[high])
        base = up_to(low - 1, first)
        inside = up_to(high, first) - base
        if number < inside:
            found = low + bisect_right(range(low, high + 1), number, key=lambda before: up_to(before, first) - base)
            return found, number - (up_to(found - 1, first) - base)
        number -= inside
    raise AssertionError("a number is below the number of paths")
