"""Refuse queries whose events would have to be kept without a bound, and say which windows are open."""

from __future__ import annotations

import math

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.input.ticks import Tick, following, window_begin
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.event_plan import Plan

# What bounds a window of a number of events of each key.
REMEDY = (
    "give the window a length of time, or time_to_live='1 day', after which a silent key begins anew: "
    "stream() and stream_all() take it, and gpu_match() and gpu_match_all() of a streaming DataFrame"
)


def counts_by_key(plan: Plan) -> bool:
    """Return whether the window is a number of events of each key, of which only a time to live bounds what is kept."""
    return isinstance(plan.query.window, CountWindow) and bool(plan.query.partition_by)


def refuse_unbounded(plan: Plan, asked: str, *, expires: bool) -> None:
    """Raise UnsupportedError if a stream, or what else is `asked` for, would have to keep events without a bound.

    `expires` says whether keys have a time to live, for which only a window of a number of their events has a use.
    """
    window = plan.query.window
    if window is None:
        message = f"{asked} needs a window: without one all events would have to be kept"
        raise UnsupportedError([Diagnostic(message, hint="add WITHIN and a length of time, such as WITHIN 5 minutes")])
    counts = counts_by_key(plan)
    if counts and not expires:
        message = f"{asked} with a window of a number of events and partition_by is not supported: events of all keys would be kept"
        raise UnsupportedError([Diagnostic(message, hint=REMEDY)])
    if expires and not counts:
        what = "a window of a number of events without partition_by" if isinstance(window, CountWindow) else "a window of time"
        message = f"time_to_live= is for windows of a number of events with partition_by, and this is {what}, which bounds what is kept"
        raise UnsupportedError([Diagnostic(message, hint="leave it out")])


def earliest_open(watermark: Tick, window: Tick) -> Tick:
    """Return the earliest time whose window is not over; `watermark` is a time up to which all events are known.

    The window of a time is over once the watermark has reached the time plus the length, and no later event is in the window.
    """
    later = following(watermark)
    if watermark == -math.inf:
        # all other times are infinitely far from it
        return later
    begin = window_begin(later, window)
    if isinstance(begin, float) and math.isfinite(begin) and math.isfinite(later):
        return _first_open(begin, float(later), float(watermark), float(window))
    return begin


def _first_open(begin: float, later: float, watermark: float, window: float) -> float:
    """Return the first float whose window is not over, which lies at most some rounding before `begin`, and not behind `later`."""
    over, still_open = begin - 4 * math.ulp(max(abs(later), window)), later
    while math.nextafter(over, math.inf) < still_open:
        middle = over + (still_open - over) / 2
        if later - middle > window and middle + window <= watermark:
            over = middle
        else:
            still_open = middle
    return still_open
