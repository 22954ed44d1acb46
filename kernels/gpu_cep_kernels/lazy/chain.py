"""Enumerate matches by a lazy automaton, depth first (lazy automata paper, sections 3, 4 and 7).

It binds single variables, in ascending order of frequency, whatever their order
in the pattern. Each event of the rarest variable is a *pivot*. The events of
the others come from their *input buffers*. The ordering filters *prec* and
*succ* and the window narrow a buffer to a range. Then conditions filter the
range block by block, each as soon as its variables are bound. So do negations.

The strategy is skip_till_any_match, so every combination that passes is a
match. Where quantified variables follow, it is a partial one
(:mod:`gpu_cep_kernels.lazy.iterations`). Each is found from one pivot only. A
call can stop at any place and resume.

The tree automaton is the same with an order for each pivot. There the pivot
begins the match. The others follow in ascending number of their events in its
window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.lazy.filters import select_allowed, select_holding, select_pairs, select_unbound
from gpu_cep_kernels.lazy.iteration_tables import LazyMode
from gpu_cep_kernels.phase_one.input_buffers import Buffered, InputBuffers, between, is_early, is_late, stream_of
from gpu_cep_kernels.rules.conditions import is_decided
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, Flags, Ints, PathState, PatternTable, Status

# How many events conditions filter at a time.
BLOCK = 128


class LazyMatches(NamedTuple):
    """Receive the matches that an enumeration writes; m is a match.

    - starts[m]: its first event.
    - events[m, v]: the event of variable v.

    Where matches are only counted, s is a stream, numbered from the batch's first:

    - totals[s]: raised by the number of matches.
    - starts[s]: lowered to the first event of any of them.
    """

    starts: Ints
    events: Ints
    totals: Ints


class ChainStack(NamedTuple):
    """Hold the stack of the enumeration; at depth d it binds variable ``order[d]``.

    - order: the variables; those behind the last depth are not bound.
    - cursor[d], stop[d]: the range of the variable's buffer that is still to be filtered.
    - block[d, taken[d]:kept[d]]: the events that passed and are still to be bound.
    - earliest[d], latest[d]: the first and the last event bound above d.
    - span[v]: the range of v's buffer that the window of the current pivot reaches.
    - needs[n, v]: whether negation n waits for variable v.
    - judged[n]: the depth at which it is judged, therefore.
    """

    order: Ints
    cursor: Ints
    stop: Ints
    block: npt.NDArray[np.int32]
    taken: Ints
    kept: Ints
    earliest: Ints
    latest: Ints
    span: Ints
    needs: Flags
    judged: Ints


def find_pivots(v: int, buffers: InputBuffers, pattern: PatternTable, own: int, starting: bool) -> tuple[int, int]:
    """Return the range of the buffers that holds the pivots, which are events of v.

    A pivot is the first event of its match if pivots are `starting`, or if the
    pattern says so. Then only pivots before event `own` are in the range: matches
    must start before it.
    """
    first, last = int(buffers.first[v]), int(buffers.first[v + 1])
    if starting or pattern.precedes[v].sum() == len(pattern.order) - 1:
        last = first + int(np.searchsorted(buffers.events[first:last], own))
    return first, last


def new_chain(order: Ints, depths: int, pivots: tuple[int, int], buffers: InputBuffers, pattern: PatternTable, needs: Flags) -> ChainStack:
    """Return the stack before the first pivot.

    `pivots` is their range in the buffers. The first `depths` variables of the order are bound.
    """
    cursor, stop = np.zeros(depths, np.int64), np.zeros(depths, np.int64)
    cursor[0], stop[0] = pivots
    known = np.arange(len(order))
    # of a quantified pivot only the first event is bound here
    known[0] = 0 if pattern.maximum[order[0]] == 1 else depths
    return ChainStack(
        order=order.copy(),
        cursor=cursor,
        stop=stop,
        block=np.zeros((depths, BLOCK), np.int32),
        taken=np.zeros(depths, np.int64),
        kept=np.zeros(depths, np.int64),
        earliest=np.full(depths + 1, np.iinfo(np.int64).max),
        latest=np.full(depths + 1, -1, np.int64),
        span=np.stack([buffers.first[:-1], buffers.first[:-1]], axis=1),
        needs=needs,
        judged=(needs[:, order] * known).max(axis=1, initial=0),
    )


@rule
def _narrow(
    v: int, depth: int, known: tuple[int, int, int], span: tuple[int, int],
    buffered: Buffered, pattern: PatternTable, chain: ChainStack, path: EventPath,
) -> tuple[int, int]:  # fmt: skip
    """Return the range of v's buffer, within the events of `span`, that fits what is bound above `depth`.

    With ``low, high, limit = known`` it begins at `low` or later and ends at
    `limit` or earlier. Its end is searched from `high` on, unless that is too far.
    Steps are doubled first, and halved then.
    """
    (low, high, limit), (buffers, streams) = known, buffered
    earliest, latest = chain.earliest[depth], chain.latest[depth]
    prec, succ = -1, streams.times.size
    for d in range(depth):
        u = chain.order[d]
        if pattern.precedes[u, v]:
            prec = max(prec, path.event[d])
        if pattern.precedes[v, u]:
            succ = min(succ, path.event[d])
    begin, end = between(prec, succ, span[0], span[1], streams)
    step = 1
    while low + step <= limit and is_early(buffers.events[low + step - 1], begin, latest, streams):
        low += step
        step *= 2
    while step > 1:
        step //= 2
        if low + step <= limit and is_early(buffers.events[low + step - 1], begin, latest, streams):
            low += step
    if high <= low or high > limit or is_late(buffers.events[high - 1], end, earliest, streams):
        high = low
    step = 1
    while high + step <= limit and not is_late(buffers.events[high + step - 1], end, earliest, streams):
        high += step
        step *= 2
    while step > 1:
        step //= 2
        if high + step <= limit and not is_late(buffers.events[high + step - 1], end, earliest, streams):
            high += step
    return low, high


@rule
def _select(v: int, depth: int, events: Any, size: int, conditions: Conditions, path: EventPath) -> int:
    """Keep those of ``events[:size]`` that may be bound to v at `depth`, whatever negations say; return how many."""
    size = select_unbound(events, size, depth, path)
    table = conditions.table
    for k in range(table.first[v], table.first[v + 1]):
        c = table.listed[k]
        if is_decided(c, v, table, path):
            if table.left_variable[c] >= 0:
                size = select_pairs(c, v, events, size, conditions, path)
            else:
                size = select_holding(c, v, depth, events, size, conditions, path)
    return size


@rule
def _judge(v: int, depth: int, events: Any, size: int, criteria: Criteria, chain: ChainStack, path: EventPath) -> int:
    """Keep those of ``events[:size]`` that no negation judged at `depth` rules out; return how many."""
    for n in range(chain.judged.size):
        if chain.judged[n] == depth:
            earliest, latest = chain.earliest[depth], chain.latest[depth]
            size = select_allowed(n, v, depth, earliest, latest, events[:size], criteria, path)
    return size


@rule
def _reorder(chain: ChainStack) -> None:
    """Order the variables behind the pivot by how many of their events its window holds (paper, section 7)."""
    for d in range(2, chain.cursor.size):
        v = chain.order[d]
        size = chain.span[v, 1] - chain.span[v, 0]
        place = d
        while place > 1 and chain.span[chain.order[place - 1], 1] - chain.span[chain.order[place - 1], 0] > size:
            chain.order[place] = chain.order[place - 1]
            place -= 1
        chain.order[place] = v
    for n in range(chain.judged.size):
        for d in range(chain.cursor.size):
            if chain.needs[n, chain.order[d]] and chain.judged[n] < chain.cursor.size:
                chain.judged[n] = d


@rule
def _write(v: int, depth: int, block: Any, base: int, chain: ChainStack, path: EventPath, matches: LazyMatches) -> int:
    """Write matches: what is bound above `depth` with each event left in v's block; return how many.

    It stops where there is no more room.
    """
    taken, written = chain.taken[depth], path.state[PathState.MATCHES]
    size = min(chain.kept[depth] - taken, matches.starts.size - written)
    events = block[taken : taken + size]
    starts, rows = matches.starts[written : written + size], matches.events[written : written + size]
    earliest = chain.earliest[depth]
    for k in range(size):
        starts[k] = min(earliest, events[k])
        rows[k, v] = base + events[k]
    # a loop for each variable, since all these matches bind the same event to it
    for d in range(depth):
        u, event = chain.order[d], base + path.event[d]
        for k in range(size):
            rows[k, u] = event
    return size


@rule
def _enumerate(
    buffered: Buffered, criteria: Criteria, negated: bool | None, mode: LazyMode, chain: ChainStack, path: EventPath, matches: LazyMatches
) -> Status:
    """Run the body of both kernels; return why it stopped.

    `negated` is None where there are no negations. Their code is then not compiled: it would slow the rest.
    """
    buffers, streams = buffered
    pattern, conditions = criteria.pattern, criteria.conditions
    own, starting, counting, step_limit = mode
    depths, variables = chain.cursor.size, chain.order.size
    offsets, base = streams.offsets, conditions.base
    state = path.state
    depth = state[PathState.DEPTH]
    first_stream = stream_of(base, offsets)
    s = stream_of(base + chain.block[0, 0], offsets)
    steps = 0
    status = Status.FINISHED
    while depth >= 0 and status == Status.FINISHED:
        v = chain.order[depth]
        block = chain.block[depth]
        if chain.taken[depth] == chain.kept[depth] and chain.cursor[depth] == chain.stop[depth]:
            depth -= 1
            if depth >= 0:
                path.last[chain.order[depth]] = -1
        elif chain.taken[depth] == chain.kept[depth]:
            begin = chain.cursor[depth]
            # pivots come one by one, since each may be in another stream
            size = min(BLOCK if depth > 0 else 1, chain.stop[depth] - begin)
            fetched = buffers.events[begin : begin + size]
            for k in range(size):
                block[k] = fetched[k]
            while depth == 0 and offsets[s + 1] <= base + block[0]:
                s += 1
            chain.cursor[depth] = begin + size
            chain.taken[depth] = 0
            chain.kept[depth] = _select(v, depth, block, size, conditions, path)
            if negated is not None:
                chain.kept[depth] = _judge(v, depth, block, chain.kept[depth], criteria, chain, path)
            steps += size
            if state[PathState.ERROR_CONDITION] != 0:
                status = Status.OVERFLOWED
            elif steps > step_limit:
                status = Status.STEPS_SPENT
        elif depth < depths - 1:
            event = block[chain.taken[depth]]
            chain.taken[depth] += 1
            path.event[depth] = event
            path.last[v] = depth
            chain.earliest[depth + 1] = min(chain.earliest[depth], event)
            chain.latest[depth + 1] = max(chain.latest[depth], event)
            depth += 1
            stream_begin, stream_end = max(offsets[s] - base, 0), min(offsets[s + 1] - base, streams.times.size)
            if starting:
                stream_begin = path.event[0] + 1
            reached = True
            if depth == 1:
                d = 1
                while reached and d < variables:
                    u = chain.order[d]
                    known = chain.span[u, 0], chain.span[u, 1], buffers.first[u + 1]
                    low, high = _narrow(u, depth, known, (stream_begin, stream_end), buffered, pattern, chain, path)
                    chain.span[u, 0], chain.span[u, 1] = low, high
                    reached = chain.span[u, 1] - chain.span[u, 0] >= pattern.minimum[u]
                    d += 1
                if starting and reached:
                    _reorder(chain)
            u = chain.order[depth]
            # if nothing bound so far is before `own`, the last variable's event must be
            end = min(stream_end, own) if depth == variables - 1 and chain.earliest[depth] >= own else stream_end
            low, high = chain.span[u, 0], chain.span[u, 1]
            if not reached:
                high = low
            elif depth > 1 or end < stream_end:
                # the search for the end begins where the last range at this depth ended
                known = low, chain.stop[depth], high
                low, high = _narrow(u, depth, known, (stream_begin, end), buffered, pattern, chain, path)
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
            written = _write(v, depth, block, base, chain, path, matches)
            chain.taken[depth] += written
            state[PathState.MATCHES] += written
            if chain.taken[depth] < chain.kept[depth]:
                status = Status.OUTPUT_FULL
    state[PathState.DEPTH] = depth
    state[PathState.STEPS] += steps
    return status


@sequential(writes=("chain", "path", "matches"))
def enumerate_chain(
    buffered: Buffered, criteria: Criteria, mode: LazyMode, chain: ChainStack, path: EventPath, matches: LazyMatches
) -> Status:  # fmt: skip
    """Enumerate the matches of all pivots from where `chain` stands; return why it stopped. There are no negations.

    Event e of the batch stands at ``conditions.base + e`` in the streams, too.
    Conditions that wait until a quantified variable binds no more are not listed.
    If ``mode.starting``, pivots begin their matches, and each has its own order of
    variables. On OUTPUT_FULL or STEPS_SPENT the caller makes room and calls again.
    """
    return _enumerate(buffered, criteria, None, mode, chain, path, matches)


@sequential(writes=("chain", "path", "matches"))
def enumerate_negated_chain(
    buffered: Buffered, criteria: Criteria, mode: LazyMode, chain: ChainStack, path: EventPath, matches: LazyMatches
) -> Status:  # fmt: skip
    """Do as :func:`enumerate_chain`, with negations."""
    return _enumerate(buffered, criteria, True, mode, chain, path, matches)
