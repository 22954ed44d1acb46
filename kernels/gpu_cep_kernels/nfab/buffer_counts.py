"""Count matches on the shared buffer of NFA^b without reading them off: dynamic programming over its nodes.

A *cell* stands for a number of paths: cell 2n for the paths to node n, cell
2n + 1 for those to n and its siblings. The number of a cell is the sum of
those of the cells before it. It is kept with the earliest start that it
counts. It stays right in later windows that hold this start. Only a last start
that leaves out other paths changes it, too. Windows are taken by ascending
start. So a sum is mostly made again only when one of its starts has left the
window.

Only cells on a path to an end are counted. So no more is done than reading
all paths would take. Where all paths to a cell come through one other cell,
that one stands for it. So a run without branches costs no sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.labels_decide.counting import capped_sum
from gpu_cep_kernels.nfab.match_buffer import MatchBuffer
from gpu_cep_kernels.rules.path_arrays import double_rows
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Ints, Status


class PathSums(NamedTuple):
    """Hold the sums made so far; c is a cell.

    - same[c]: the cell that has the same paths and is counted in its place; often c itself.
    - paths[c]: how many paths it counts, at most ``UNBOUNDED``.
    - first_start[c]: the earliest start of them; −1 if not counted yet, ``UNBOUNDED`` if there are none.
    - last_start[c]: it counts paths that begin here or earlier.
    """

    same: Ints
    paths: Ints
    first_start: Ints
    last_start: Ints


class SumStack(NamedTuple):
    """Hold the cells whose sums are being made; the one at height d waits for the one above it.

    - cell[d]: the cell.
    - part[d]: what it adds next. Of an even cell: a link, or −1. Of an odd one:
      the even cell of its node (0), the siblings (1), or nothing (2).
    - paths[d]: how many paths it has summed.
    - first_start[d]: the earliest start of these.
    - state: numbers that StackState names.
    """

    cell: Ints
    part: Ints
    paths: Ints
    first_start: Ints
    state: Ints


class StreamTotals(NamedTuple):
    """Hold the totals of each stream in turn.

    - matches: how many there are, at most ``UNBOUNDED``.
    - first_start: the first event at which one begins.
    """

    matches: Ints
    first_start: Ints


class _StackState(NamedTuple):
    """Name the numbers in the state of a stack."""

    NODE: int = 0  # the next end node
    HEIGHT: int = 1  # how many cells are on the stack
    STEPS: int = 2  # how many steps were made
    STREAM: int = 3  # the current stream of the batch,
    STREAM_END: int = 4  # and where it ends


StackState = _StackState()


def new_sums(nodes: int) -> PathSums:
    """Return sums for so many nodes, none of them counted yet."""
    return PathSums(np.arange(2 * nodes), np.zeros(2 * nodes, np.int64), np.full(2 * nodes, -1), np.zeros(2 * nodes, np.int64))


def new_stack(height: int) -> SumStack:
    """Return an empty stack with room for so many cells."""
    state = np.zeros(len(StackState), np.int64)
    state[StackState.STREAM] = -1
    cell, part, paths, first_start = (np.zeros(height, np.int64) for _ in range(4))
    return SumStack(cell, part, paths, first_start, state)


def raise_stack(stack: SumStack) -> SumStack:
    """Return `stack` with room for twice as many cells."""
    return SumStack(double_rows(stack.cell), double_rows(stack.part), double_rows(stack.paths), double_rows(stack.first_start), stack.state)


def new_totals(streams: int) -> StreamTotals:
    """Return totals of zero matches for so many streams."""
    return StreamTotals(np.zeros(streams, np.int64), np.full(streams, UNBOUNDED))


@rule
def _latest(cell: int, buffer: MatchBuffer) -> int:
    """Return the latest start of the paths that a cell counts."""
    return int(buffer.latest[cell // 2] if cell % 2 == 0 else buffer.latest_of_run[cell // 2])


@rule
def _bound(cell: int, last: int, buffer: MatchBuffer) -> int:
    """Return `last` if some path of the cell begins later, and so is not counted, else ``UNBOUNDED``."""
    return last if last < _latest(cell, buffer) else UNBOUNDED


@rule
def _is_known(cell: int, first: int, last: int, buffer: MatchBuffer, sums: PathSums) -> bool:
    """Return whether the sum kept of a cell is the number of its paths that begin from `first` to `last`."""
    return bool(first <= sums.first_start[cell] and sums.last_start[cell] == _bound(cell, last, buffer))


@rule
def _counts(cell: int, first: int, last: int, buffer: MatchBuffer) -> bool:
    """Return whether a cell may have a path that begins from `first` to `last`."""
    return bool(_latest(cell, buffer) >= first and buffer.earliest_of_run[cell // 2] <= last)


@rule
def _push(cell: int, first: int, last: int, buffer: MatchBuffer, stack: SumStack) -> None:
    """Push a cell on the stack; its sum so far is the path that begins at its node, if one does."""
    d, n = stack.state[StackState.HEIGHT], cell // 2
    begins = cell % 2 == 0 and buffer.start[n] and first <= buffer.event[n] and buffer.event[n] <= last
    stack.cell[d] = cell
    stack.part[d] = buffer.link[n] if cell % 2 == 0 else 0
    stack.paths[d] = 1 if begins else 0
    stack.first_start[d] = buffer.event[n] if begins else UNBOUNDED
    stack.state[StackState.HEIGHT] = d + 1


@rule
def _part_of(d: int, buffer: MatchBuffer, stack: SumStack) -> int:
    """Return the cell that the sum at height d adds next; −1 if it has added all."""
    cell, part = stack.cell[d], stack.part[d]
    found = -1
    if cell % 2 == 0:
        found = 2 * buffer.node[part] + 1 if part >= 0 else -1
    elif part == 0:
        found = cell - 1
    elif part == 1:
        sibling = buffer.sibling[cell // 2]
        found = 2 * sibling + 1 if sibling >= 0 else -1
    return int(found)


@rule
def _pass_part(d: int, buffer: MatchBuffer, stack: SumStack) -> None:
    """Advance the sum at height d to its next part."""
    part = stack.part[d]
    stack.part[d] = buffer.next_link[part] if stack.cell[d] % 2 == 0 else part + 1


@rule
def _pop(last: int, buffer: MatchBuffer, sums: PathSums, stack: SumStack) -> None:
    """Store the finished sum of the cell on top, and pop it."""
    d = stack.state[StackState.HEIGHT] - 1
    cell = stack.cell[d]
    sums.paths[cell] = stack.paths[d]
    sums.first_start[cell] = stack.first_start[d]
    sums.last_start[cell] = _bound(cell, last, buffer)
    stack.state[StackState.HEIGHT] = d


@rule
def _advance(first: int, last: int, buffer: MatchBuffer, sums: PathSums, stack: SumStack) -> None:
    """Make one step of the sums on the stack, of the paths that begin from `first` to `last`."""
    d = stack.state[StackState.HEIGHT] - 1
    part = _part_of(d, buffer, stack)
    part = sums.same[part] if part >= 0 else part
    if part < 0:
        _pop(last, buffer, sums, stack)
    elif not _counts(part, first, last, buffer):
        _pass_part(d, buffer, stack)
    elif _is_known(part, first, last, buffer, sums):
        stack.paths[d] = capped_sum(stack.paths[d], sums.paths[part])
        stack.first_start[d] = min(stack.first_start[d], sums.first_start[part])
        _pass_part(d, buffer, stack)
    else:
        _push(part, first, last, buffer, stack)


@rule
def _enter_stream(event: int, stream_end: Any, state: Any) -> None:
    """Set the current stream to that of `event`; events ascend from call to call."""
    if event >= state[StackState.STREAM_END]:
        state[StackState.STREAM] += 1
        state[StackState.STREAM_END] = stream_end[event]


@sequential(writes=("same",))
def merge_cells(buffer: MatchBuffer, same: Any) -> None:
    """``same[c]``: a cell with the same paths as cell c, counted in its place; given as c itself."""
    for n in range(same.size // 2):
        k = buffer.link[n]
        if k >= 0 and buffer.next_link[k] < 0 and not buffer.start[n]:
            same[2 * n] = same[2 * buffer.node[k] + 1]
        if buffer.sibling[n] < 0:
            same[2 * n + 1] = same[2 * n]


@sequential(writes=("sums", "stack", "totals"))
def count_buffer(
    earliest: Any,
    stream_end: Any,
    last_start: Any,
    step_limit: int,
    buffer: MatchBuffer,
    sums: PathSums,
    stack: SumStack,
    totals: StreamTotals,
) -> Status:
    """Count the matches of all end nodes from where `stack` stands; return why it stopped.

    Matches that end at node n begin at ``last_start[n]`` or earlier; −1: none end
    there. ``earliest[e]`` is the first event whose window holds e. The stream of e
    ends before ``stream_end[e]``. On PATH_FULL or STEPS_SPENT the caller makes room
    and calls again.
    """
    state = stack.state
    limit = state[StackState.STEPS] + step_limit
    status = Status.FINISHED
    n = state[StackState.NODE]
    while n < last_start.size and status == Status.FINISHED:
        cell, first, last = sums.same[2 * n], earliest[buffer.event[n]], last_start[n]
        if state[StackState.HEIGHT] == 0 and not (last >= 0 and _counts(cell, first, last, buffer)):
            n += 1
        elif state[StackState.STEPS] > limit:
            status = Status.STEPS_SPENT
        elif state[StackState.HEIGHT] >= stack.cell.size:
            status = Status.PATH_FULL
        elif state[StackState.HEIGHT] == 0 and not _is_known(cell, first, last, buffer, sums):
            _push(cell, first, last, buffer, stack)
        elif state[StackState.HEIGHT] > 0:
            state[StackState.STEPS] += 1
            _advance(first, last, buffer, sums, stack)
        else:
            _enter_stream(buffer.event[n], stream_end, state)
            s = state[StackState.STREAM]
            totals.matches[s] = capped_sum(totals.matches[s], sums.paths[cell])
            totals.first_start[s] = min(totals.first_start[s], sums.first_start[cell])
            n += 1
    state[StackState.NODE] = n
    return status
