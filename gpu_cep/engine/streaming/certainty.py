"""Refuse queries whose events would have to be kept without a bound, and say which windows are open."""

from __future__ import annotations

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.input.ticks import Tick, following, window_begin
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.event_plan import Plan


def refuse_unbounded(plan: Plan, asked: str) -> None:
    """Raise UnsupportedError if a stream, or what else is `asked` for, would have to keep events without a bound."""
    window = plan.query.window
    if window is None:
        message = f"{asked} needs a window: without one all events would have to be kept"
        raise UnsupportedError([Diagnostic(message, hint="add WITHIN and a length of time, such as WITHIN 5 minutes")])
    if isinstance(window, CountWindow) and plan.query.partition_by:
        message = f"{asked} with a window of a number of events and partition_by is not supported: events of all keys would be kept"
        hint = "give the window a length of time, such as WITHIN 5 minutes, or make a stream for each key"
        raise UnsupportedError([Diagnostic(message, hint=hint)])


def earliest_open(watermark: Tick, window: Tick) -> Tick:
    """Return the earliest time whose window is not surely over; `watermark` is a time up to which all events are known."""
    return window_begin(following(watermark), window)
