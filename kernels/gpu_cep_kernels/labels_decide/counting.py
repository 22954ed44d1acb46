"""Count the matches that start at each candidate without enumerating them: dynamic programming over a branch's states.

Labels alone must decide the matches: there are no conditions and no negations.
The strategy is skip_till_any_match. A match is then a path through finitely
many states. Every event is a matrix: the number of ways in which it leads from
one state to another, passed over or bound.

The number of matches from an event on is a sum over the product of the
matrices of its window. As windows slide, this product is kept in two parts:
that of the events before a boundary, and that of the events behind it. So each
event is multiplied once into either (the queue of two stacks), however long the
window is.

Candidates are counted in tiles, each by itself: one tile for a thread of the CPU, small
ones for the many threads of a card, which multiply again the events that tiles share.

Numbers are capped at ``UNBOUNDED``, which stands for itself and all that is
greater. Sums and products of capped numbers are the capped sums and products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.rules.scalars import UNBOUNDED, is_labelled
from gpu_cep_kernels.rules.tables import Flags, Ints


class Moves(NamedTuple):
    """List the transitions at one end of each state; t is a transition.

    - first[s]: the first transition of state s; the last entry is the end.
    - state[t]: the state at the other end.
    - variable[t]: the variable that binds the event.
    """

    first: Ints
    state: Ints
    variable: Ints


class StateTable(NamedTuple):
    """Hold the states, ordered so that transitions lead up or stay; s is a state.

    - forth: the transitions that leave each state, without those that begin a match.
    - back: the transitions that enter each state, without those.
    - begin[b]: the state in which variable ``begin_variable[b]`` binds a match's first event.
    - final[s]: whether s is complete.
    - settled[s]: what s becomes once the time moves on: the lowest state that is reached from it.
    - highest[s]: the highest state from which s is reached.

    Variables are bits of labels.
    """

    forth: Moves
    back: Moves
    begin: Ints
    begin_variable: Ints
    final: Flags
    settled: Ints
    highest: Ints


class LabelledEvents(NamedTuple):
    """Hold a batch's events; e is one.

    - after[e]: the first event that e is before; empty where ties do not matter.
    - labels [word, event]: each event's labels.
    """

    after: Any
    labels: Any


class CountScratch(NamedTuple):
    """Hold the room in which matches are counted, of each slot in a row of its own; s and t are states.

    - front[slot, s, t]: the ways from s to t by the events before the boundary.
    - back[slot, t, s]: the ways from s to t by the events behind it.
    - rows[slot, k, t]: the ways from the k-th start to state t at the boundary.
    - completions[slot, s, 0]: the ways from s to a complete state.
    """

    front: Ints
    back: Ints
    rows: Ints
    completions: Ints


@rule
def capped_sum(left: int, right: int) -> int:
    """Return the sum of two numbers that are not negative, capped at ``UNBOUNDED``."""
    return left + right if left <= UNBOUNDED - right else UNBOUNDED


@rule
def capped_product(left: int, right: int) -> int:
    """Return the product of two numbers that are not negative, capped at ``UNBOUNDED``."""
    return left * right if right == 0 or left <= UNBOUNDED // right else UNBOUNDED


@rule
def _moves_on(event: int, after: Any) -> bool:
    """Return whether the time has moved on since the event before."""
    return bool(after.size > 0 and event > 0 and after[event - 1] == event)


@rule
def _clear(values: Any) -> None:
    """Set a square matrix to the identity."""
    for s in range(values.shape[0]):
        for t in range(values.shape[1]):
            values[s, t] = 1 if s == t else 0


@rule
def _bind(event: int, labels: Any, states: StateTable, moves: Moves, ascending: bool, values: Any) -> None:
    """Bind the event: add to each state's row of `values` the rows of the states at the other end of its `moves`.

    Only moves that bind the event count. States are visited in an order, `ascending`
    or not, in which the added rows are still unchanged. A state's loops come first.
    """
    number, width = states.settled.size, values.shape[1]
    for place in range(number):
        s = place if ascending else number - 1 - place
        # the other columns are zero: s does not lead there, or is not reached from there
        low = states.settled[s] if ascending and width > 1 else 0
        high = width if ascending else states.highest[s] + 1
        loops = 0
        for t in range(moves.first[s], moves.first[s + 1]):
            loops += 1 if moves.state[t] == s and is_labelled(event, moves.variable[t], labels) else 0
        if loops > 0:
            for k in range(low, high):
                values[s, k] = capped_product(values[s, k], loops + 1)
        for t in range(moves.first[s], moves.first[s + 1]):
            if moves.state[t] != s and is_labelled(event, moves.variable[t], labels):
                for k in range(low, high):
                    values[s, k] = capped_sum(values[s, k], values[moves.state[t], k])


@rule
def _prepend(event: int, events: LabelledEvents, states: StateTable, values: Any) -> None:
    """Multiply `values` by the event's matrix from the left."""
    _bind(event, events.labels, states, states.forth, True, values)
    if _moves_on(event, events.after):
        for s in range(states.settled.size):
            for k in range(values.shape[1]):
                values[s, k] = values[states.settled[s], k]


