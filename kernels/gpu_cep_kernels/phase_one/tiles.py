"""Divide a card's events into tiles, which one thread passes over, and tiles into groups.

What is counted or found for an event depends on the tiles before or behind its own. So a pass over
tiles summarises each. A second pass folds the summaries of a group, in place, and summarises the
group. There are few groups: the host carries their results from group to group. A last pass over
events then knows what came before, or comes behind, and looks at the event's own tile besides
(Blelloch 1990, *Prefix sums and their applications*).
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import rule

# Events per tile, and tiles per group. Threads side by side read tiles side by side, so long ones miss a card's nearest cache.
TILE, GROUP = 16, 64


@rule
def end_of(tile: int, size: int) -> int:
    """Return the event behind the last one of a tile, where there are `size` events."""
    return min((tile + 1) * TILE, size)


@rule
def end_of_group(group: int, tiles: int) -> int:
    """Return the tile behind the last one of a group, where there are so many tiles."""
    return min((group + 1) * GROUP, tiles)


@rule
def has_bits(labels: Any, event: int, wanted: Any) -> bool:
    """Whether an event's label, a column of ``labels[word, event]``, has one of the bits ``wanted[word]``."""
    found = False
    for w in range(labels.shape[0]):
        found |= (labels[w, event] & wanted[w]) != 0
    return found
