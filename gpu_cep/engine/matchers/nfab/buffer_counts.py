"""Counting on the buffer of NFA^b without reading matches off it, where nothing but their paths and windows decides them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import Places
from gpu_cep.engine.windows.state_counts import sum_of
from gpu_cep_kernels.nfab.buffer_counts import (
    NODE,
    STEPS_MADE,
    StreamTotals,
    count_buffer,
    merge_cells,
    new_stack,
    new_sums,
    new_totals,
    raise_stack,
)
from gpu_cep_kernels.nfab.buffer_paths import last_starts
from gpu_cep_kernels.nfab.match_buffer import MatchBuffer, MatchEnds
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import FINISHED, PATH_FULL

# Sums made between two returns to Python, and those that there is room for on the way to one at first.
_STEPS_PER_CALL = 1 << 21
_HEIGHT = 1 << 10

# Accounts for matches found and steps made; the third says at which event of the batch match i of these starts, as spend() has it.
Spend = Callable[[int, int, Callable[[int], int]], None]


def decided_by_paths(search: Search) -> bool:
    """Whether every path of the buffer that begins in its window is a match: no negation, and no condition that only the end decides."""
    return not len(search.tables.conditions.final) and not len(search.negations.variable)


def counted_on_buffer(
    buffer: MatchBuffer, ends: MatchEnds, nodes: int, number: int, earliest: Indices, stream_end: Places, streams: int, spend: Spend
) -> tuple[Indices, Indices]:
    """The first start of a match in each stream that has one, and the number of its matches.

    The buffer has so many `nodes`, a `number` of ends, and events of so many
    `streams`. The greatest int64 stands for itself and all that is greater.
    """
    last_start = last_starts(nodes, number, buffer, ends)
    sums, stack, totals = new_sums(nodes), new_stack(_HEIGHT), new_totals(streams)
    merge_cells(buffer, sums.same)
    status, spent, steps = PATH_FULL, 0, 0
    while status != FINISHED:
        status = count_buffer(earliest, stream_end, last_start, _STEPS_PER_CALL, buffer, sums, stack, totals)
        counted = sum_of(totals.matches)
        # where the count stands, unless it has finished
        current = int(earliest[buffer.event[min(int(stack.state[NODE]), nodes - 1)]]) if nodes else 0
        spend(counted - spent, int(stack.state[STEPS_MADE]) - steps, _starts_of(totals, spent, counted, current))
        spent, steps = counted, int(stack.state[STEPS_MADE])
        if status == PATH_FULL:
            stack = raise_stack(stack)
    matched = totals.matches > 0
    return totals.first_start[matched], totals.matches[matched]


def _starts_of(totals: StreamTotals, spent: int, counted: int, current: int) -> Callable[[int], int]:
    """Says for match i behind the first `spent` where the matches of its stream begin; for those behind `counted`, the current window."""

    def start_of(match: int) -> int:
        through = np.cumsum(totals.matches, dtype=np.float64)
        stream = int(np.searchsorted(through, spent + match, side="right"))
        known = spent + match < counted and stream < len(through) and totals.first_start[stream] < UNBOUNDED
        return int(totals.first_start[stream]) if known else current

    return start_of
