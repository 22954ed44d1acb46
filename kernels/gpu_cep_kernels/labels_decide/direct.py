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
