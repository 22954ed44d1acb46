"""Hold the graph of matches whose paths are enumerated, counted and drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.rules.tables import Ints


@dataclass(frozen=True, slots=True)
class PathGraph:
    """The nodes of several streams, as in :class:`gpu_cep.engine.compressed.graph.Graph`.

    `stream`: the number of each node's stream. Event numbers are unique within a stream.
    `moment`: a number that grows with the time of the node's event.
    """

    stream: Ints
    group: Ints
    event: Ints
    moment: Ints
    range_offsets: Ints
    range_first: Ints
    range_last: Ints
    start: npt.NDArray[np.bool_]
    latest: Ints
    earliest: Ints


def first_of_groups(graph: PathGraph) -> Ints:
    """Return for each node the first node of its group."""
    borders = np.concatenate([[True], _group_changes(graph)])
    firsts: Ints = np.flatnonzero(borders)[np.cumsum(borders) - 1]
    return firsts


def reach_of_groups(graph: PathGraph) -> Ints:
    """Return for each node the latest start of the nodes up to it in its group."""
    reach = graph.latest.copy()
    borders = np.flatnonzero(_group_changes(graph)) + 1
    for low, high in zip([0, *borders.tolist()], [*borders.tolist(), len(reach)], strict=True):
        np.maximum.accumulate(reach[low:high], out=reach[low:high])
    return reach


def _group_changes(graph: PathGraph) -> npt.NDArray[np.bool_]:
    """Return for each node but the last whether another group begins behind it."""
    changes: npt.NDArray[np.bool_] = (np.diff(graph.group) != 0) | (np.diff(graph.stream) != 0)
    return changes
