"""Read matches off the chained condition, without an automaton.

This is for patterns without conditions between bindings. Each event must fit at
most one available variable. Then skip-till-next-match gives one match for each
window that the exact chained condition selects. A single variable binds its
earliest event. A quantified one binds all its events from there until a
variable behind it is bound.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.phase_one.windows import WindowLimits, is_in_window
from gpu_cep_kernels.rules.tables import PatternTable


@rule
def _binding_end(w: int, v: int, pattern: PatternTable, earliest: Any, size: int) -> int:
    """Return the first event at which v can bind no more because a variable behind it is bound."""
    end = size
    for k in range(pattern.following_first[v], pattern.following_first[v + 1]):
        end = min(end, earliest[pattern.following[k], w])
    return end


@kernel(writes=("counts",))
def count_bindings(
    low: int, high: int, starts: Any, limits: WindowLimits, pattern: PatternTable, occurrence: Any, earliest: Any, counts: Any
) -> None:
    """``counts[w, v]``: how many events variable v binds in the match that starts at event ``starts[w]``."""
    size = limits.clock.size
    for w in range(low, high):
        for v in range(pattern.order.size):
            count = 1
            if pattern.maximum[v] != 1:
                end = _binding_end(w, v, pattern, earliest, size)
                event = occurrence[v, earliest[v, w] + 1]
                while event < end and is_in_window(starts[w], event, limits):
                    count += 1
                    event = occurrence[v, event + 1]
            counts[w, v] = count


@kernel(writes=("events",))
def bind_events(low: int, high: int, base: int, offsets: Any, counts: Any, occurrence: Any, earliest: Any, events: Any) -> None:
    """Write the events of each match, plus `base`, variable after variable; those of match w from ``offsets[w]`` on."""
    for w in range(low, high):
        place = offsets[w]
        for v in range(counts.shape[1]):
            event = earliest[v, w]
            for _ in range(counts[w, v]):
                events[place] = base + event
                event = occurrence[v, event + 1]
                place += 1


@kernel(writes=("events",))
def bind_singles(low: int, high: int, base: int, earliest: Any, events: Any) -> None:
    """``events[w, v] = base + earliest[v, w]``: the events of matches that bind one to each variable."""
    for w in range(low, high):
        for v in range(events.shape[1]):
            events[w, v] = base + earliest[v, w]


@kernel(writes=("firsts", "totals"))
def total_streams(low: int, high: int, first_starts: Any, starts: Any, held: Any, firsts: Any, totals: Any) -> None:
    """``totals[s]``: how many windows of stream s hold; ``firsts[s]``: the event that starts the first of them, or -1.

    The windows of stream s begin at ``first_starts[s]``. ``held[w]`` of the windows up to w hold.
    """
    for s in range(low, high):
        begin = first_starts[s]
        end = first_starts[s + 1] if s + 1 < first_starts.size else starts.size
        before = held[begin - 1] if begin > 0 else 0
        total = held[end - 1] - before if begin < end else 0
        first, last = begin, end - 1
        while total > 0 and first < last:
            middle = (first + last) // 2
            if held[middle] > before:
                last = middle
            else:
                first = middle + 1
        totals[s] = total
        firsts[s] = starts[first] if total > 0 else -1
