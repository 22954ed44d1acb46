"""Cut long partitions into pieces, so that threads can share them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep_kernels.row_patterns.tables import PartitionPieces

# The least number of rows for which a thread is worth its cuts.
_LEAST = 1 << 16
# A cut this near to the border of a partition is left out, as a share of a thread's rows.
_NEAR = 1 / 16


class CutPieces(NamedTuple):
    """Hold the pieces of partitions that are cut, without those of others; `numbers` are theirs among all pieces."""

    numbers: Indices
    pieces: PartitionPieces


def cut_partitions(offsets: Indices, threads: int) -> PartitionPieces:
    """Return the partitions, cut where the rows of one thread would end and no border of a partition is near."""
    length = int(offsets[-1])
    cuts = np.empty(0, np.int64)
    if threads > 1 and length >= _LEAST:
        cuts = np.linspace(0, length, threads + 1).astype(np.int64)[1:-1]
        behind = np.searchsorted(offsets, cuts)
        distance = np.minimum(offsets[behind] - cuts, cuts - offsets[behind - 1])
        cuts = cuts[distance > length / threads * _NEAR]
    if not cuts.size:
        return PartitionPieces(offsets, offsets[:-1], offsets[1:])
    return pieces_between(np.union1d(offsets, cuts), offsets)


def pieces_between(cuts: Indices, offsets: Indices) -> PartitionPieces:
    """Return the pieces from each of some ascending rows to the next one; no border of a partition lies between two."""
    owners = np.searchsorted(offsets, cuts[:-1], "right") - 1
    return PartitionPieces(cuts, offsets[owners], offsets[owners + 1])


def short_pieces(offsets: Indices, rows: int) -> PartitionPieces:
    """Return the partitions, cut into pieces of so many rows; the last piece of each may have fewer."""
    counts = -(-np.diff(offsets) // rows)
    owners = np.repeat(np.arange(len(counts)), counts)
    begins = offsets[owners]
    inside = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return PartitionPieces(np.append(begins + rows * inside, offsets[-1]), begins, offsets[owners + 1])


def cut_pieces(pieces: PartitionPieces) -> CutPieces:
    """Return the pieces of partitions that are cut."""
    numbers = np.flatnonzero((pieces.offsets[:-1] > pieces.begins) | (pieces.offsets[1:] < pieces.ends))
    begins, ends = pieces.begins[numbers], pieces.ends[numbers]
    return CutPieces(numbers, PartitionPieces(np.append(pieces.offsets[numbers], ends[-1:]), begins, ends))


def is_cut(pieces: PartitionPieces) -> bool:
    """Return whether a partition is cut."""
    return bool((pieces.offsets[1:] < pieces.ends).any())
