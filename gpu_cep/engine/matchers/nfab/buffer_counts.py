"""Count matches on the buffer of NFA^b, where every path in its window is a match."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.matchers.search import Search, entry_of_match
from gpu_cep.engine.windows.state_counts import sum_counts
from gpu_cep_kernels.nfab.buffer_counts import (
    StackState,
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
from gpu_cep_kernels.rules.tables import Places, Status

# Sums that are made between two returns to Python.
_STEPS_PER_CALL = 1 << 21
# The depth of the stack of unfinished sums at first.
_HEIGHT = 1 << 10

# Accounts for matches and steps. The third argument gives the event at which match i of these starts.
Spend = Callable[[int, int, Callable[[int], int]], None]


class FilledBuffer(NamedTuple):
    """A buffer with room: its first `nodes` nodes are filled, and the first `end_count` of its ends."""

    buffer: MatchBuffer
    ends: MatchEnds
    nodes: int
    end_count: int


def every_path_matches(search: Search) -> bool:
    """Return whether every path of the buffer that begins in its window is a match.

    That is so if there is no negation, and no condition that only the end of a
    match decides.
    """
    return not len(search.tables.conditions.final) and not len(search.negations.variable)


def count_on_buffer(filled: FilledBuffer, earliest: Indices, stream_end: Places, streams: int, spend: Spend) -> StartCounts:
    """Return the number of matches of each stream that has any, at the first of their starts.

    ``earliest[e]`` is the first event whose window holds event e.
    ``stream_end[e]`` is the end of its stream. The batch has events of so many
    `streams`. The greatest int64 stands for all larger numbers.
    """
    buffer, _, nodes, _ = filled
    last_start = last_starts(nodes, filled.end_count, buffer, filled.ends)
    sums, stack, totals = new_sums(nodes), new_stack(_HEIGHT), new_totals(streams)
    merge_cells(buffer, sums.same)
    status, spent, steps = Status.PATH_FULL, 0, 0
    while status != Status.FINISHED:
        status = count_buffer(earliest, stream_end, last_start, _STEPS_PER_CALL, buffer, sums, stack, totals)
        counted = sum_counts(totals.matches)
        # where the count stands, unless it has finished
        current = int(earliest[buffer.event[min(int(stack.state[StackState.NODE]), nodes - 1)]]) if nodes else 0
        spend(counted - spent, int(stack.state[StackState.STEPS]) - steps, _start_lookup(totals, spent, counted, current))
        spent, steps = counted, int(stack.state[StackState.STEPS])
        if status == Status.PATH_FULL:
            stack = raise_stack(stack)
    matched = totals.matches > 0
    return StartCounts(totals.first_start[matched], totals.matches[matched])


def _start_lookup(totals: StreamTotals, spent: int, counted: int, current: int) -> Callable[[int], int]:
    """Return a function of i that returns the first start in the stream of match `spent` + i.

    It returns `current` for matches that are not counted yet.
    """

    def start_of(match: int) -> int:
        stream = entry_of_match(totals.matches, spent + match)
        known = spent + match < counted and stream < len(totals.matches) and totals.first_start[stream] < UNBOUNDED
        return int(totals.first_start[stream]) if known else current

    return start_of
