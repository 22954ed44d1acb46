"""The lazy chain automaton (lazy automata paper, sections 3 and 4.1) as a resumable depth-first enumeration.

Variables are bound in ascending order of frequency, whatever their order in
the pattern. Each event of the rarest is a *pivot*; the events of the others
are fetched from their *input buffers*, which the ordering filters *prec* and
*succ* and the window narrow to a range. The conditions then filter the range
block by block, each as soon as its variables are bound.

All variables are single and the strategy is skip_till_any_match, so every
combination that passes is a match, and each is found from one pivot only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.conditions import condition_holds, is_decided
from gpu_cep_kernels.jit import rule, sequential
from gpu_cep_kernels.rules import bit, compare, mirrored, within
from gpu_cep_kernels.running import is_null
from gpu_cep_kernels.tables import (
    BY_INTS,
    DEPTH,
    ERROR_CONDITION,
    FINISHED,
    MATCHES,
    OUTPUT_FULL,
    OVERFLOWED,
    STEPS,
    STEPS_SPENT,
    Conditions,
    Ints,
    PatternTable,
    Run,
)

# Events that conditions filter at a time.
BLOCK = 128


class InputBuffers(NamedTuple):
    """The events of each variable, in stream order: those of v are ``events[first[v]:first[v + 1]]``."""

    first: Ints
    events: npt.NDArray[np.int32]


class Streams(NamedTuple):
    """The streams that a batch is a part of, which begin at `offsets`, and its own events: their `times`, and the `clock` of windows.

    Windows are `length` long on the clock. Events at one time are in no order
    if `strict`.
    """

    offsets: Ints
    times: npt.NDArray[np.generic]
    clock: npt.NDArray[np.generic]
    length: np.generic
    strict: bool


class ChainMatches(NamedTuple):
    """What an enumeration writes: the first event of match m, ``starts[m]``, and that of variable v, ``events[m, v]``.

    Where matches are only counted, ``totals[s]`` is raised by those of stream s
    (numbered from the batch's first), ``starts[s]`` lowered to the first event
    of any of them, and nothing else is written.
    """

    starts: Ints
    events: Ints
    totals: Ints


class Chain(NamedTuple):
    """The stack of the enumeration: at depth d variable ``order[d]`` is bound.

    The range of its buffer that is still to be filtered is
    ``[cursor[d], stop[d])``, ``block[d, taken[d]:kept[d]]`` are the events
    that passed and are still to be bound. ``earliest[d]`` and ``latest[d]``
    are the ends of what is bound above d; ``reach[v]`` is the part of v's
    buffer that the window of the current pivot reaches.
    """

    order: Ints
    cursor: Ints
    stop: Ints
    block: npt.NDArray[np.int32]
    taken: Ints
    kept: Ints
    earliest: Ints
    latest: Ints
    reach: Ints


def new_chain(order: Ints, buffers: InputBuffers, pattern: PatternTable, own: int) -> Chain:
    """The stack before the first pivot, for matches that start before event `own`."""
    variables = len(order)
    cursor, stop = np.zeros(variables, np.int64), np.zeros(variables, np.int64)
    cursor[0], stop[0] = buffers.first[order[0]], buffers.first[order[0] + 1]
    if pattern.precedes[order[0]].sum() == variables - 1:
        # the pivot is the first event of its matches
        stop[0] = cursor[0] + np.searchsorted(buffers.events[cursor[0] : stop[0]], own)
    return Chain(
        order=order,
        cursor=cursor,
        stop=stop,
        block=np.zeros((variables, BLOCK), np.int32),
        taken=np.zeros(variables, np.int64),
        kept=np.zeros(variables, np.int64),
        earliest=np.full(variables + 1, np.iinfo(np.int64).max),
        latest=np.full(variables + 1, -1, np.int64),
        reach=np.stack([buffers.first[:-1], buffers.first[:-1]], axis=1),
    )


@sequential
def count_labels(labels: Any, counts: Any) -> None:
    """``counts[v]``: how many events carry bit v."""
    for v in range(counts.size):
        mask = labels.dtype.type(1) << labels.dtype.type(v)
        count = 0
        for e in range(labels.size):
            count += (labels[e] & mask) != 0
        counts[v] = count


@sequential
def fill_buffers(labels: Any, first: Any, events: Any) -> None:
    """The input buffers that begin at ``first[v]``; `events` has one slot more than they take."""
    for v in range(first.size - 1):
        mask = bit(v)
        place = first[v]
        for e in range(labels.size):
            events[place] = e
            place += (labels[e] & mask) != 0


@rule
def is_early(event: int, begin: int, end: int, prec: int, latest: int, streams: Any) -> bool:
    """Whether `event` comes too early: before `begin`, no later than `prec` (-1: none), or too long before `latest`.

    From `end` on it may belong to another stream, whose times say nothing.
    """
    return bool(
        event < begin
        or (streams.strict and prec >= 0 and event < end and streams.times[event] == streams.times[prec])
        or (event < latest and not within(streams.clock[event], streams.clock[latest], streams.length))
    )


@rule
def is_late(event: int, end: int, succ: int, earliest: int, streams: Any) -> bool:
    """Whether `event` comes too late: not before `end`, no earlier than `succ` (their number: none), or too long after `earliest`."""
    return bool(
        event >= end
        or (streams.strict and succ < streams.times.size and streams.times[event] == streams.times[succ])
        or (event > earliest and not within(streams.clock[earliest], streams.clock[event], streams.length))
    )


@rule
def _narrow(
    v: int, low: int, high: int, limit: int, depth: int, begin: int, end: int,
    streams: Any, pattern: Any, buffers: Any, chain: Any, run: Any,
) -> tuple[int, int]:  # fmt: skip
    """The range of v's buffer that fits what is bound above `depth`: from `low` or later to `high` or later, at most `limit`.

    Found by doubling steps, then by halving them.
    """
    earliest, latest = chain.earliest[depth], chain.latest[depth]
    prec, succ = -1, streams.times.size
    for d in range(depth):
        u = chain.order[d]
        if pattern.precedes[u, v]:
            prec = max(prec, run.event[d])
        if pattern.precedes[v, u]:
            succ = min(succ, run.event[d])
    begin, end = max(begin, prec + 1), min(end, succ)
    step = 1
    while low + step <= limit and is_early(buffers.events[low + step - 1], begin, end, prec, latest, streams):
        low += step
        step *= 2
    while step > 1:
        step //= 2
        if low + step <= limit and is_early(buffers.events[low + step - 1], begin, end, prec, latest, streams):
            low += step
    high = max(low, high)
    step = 1
    while high + step <= limit and not is_late(buffers.events[high + step - 1], end, succ, earliest, streams):
        high += step
        step *= 2
    while step > 1:
        step //= 2
        if high + step <= limit and not is_late(buffers.events[high + step - 1], end, succ, earliest, streams):
            high += step
    return low, high


@rule
def _select_compared(events: Any, size: int, comparison: int, values: Any, nulls: Any, column: int, base: int, value: Any) -> int:
    """Keep those of ``events[:size]`` whose value in `column` compares with `value`; returns how many."""
    kept = 0
    for k in range(size):
        event = events[k]
        events[kept] = event
        # no short-circuit: a branch on values would be mispredicted
        kept += compare(comparison, values[column, base + event], value) & (not is_null(nulls, column, base + event))
    return kept


@rule
def _select_pairs(c: int, v: int, events: Any, size: int, conditions: Any, run: Any) -> int:
    """Keep those of ``events[:size]`` that satisfy condition c, a comparison of v with another variable; returns how many."""
    table, bank, base = conditions.table, conditions.bank, conditions.base
    comparison = table.comparison[c]
    column, other_column = table.left_column[c], table.right_column[c]
    other = table.right_variable[c]
    if table.right_variable[c] == v:
        comparison = mirrored(comparison)
        column, other_column = other_column, column
        other = table.left_variable[c]
    row = base + run.event[run.last[other]]
    if table.means[c] == BY_INTS:
        size = 0 if is_null(bank.int_nulls, other_column, row) else size
        kept = _select_compared(events, size, comparison, bank.ints, bank.int_nulls, column, base, bank.ints[other_column, row])
    else:
        size = 0 if is_null(bank.float_nulls, other_column, row) else size
        kept = _select_compared(events, size, comparison, bank.floats, bank.float_nulls, column, base, bank.floats[other_column, row])
    return kept


@rule
def _select_holding(c: int, v: int, depth: int, events: Any, size: int, conditions: Any, run: Any) -> int:
    """Keep those of ``events[:size]`` that satisfy condition c, of any kind; returns how many.

    After an error ``run.event[depth]`` is the event that caused it.
    """
    kept = 0
    for k in range(size):
        event = events[k]
        events[kept] = event
        if run.state[ERROR_CONDITION] == 0:
            run.event[depth] = event
            kept += condition_holds(c, v, event, conditions, run)
    return kept


@rule
def _select_unbound(events: Any, size: int, depth: int, run: Any) -> int:
    """Keep those of ``events[:size]`` that are not bound above `depth`; returns how many."""
    for d in range(depth):
        bound = run.event[d]
        if size > 0 and events[0] <= bound and bound <= events[size - 1]:
            kept = 0
            for k in range(size):
                event = events[k]
                events[kept] = event
                kept += event != bound
            size = kept
    return size


@rule
def _select(v: int, depth: int, events: Any, size: int, conditions: Any, run: Any) -> int:
    """Keep those of ``events[:size]`` that may be bound to v at `depth`; returns how many."""
    size = _select_unbound(events, size, depth, run)
    table = conditions.table
    for k in range(table.first[v], table.first[v + 1]):
        c = table.listed[k]
        if is_decided(c, v, table, run):
            if table.left_variable[c] >= 0:
                size = _select_pairs(c, v, events, size, conditions, run)
            else:
                size = _select_holding(c, v, depth, events, size, conditions, run)
    return size


@rule
def stream_of(event: int, offsets: Any) -> int:
    """The stream s with ``offsets[s] <= event < offsets[s + 1]``."""
    low, high = 0, offsets.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= event:
            low = middle
        else:
            high = middle
    return low


@sequential
def enumerate_chain(
    buffers: InputBuffers,
    streams: Streams,
    own: int,
    pattern: PatternTable,
    conditions: Conditions,
    counting: bool,
    step_limit: int,
    chain: Chain,
    run: Run,
    matches: ChainMatches,
) -> int:
    """Enumerate the matches of all pivots from where `chain` stands; returns why it stopped.

    Event e of the batch stands at ``conditions.base + e`` in the streams, too.
    Only matches that start before event `own` are found; with `counting` they
    are only counted. On OUTPUT_FULL or STEPS_SPENT the caller makes room and
    calls again.
    """
    variables = chain.order.size
    offsets, base = streams.offsets, conditions.base
    state = run.state
    depth = state[DEPTH]
    first_stream = stream_of(base, offsets)
    s = stream_of(base + chain.block[0, 0], offsets)
    steps = 0
    status = FINISHED
    while depth >= 0 and status == FINISHED:
        v = chain.order[depth]
        block = chain.block[depth]
        if chain.taken[depth] == chain.kept[depth] and chain.cursor[depth] == chain.stop[depth]:
            depth -= 1
            if depth >= 0:
                run.last[chain.order[depth]] = -1
        elif chain.taken[depth] == chain.kept[depth]:
            begin = chain.cursor[depth]
            # pivots come one by one, for each has its stream
            size = min(BLOCK if depth > 0 else 1, chain.stop[depth] - begin)
            for k in range(size):
                block[k] = buffers.events[begin + k]
            while depth == 0 and offsets[s + 1] <= base + block[0]:
                s += 1
            chain.cursor[depth] = begin + size
            chain.taken[depth] = 0
            chain.kept[depth] = _select(v, depth, block, size, conditions, run)
            steps += size
            if state[ERROR_CONDITION] != 0:
                status = OVERFLOWED
            elif steps > step_limit:
                status = STEPS_SPENT
        elif depth < variables - 1:
            event = block[chain.taken[depth]]
            chain.taken[depth] += 1
            run.event[depth] = event
            run.last[v] = depth
            chain.earliest[depth + 1] = min(chain.earliest[depth], event)
            chain.latest[depth + 1] = max(chain.latest[depth], event)
            depth += 1
            stream_begin, stream_end = max(offsets[s] - base, 0), min(offsets[s + 1] - base, streams.times.size)
            reached = True
            if depth == 1:
                d = 1
                while reached and d < variables:
                    u = chain.order[d]
                    chain.reach[u, 0], chain.reach[u, 1] = _narrow(
                        u, chain.reach[u, 0], chain.reach[u, 1], buffers.first[u + 1], depth, stream_begin, stream_end,
                        streams, pattern, buffers, chain, run,
                    )  # fmt: skip
                    reached = chain.reach[u, 0] < chain.reach[u, 1]
                    d += 1
            u = chain.order[depth]
            # the last variable must start the match where no other does so before `own`
            end = min(stream_end, own) if depth == variables - 1 and chain.earliest[depth] >= own else stream_end
            low, high = chain.reach[u, 0], chain.reach[u, 0]
            if reached:
                limit = chain.reach[u, 1]
                low, high = _narrow(u, low, low, limit, depth, stream_begin, end, streams, pattern, buffers, chain, run)
            chain.cursor[depth] = low
            chain.stop[depth] = high
            chain.taken[depth] = 0
            chain.kept[depth] = 0
        elif counting:
            k = chain.taken[depth]
            place = s - first_stream
            matches.totals[place] += chain.kept[depth] - k
            matches.starts[place] = min(matches.starts[place], min(chain.earliest[depth], block[k]))
            chain.taken[depth] = chain.kept[depth]
        else:
            m, k = state[MATCHES], chain.taken[depth]
            while k < chain.kept[depth] and m < matches.starts.size:
                event = block[k]
                matches.starts[m] = min(chain.earliest[depth], event)
                for d in range(depth):
                    matches.events[m, chain.order[d]] = base + run.event[d]
                matches.events[m, v] = base + event
                m += 1
                k += 1
            chain.taken[depth] = k
            state[MATCHES] = m
            if k < chain.kept[depth]:
                status = OUTPUT_FULL
    state[DEPTH] = depth
    state[STEPS] += steps
    return status
