"""Paths of a graph of many groups, counted by sums that they have in common: as on the buffer of NFA^b, with numbers of any size.

Cell 2n counts the paths to node n, cell 2n + 1 those to n and to the nodes
before it in its group. A sum holds for all windows that hold the earliest
start of its paths; it is made when an end asks for it, and made again when
that start has left the window (see :mod:`gpu_cep_kernels.nfab.buffer_counts`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# Behind all events.
_NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class PathCells:
    """Cell c is the sum of the cells of ``parts[c]``, each added (1) or taken away (−1), and of a path that begins and ends there.

    That begins at event ``begins[c]``, or there is none (−1). Paths to cell c begin at ``latest[c]`` or earlier. Cell ``same[c]`` has the
    paths of c, and is counted in its place.
    """

    parts: list[list[tuple[int, int]]]
    begins: list[int]
    latest: list[int]
    same: list[int]


def path_cells(
    group_first: Ints, event: Ints, start: npt.NDArray[np.bool_], latest: Ints, reach: Ints, offsets: Ints, first: Ints, last: Ints
) -> PathCells:
    """Return the cells of nodes whose groups begin at the nodes ``group_first[n]``, and whose predecessors are ranges as in a graph."""
    number = len(event)
    parts: list[list[tuple[int, int]]] = [[] for _ in range(2 * number)]
    groups, begins = group_first.tolist(), start.tolist()
    lows, highs, places = first.tolist(), last.tolist(), offsets.tolist()
    same = list(range(2 * number))
    for n in np.argsort(event, kind="stable").tolist():
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
    own[::2] = np.where(start, event, -1)
    return PathCells(parts, own.tolist(), np.stack([latest, reach], axis=1).ravel().tolist(), same)


def sum_paths(cells: PathCells, ends: list[tuple[int, int]]) -> int:
    """Return the number of paths to the nodes of `ends` that begin at the event beside each node or later; these events ascend."""
    paths, first_start = [0] * len(cells.parts), [-1] * len(cells.parts)
    total = 0
    for node, earliest in ends:
        stack = [cells.same[2 * node]]
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
        total += paths[cells.same[2 * node]]
    return total
