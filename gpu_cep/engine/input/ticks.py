"""Compute with times in ticks: how far a window reaches, and which time follows another.

Ticks are whole numbers of 64 bits, or floats. A window of floats holds what a rounded difference of
times lets in, so it is taken to reach one float further than its length says.
"""

from __future__ import annotations

import math

Tick = int | float
# The first and the last time that whole ticks tell.
EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1


def following(time: Tick) -> Tick:
    """Return the time right behind `time`, or the first one if that is before it."""
    return math.nextafter(time, math.inf) if isinstance(time, float) else max(EARLIEST, time + 1)


def preceding(time: Tick) -> Tick:
    """Return the time right before `time`."""
    return math.nextafter(time, -math.inf) if isinstance(time, float) else time - 1


def window_begin(time: Tick, window: Tick) -> Tick:
    """Return a time such that no event before it shares a window of this length with an event at `time`."""
    if isinstance(time, float) or isinstance(window, float):
        return math.nextafter(time - math.nextafter(window, math.inf), -math.inf)
    return max(EARLIEST, time - window)


def window_end(time: Tick, window: Tick) -> Tick:
    """Return a time such that no event behind it shares a window of this length with an event at `time`."""
    if isinstance(time, float) or isinstance(window, float):
        return math.nextafter(time + math.nextafter(window, math.inf), math.inf)
    return min(LATEST, time + window)
