"""Turn the labels of a pack's events into a byte for each variable: a label has a bit per variable, the byte a bit per event.

A *block* is a uint64 of eight bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.scalars import count_bits

BYTE = 8
_LOWEST_BITS, _OTHER_BITS, _ALL_BITS = 0x0101010101010101, 0x7F7F7F7F7F7F7F7F, 0xFFFFFFFFFFFFFFFF


@rule
def label_width(labels: Any) -> int:
    """Return how many bits a label of a word's type has."""
    return count_bits(np.uint64(labels.dtype.type(~labels.dtype.type(0))))


@rule
def byte_of(word: Any, place: int) -> Any:
    """Return the byte of a word from bit `place` on, as a uint64."""
    return (np.uint64(word) >> np.uint64(place)) & np.uint64(0xFF)


@rule
def labels_of(first: int, count: int, labels: Any) -> Any:
    """Return the labels of eight events from `first` on; from `count` on they are 0."""
    none = labels.dtype.type(0)
    return (
        labels[first] if count > 0 else none, labels[first + 1] if count > 1 else none,
        labels[first + 2] if count > 2 else none, labels[first + 3] if count > 3 else none,
        labels[first + 4] if count > 4 else none, labels[first + 5] if count > 5 else none,
        labels[first + 6] if count > 6 else none, labels[first + 7] if count > 7 else none,
    )  # fmt: skip


@rule
def label_block(place: int, labels: Any) -> Any:
    """Return a block: byte k is that of label k of eight from bit `place` on."""
    first, second, third, fourth, fifth, sixth, seventh, eighth = labels
    low = byte_of(first, place) | (byte_of(second, place) << np.uint64(8)) | (byte_of(third, place) << np.uint64(16))
    low |= byte_of(fourth, place) << np.uint64(24)
    high = byte_of(fifth, place) | (byte_of(sixth, place) << np.uint64(8)) | (byte_of(seventh, place) << np.uint64(16))
    high |= byte_of(eighth, place) << np.uint64(24)
    return low | (high << np.uint64(32))


@rule
def transposed(block: Any) -> Any:
    """Return a block with bit k of byte v where the given one has bit v of byte k (Warren 2012, *Hacker's Delight*, section 7-3)."""
    swapped = (block ^ (block >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    block = block ^ swapped ^ (swapped << np.uint64(7))
    swapped = (block ^ (block >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    block = block ^ swapped ^ (swapped << np.uint64(14))
    swapped = (block ^ (block >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return block ^ swapped ^ (swapped << np.uint64(28))


@rule
def nonzero_bytes(block: Any) -> Any:
    """Return a byte whose bit k is set if byte k of a block is not 0."""
    carried = (block & np.uint64(_OTHER_BITS)) + np.uint64(_OTHER_BITS)
    flags = ((carried | block) >> np.uint64(7)) & np.uint64(_LOWEST_BITS)
    flags |= flags >> np.uint64(7)
    flags |= flags >> np.uint64(14)
    flags |= flags >> np.uint64(28)
    return flags & np.uint64(0xFF)


@rule
def nonzero_lanes(block: Any, width: int) -> Any:
    """Return bits of which bit k is set if lane k of a block is not 0; a lane has `width` bits, a divisor of 64."""
    flags, lane = np.uint64(0), np.uint64(_ALL_BITS) >> np.uint64(64 - width)
    for k in range(64 // width):
        flags |= np.uint64((block >> np.uint64(k * width)) & lane != 0) << np.uint64(k)
    return flags


@rule
def repeated(byte: Any) -> Any:
    """Return a block of which each byte is the given one."""
    return byte * np.uint64(_LOWEST_BITS)