@rule
def _append(event: int, events: LabelledEvents, states: StateTable, values: Any) -> None:
    """Multiply `values` by the event's matrix from the right; `values` are transposed."""
    if _moves_on(event, events.after):
        for s in range(states.settled.size):
            if states.settled[s] != s:
                for k in range(values.shape[1]):
                    values[states.settled[s], k] = capped_sum(values[states.settled[s], k], values[s, k])
                    values[s, k] = 0
    _bind(event, events.labels, states, states.back, False, values)


@rule
def _sum_of_begins(event: int, k: int, labels: Any, states: StateTable, values: Any) -> int:
    """Return the sum of ``values[s, k]`` over the states s that a match has after it begins with the event.

    It is at most ``UNBOUNDED``.
    """
    total = 0
    for b in range(states.begin.size):
        if is_labelled(event, states.begin_variable[b], labels):
            total = capped_sum(total, values[states.begin[b], k])
    return total


@rule
def _count_together(
    low: int, high: int, candidates: Any, end: int, events: LabelledEvents, states: StateTable, completions: Ints, totals: Any
) -> None:  # fmt: skip
    """Write the totals of the candidates [low, high), whose windows all end at `end`."""
    for s in range(states.final.size):
        completions[s, 0] = 1 if states.final[s] else 0
    w = high - 1
    for back in range(end - candidates[low]):
        event = end - 1 - back
        if w >= low and candidates[w] == event:
            totals[w] = _sum_of_begins(event, 0, events.labels, states, completions)
            w -= 1
        _prepend(event, events, states, completions)


@rule
def _count_sliding(
    low: int, high: int, candidates: Any, ends: Any, events: LabelledEvents, states: StateTable, front: Ints, back: Ints, rows: Ints,
    totals: Any,
) -> None:  # fmt: skip
    """Write the totals of the candidates [low, high), which all lie in the first one's window."""
    boundary = ends[low]
    number = states.final.size
    _clear(front)
    w = high - 1
    for before in range(boundary - candidates[low]):
        event = boundary - 1 - before
        if w >= low and candidates[w] == event:
            for s in range(number):
                rows[w - low, s] = _sum_of_begins(event, s, events.labels, states, front)
            w -= 1
        _prepend(event, events, states, front)
    _clear(back)
    event = boundary
    for w in range(low, high):
        while event < ends[w]:
            _append(event, events, states, back)
            event += 1
        total = 0
        for t in range(number):
            if states.final[t]:
                for s in range(number):
                    total = capped_sum(total, capped_product(rows[w - low, s], back[t, s]))
        totals[w] = total


@rule
def _count_tile(
    slot: int, candidates: Any, ends: Any, events: LabelledEvents, states: StateTable, scratch: CountScratch, totals: Any
) -> None:  # fmt: skip
    """Write the totals of all candidates in a slot."""
    low = 0
    while low < candidates.size:
        end = ends[low]
        high = low + 1
        while high < candidates.size and candidates[high] < end:
            high += 1
        if ends[high - 1] == end:
            _count_together(low, high, candidates, end, events, states, scratch.completions[slot], totals)
        else:
            high = min(high, low + scratch.rows.shape[1])
            _count_sliding(low, high, candidates, ends, events, states, scratch.front[slot], scratch.back[slot], scratch.rows[slot], totals)
        low = high


@kernel(writes=("totals",), scratch=("scratch",))
def count_matches(
    low: int, high: int, slot: int, size: int, candidates: Any, ends: Any, events: LabelledEvents, states: StateTable,
    scratch: CountScratch, totals: Any,
) -> None:  # fmt: skip
    """``totals[w]``: how many matches start at event ``candidates[w]`` and end before ``ends[w]``, at most ``UNBOUNDED``.

    `candidates` and `ends` ascend. Tile k has `size` candidates, from ``candidates[k * size]`` on; the last one may have fewer.
    ``scratch.rows`` has room for as many candidates as are counted at a time.
    """
    for tile in range(low, high):
        # a tile's own slices begin at 0, so that no index is looked at for its sign
        first, end = tile * size, (tile + 1) * size
        _count_tile(slot, candidates[first:end], ends[first:end], events, states, scratch, totals[first:end])
