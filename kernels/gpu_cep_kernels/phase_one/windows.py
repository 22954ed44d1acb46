"""Find the match windows, the ties and the next occurrences of a batch's events.

A window is measured on a *clock*. That is the event times, or the positions
where a window is a number of events. The window of event e (thesis Def. 4.3)
holds events of its own stream, from e on. They are ``within`` the window's
length of e.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.scalars import bit, within
from gpu_cep_kernels.rules.ties import are_tied

# Events that are looked at one by one for the end of a window.
_NEAR = 8


class WindowLimits(NamedTuple):
    """Say where windows end.

    Event f, at or after e, is in the window of e if ``f < stream_end[e]`` and ``clock[f] - clock[e] <= length``.

    - clock[e]: the time or the position of event e, by which windows are measured.
    - stream_end[e]: the event before which the stream of e ends.
    - length: the length of windows on the clock.
    """

    clock: Any
    stream_end: Any
    length: Any


@sequential(writes=("stream_end", "after"))
def mark_streams(low: int, offsets: Any, first: int, last: int, times: Any, stream_end: Any, after: Any) -> int:
    """Write where the stream of each event ends, and which event is the first later one; return how many tie with the next.

    The events are those of the streams [first, last). Event e of the batch stands
    at ``low + e`` in the streams that `offsets` delimits. The batch may hold only
    a part of a stream. ``after[e]`` is the first event that is later than e. It has
    one entry more, for the end of the batch.
    """
    ties = 0
    after[times.size] = times.size
    for back in range(last - first):
        s = last - 1 - back
        begin, end = max(offsets[s] - low, 0), min(offsets[s + 1] - low, times.size)
        for distance in range(end - begin):
            e = end - 1 - distance
            tied = distance > 0 and are_tied(e, e + 1, times)
            stream_end[e] = end
            after[e] = after[e + 1] if tied else e + 1
            ties += tied
    return ties


@rule
def is_in_window(start: int, event: int, limits: WindowLimits) -> bool:
    """Return whether `event`, which may be the end of the batch, falls into the window that begins at `start`."""
    clock, stream_end, length = limits
    # no branch: a processor could not predict which windows hold
    return (event < stream_end[start]) & within(clock[start], clock[min(event, clock.size - 1)], length)


@kernel(writes=("ends",))
def window_ends(low: int, high: int, starts: Any, inside: Any, limits: WindowLimits, ends: Any) -> None:
    """``ends[w]``: where the window that starts at event ``starts[w]`` ends; ``inside[w]`` is any event in it.

    A window ends no earlier than one of the same stream that starts before. A few events behind
    that are looked at one by one, since most ends are there. Then steps are doubled first, and halved then.
    """
    before, reached = 0, -1
    for w in range(low, high):
        start = starts[w]
        known = before <= start and start <= reached
        reached = max(inside[w], reached) if known else inside[w]
        before = start
        beyond = reached + _NEAR
        while reached < beyond and is_in_window(start, reached + 1, limits):
            reached += 1
        step = 1 if reached == beyond else 0
        while step > 0 and is_in_window(start, reached + step, limits):
            reached += step
            step *= 2
        # a step of this length leads out of the window
        step //= 2
        while step > 0:
            if is_in_window(start, reached + step, limits):
                reached += step
            step //= 2
        ends[w] = reached + 1


@kernel(writes=("marks",))
def mark_crowded(low: int, high: int, fewest: int, limits: WindowLimits, marks: Any) -> None:
    """``marks[e]``: whether event e lies in some window that holds at least `fewest` events."""
    for e in range(low, high):
        crowded = False
        # of a window with more events, some `fewest` in a row have e among them
        for start in range(max(e - fewest + 1, 0), e + 1):
            crowded |= is_in_window(start, start + fewest - 1, limits)
        marks[e] = crowded


@sequential(writes=("occurrence",))
def next_occurrences(labels: Any, variables: int, occurrence: Any) -> None:
    """``occurrence[v, e]``: the first event at or after e whose label has bit v, or ``labels.size``.

    `occurrence` has two slots more per variable than there are events; they hold
    ``labels.size``, too.
    """
    size = labels.size
    for v in range(variables):
        found = size
        row = occurrence[v]
        row[size] = row[size + 1] = size
        mask = bit(v)
        for back in range(size):
            e = size - 1 - back
            found = e if labels[e] & mask else found
            row[e] = found
