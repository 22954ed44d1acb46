"""WITHIN, in ticks of the timestamp column or in events."""

from __future__ import annotations

import math
from fractions import Fraction

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.literals import approximate
from gpu_cep.analysis.types import TICKS_PER_SECOND, Attribute, Kind
from gpu_cep.lang.ast import UNITS, Window

EVENTS = "events"

# No two int64 times are further apart.
LONGEST = 2**64 - 1

# What time_unit= may be called beside the canonical names.
UNIT_NAMES = {unit: unit for unit in UNITS} | {"s": "seconds"} | {unit.removesuffix("s"): unit for unit in UNITS if len(unit) > 2}


def bind_window(window: Window | None, timestamp: Attribute, time_unit: str | None, faults: Faults) -> TimeWindow | CountWindow | None:
    """The window of a query over events whose time is `timestamp`; None without WITHIN."""
    tick = _tick(timestamp, time_unit, faults)
    if window is None:
        return None
    if window.amount < 0:
        faults.error(f"the window {_written(window)} is negative", window.span)
        return None
    if window.unit == EVENTS:
        return _count(window, faults)
    if window.unit is not None and tick is None:
        if time_unit is None:
            hint = "say the length of one tick by time_unit= (ns, us, ms, s, minutes …), or write the window without a unit"
            faults.error(f"{timestamp.name} is {timestamp.type}: {_written(window)} needs the length of its ticks", window.span, hint)
        return None
    return TimeWindow(_length(window, timestamp, tick))


def _count(window: Window, faults: Faults) -> CountWindow | None:
    if window.amount == int(window.amount) and window.amount >= 1:
        return CountWindow(int(window.amount))
    faults.error(f"a window of {_written(window)} is not a whole number of events from 1 up", window.span)
    return None


def _tick(timestamp: Attribute, time_unit: str | None, faults: Faults) -> int | None:
    """The nanoseconds of one tick of the timestamp column; None if nobody said."""
    match timestamp.type.kind:
        case Kind.TIMESTAMP:
            tick = UNITS["seconds"] // TICKS_PER_SECOND[timestamp.type.unit]
        case Kind.DATE:
            tick = UNITS["days"]
        case _:
            return _number_tick(time_unit, faults)
    if time_unit is not None:
        faults.error(f"time_unit={time_unit!r} is for number columns: {timestamp.name} is {timestamp.type}")
    return tick


def _number_tick(time_unit: str | None, faults: Faults) -> int | None:
    if time_unit is None:
        return None
    if time_unit not in UNIT_NAMES:
        faults.unknown("time_unit", time_unit, UNIT_NAMES)
        return None
    return UNITS[UNIT_NAMES[time_unit]]


def _length(window: Window, timestamp: Attribute, tick: int | None) -> int | float:
    """The window in ticks: whole ones, at most the largest, unless the column is a float."""
    ticks = Fraction(window.amount)
    if window.unit is not None and tick is not None:
        ticks = ticks * UNITS[window.unit] / tick
    return approximate(ticks) if timestamp.type.kind is Kind.FLOAT else min(math.floor(ticks), LONGEST)


def _written(window: Window) -> str:
    return f"{window.amount} {window.unit}" if window.unit else str(window.amount)
