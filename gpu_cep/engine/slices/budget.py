"""Decide whether files are read at once or in slices of time, by the memory that there is."""

from __future__ import annotations

from typing import NamedTuple

from gpu_cep.engine.accounting.host_memory import free_memory
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.row_groups import RowGroups
from gpu_cep.engine.input.time_cut import Most, Reach, TimeCut, cut_by_budget

# Share of the free memory that events may take if the caller does not say how much.
SHARE = 0.5
# Bytes at the peak for each byte of events: events that are read at once, or of a slice, beside which the next one is read.
AT_ONCE, IN_SLICES = 3, 4
# The most rows that slices may read together, for each row that there is.
MOST_OVERLAP = 3.0
# Bytes of events in a slice that is worked on quickly: its arrays are allocated anew from memory that was just given back.
# If slices of this size read more than so many rows for each row, larger ones are taken.
QUICK, LITTLE_OVERLAP = 1 << 26, 1.15


class Choice(NamedTuple):
    """How files are read: in the slices of `cut`, or at once (None). `needed`: the bytes that this takes at the peak."""

    cut: TimeCut | None
    needed: int


def choose_cut(files: GroupedFiles, reach: Reach, memory: int | None) -> Choice:
    """Return how files are to be read within `memory` bytes; None stands for a share of what is free."""
    groups = files.groups
    allowed = int(SHARE * free_memory()) if memory is None else memory
    needed = AT_ONCE * bytes_of(groups)
    if needed <= allowed:
        return Choice(None, needed)
    cut = _quick_cut(groups, reach, allowed // IN_SLICES)
    return Choice(cut, IN_SLICES * cut.largest) if cut.overlap <= MOST_OVERLAP else Choice(None, needed)


def _quick_cut(groups: RowGroups, reach: Reach, most: int) -> TimeCut:
    """Return slices of at most so many bytes: small ones, or larger ones if these overlap less."""
    size = min(QUICK, most)
    cut = cut_by_budget(groups, reach, Most(size))
    while cut.overlap > LITTLE_OVERLAP and size < most:
        size = min(2 * size, most)
        cut = cut_by_budget(groups, reach, Most(size))
    return cut


def bytes_of(groups: RowGroups) -> int:
    """Return the bytes that row groups take in memory."""
    return int(groups.size.sum())
