"""Divide a card's events into packs, packs into tiles, and tiles into groups; a bit per event says what holds for it.

What is counted or found for an event depends on the tiles before or behind its own. So a pass over
packs writes a byte of bits for each; those of a tile are one word. A second pass folds the words of
a group's tiles, and summarises the group. There are few groups: the host carries their results from
group to group. A last pass over events then knows what came before, or comes behind, and counts in
the word of the event's own tile besides (Blelloch 1990, *Prefix sums and their applications*).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.compile.operations import count_ones

# Events per pack, whose bits are a byte; events per tile, whose bits are a uint32; and tiles per group.
PACK, TILE, GROUP = 8, 32, 32
# No event of a tile, or of the tiles behind it.
NOWHERE = int(np.iinfo(np.int32).max)


@rule
def end_of_group(group: int, tiles: int) -> int:
    """Return the tile behind the last one of a group, where there are so many tiles."""
    return min((group + 1) * GROUP, tiles)


@rule
def tile_of(event: int) -> int:
    """Return the tile of an event, whose number is an int32."""
    # unsigned, so that the division is a shift
    return np.int64(np.uint32(event) // np.uint32(TILE))  # type: ignore[return-value]


@rule
def group_of(event: int) -> int:
    """Return the group of an event, whose number is an int32."""
    return np.int64(np.uint32(event) // np.uint32(TILE * GROUP))  # type: ignore[return-value]


@rule
def place_of(event: int) -> int:
    """Return the place of an event in its tile, from 0."""
    return event & (TILE - 1)


@rule
def has_bit(word: Any, place: int) -> bool:
    """Return whether the bit of a place is set in a tile's word."""
    return np.uint32(word >> np.uint32(place)) & np.uint32(1) != 0


@rule
def first_place(word: Any) -> int:
    """Return the place of the lowest bit of a uint32 that is set; 32 if none is."""
    return count_ones(np.uint32((word - np.uint32(1)) & ~word))


@rule
def count_words(bits: Any, first: int, end: int) -> int:
    """Return how many bits of the words [first, end) are set."""
    # no range: on a card its iterator takes more instructions than the rest
    number, t = 0, first
    while t < end:
        number += count_ones(bits[t])
        t += 1
    return number


@rule
def bits_before(word: Any, place: int) -> int:
    """Return how many bits of a tile's word are set before a place."""
    return count_ones(np.uint32(word & np.uint32((np.uint32(1) << np.uint32(place)) - np.uint32(1))))
