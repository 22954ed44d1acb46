"""Count the paths of a graph with many groups, by sums that nodes share.

Cell 2n counts the paths to node n. Cell 2n + 1 adds the paths to the nodes before n in its group.
A sum is computed when an end node needs it, and kept while all its paths start in the window.
It is computed again once the earliest of these starts has left the window.
Numbers are Python integers of any size (see :mod:`gpu_cep_kernels.nfab.buffer_counts`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.compressed.path_graph import PathGraph, reach_of_groups
from gpu_cep_kernels.rules.tables import Ints

# A position behind all events.
_NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class PathCells:
    """How each cell's number of paths is computed from those of other cells.

    `parts`: the cells whose numbers are added (sign 1) or subtracted (sign −1).
    `begins`: the event of the path that begins and ends at the cell's node; −1 if there is none.
    `latest`: the latest event at which a path to the cell begins.
    `same`: the cell that has the same paths and is counted instead; itself if there is none.
    """

    parts: list[list[tuple[int, int]]]
    begins: list[int]
    latest: list[int]
    same: list[int]


def path_cells(graph: PathGraph, group_first: Ints) -> PathCells:
    """Return the cells of a graph's nodes; ``group_first[n]`` is the first node of n's group."""
    number = len(graph.event)
    parts: list[list[tuple[int, int]]] = [[] for _ in range(2 * number)]
    groups, begins = group_first.tolist(), graph.start.tolist()
    lows, highs, places = graph.range_first.tolist(), graph.range_last.tolist(), graph.range_offsets.tolist()
    same = list(range(2 * number))
    for n in np.argsort(graph.event, kind="stable").tolist():
        for k in range(places[n], places[n + 1]):
            parts[2 * n].append((same[2 * highs[k] + 1], 1))
            if lows[k] > groups[highs[k]]:
                parts[2 * n].append((same[2 * lows[k] - 1], -1))
        if len(parts[2 * n]) == 1 and not begins[n]:
            same[2 * n] = parts[2 * n][0][0]
        parts[2 * n + 1] = [(same[2 * n], 1), *([(same[2 * n - 1], 1)] if n > groups[n] else [])]
        if n == groups[n]:
            same[2 * n + 1] = same[2 * n]
    own = np.full(2 * number, -1)
    own[::2] = np.where(graph.start, graph.event, -1)
    latest = np.stack([graph.latest, reach_of_groups(graph)], axis=1).ravel()
    return PathCells(parts, own.tolist(), latest.tolist(), same)


@dataclass(frozen=True, slots=True)
class PathCounts:
    """The numbers of paths of cells, each computed when it is asked for, and kept while it is right.

    ``paths[c]`` is the number of paths of cell c, the earliest of which begins at event ``first_start[c]``.
    """

    cells: PathCells
    paths: list[int]
    first_start: list[int]

    @classmethod
    def of(cls, cells: PathCells) -> PathCounts:
        """Return numbers of which none is computed yet."""
        return cls(cells, [0] * len(cells.parts), [-1] * len(cells.parts))

    def count(self, cell: int, earliest: int) -> int:
        """Return the number of paths to a cell that begin at event `earliest` or later.

        For cells of one stream `earliest` must not fall from call to call.
        """
        cells, paths, first_start = self.cells, self.paths, self.first_start
        wanted = cells.same[cell]
        if cells.latest[cell] < earliest:
            return 0
        stack = [wanted]
        while stack:
            cell = stack[-1]
            counted = [part for part in cells.parts[cell] if cells.latest[part[0]] >= earliest]
            missing = [part for part, _ in counted if first_start[part] < earliest] if first_start[cell] < earliest else []
            stack.extend(missing)
            if not missing:
                stack.pop()
                if first_start[cell] < earliest:
                    begins = cells.begins[cell] >= earliest
                    paths[cell] = begins + sum(sign * paths[part] for part, sign in counted)
                    starts = [first_start[part] for part, _ in counted]
                    first_start[cell] = min([*starts, cells.begins[cell] if begins else _NEVER])
        return paths[wanted]


def sum_paths(cells: PathCells, ends: list[tuple[int, int]]) -> list[int]:
    """Return the number of matches that end at each of `ends`.

    Each entry is an end node and the first event at which its paths may begin, in ascending order.
    """
    sums = PathCounts.of(cells)
    return [sums.count(2 * node, earliest) for node, earliest in ends]
