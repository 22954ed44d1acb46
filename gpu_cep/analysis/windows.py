"""Bind WITHIN and other lengths: turn them into ticks of the timestamp column, or into events."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.literals import approximate
from gpu_cep.analysis.types import TICKS_PER_SECOND, Attribute, Kind
from gpu_cep.lang.ast import UNITS, Window
from gpu_cep.lang.literals import with_unit

EVENTS = "events"

# The greatest distance between two int64 times.
LONGEST = 2**64 - 1

# Names of units that time_unit= takes -> their canonical names.
UNIT_NAMES = {unit: unit for unit in UNITS} | {"s": "seconds"} | {unit.removesuffix("s"): unit for unit in UNITS if len(unit) > 2}

_LENGTH = re.compile(r"(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?)\s*([a-z]*)", re.ASCII)


def bind_window(window: Window | None, timestamp: Attribute, time_unit: str | None, faults: Faults) -> TimeWindow | CountWindow | None:
    """Return the window of a query over events whose time is `timestamp`; None without WITHIN."""
    if window is not None and window.unit == EVENTS and window.amount >= 0:
        _tick(timestamp, time_unit, faults)
        return _count(window, faults)
    length = bind_length("window", window, timestamp, time_unit, faults)
    return None if length is None else TimeWindow(length)


def bind_length(
    what: str, length: Window | None, timestamp: Attribute, time_unit: str | None, faults: Faults, *, least: bool = False
) -> int | float | None:
    """Return a length of time in ticks of the timestamp column; None without one. Messages call it `what`.

    A length that is no whole number of ticks is rounded down or, if `least` is set, up.
    """
    tick = _tick(timestamp, time_unit, faults)
    if length is None:
        return None
    if length.amount < 0:
        faults.error(f"the {what} {_window_text(length)} is negative", length.span)
        return None
    if length.unit is not None and tick is None:
        if time_unit is None:
            hint = f"say the length of one tick by time_unit= (ns, us, ms, s, minutes …), or write the {what} without a unit"
            faults.error(f"{timestamp.name} is {timestamp.type}: {_window_text(length)} needs the length of its ticks", length.span, hint)
        return None
    return _ticks(length, timestamp, tick, math.ceil if least else math.floor)


def length_of(given: float | str) -> Window | None:
    """Return the length that a caller gives as a number of ticks or as text such as ``30 seconds``.

    Return None for anything else.
    """
    found = _LENGTH.fullmatch(str(given).strip().lower())
    if isinstance(given, bool) or found is None or found[2] not in (*UNIT_NAMES, ""):
        return None
    return Window(Decimal(found[1]), UNIT_NAMES.get(found[2]))


def _count(window: Window, faults: Faults) -> CountWindow | None:
    if window.amount == int(window.amount) and window.amount >= 1:
        return CountWindow(int(window.amount))
    faults.error(f"a window of {_window_text(window)} is not a whole number of events from 1 up", window.span)
    return None


def _tick(timestamp: Attribute, time_unit: str | None, faults: Faults) -> int | None:
    """Return the nanoseconds of one tick of the timestamp column; None if they are unknown."""
    tick = own_tick(timestamp)
    if tick is None:
        return _number_tick(time_unit, faults)
    if time_unit is not None:
        faults.error(f"time_unit={time_unit!r} is for number columns: {timestamp.name} is {timestamp.type}")
    return tick


def own_tick(timestamp: Attribute) -> int | None:
    """Return the nanoseconds of one tick that a timestamp's type tells; None for a type of numbers."""
    match timestamp.type.kind:
        case Kind.TIMESTAMP:
            return UNITS["seconds"] // TICKS_PER_SECOND[timestamp.type.unit]
        case Kind.DATE:
            return UNITS["days"]
    return None


def _number_tick(time_unit: str | None, faults: Faults) -> int | None:
    if time_unit is None:
        return None
    if time_unit not in UNIT_NAMES:
        faults.unknown("time_unit", time_unit, UNIT_NAMES)
        return None
    return UNITS[UNIT_NAMES[time_unit]]


def _ticks(length: Window, timestamp: Attribute, tick: int | None, whole: Callable[[Fraction], int]) -> int | float:
    """Return a length in ticks: a float for a float column, else an int of at most :data:`LONGEST`.

    `whole` rounds a fraction to an int.
    """
    ticks = Fraction(length.amount)
    if length.unit is not None and tick is not None:
        ticks = ticks * UNITS[length.unit] / tick
    return approximate(ticks) if timestamp.type.kind is Kind.FLOAT else min(whole(ticks), LONGEST)


def _window_text(window: Window) -> str:
    return str(window.amount) if window.unit is None else with_unit(str(window.amount), window.unit)
