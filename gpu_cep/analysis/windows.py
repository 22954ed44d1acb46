"""Bind WITHIN and other lengths: turn them into ticks of the timestamp column, or into events.

A number without a unit counts what `time_unit` says. Without `time_unit` it counts the ticks of a
column of numbers; over dates and timestamps it is an error, since their unit differs from file to file.
"""

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
from gpu_cep.lang.literals import UNIT_SPELLINGS, with_unit

EVENTS = "events"

# The greatest distance between two int64 times.
LONGEST = 2**64 - 1

# The units of time_unit= as messages name them, and all names that it takes -> their canonical names.
TIME_UNITS = ("ns", "us", "ms", "s", "minutes", "hours", "days", "weeks")
UNIT_NAMES = {unit: unit for unit in UNITS} | {"s": "seconds"} | {unit.removesuffix("s"): unit for unit in UNITS if len(unit) > 2}

# Units by the names that others give them.
_PARTS = {"milli": "ms", "micro": "us", "nano": "ns"}
_SYMBOLS = {f"{part}{second}": symbol for part, symbol in _PARTS.items() for second in ("", "second")}
_SYMBOLS |= {"sec": "s", "min": "minutes", "h": "hours", "d": "days"}

_LENGTH = re.compile(r"(-?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)\s*([^\W\d_]*)")


def bind_window(window: Window | None, timestamp: Attribute, time_unit: str | None, faults: Faults) -> TimeWindow | CountWindow | None:
    """Return the window of a query over events whose time is `timestamp`; None without WITHIN."""
    if window is not None and window.unit == EVENTS and window.amount >= 0:
        return _count(window, faults)
    length = bind_length("window", window, timestamp, time_unit, faults, form="WITHIN {}")
    return None if length is None else TimeWindow(length)


def bind_length(
    what: str,
    length: Window | None,
    timestamp: Attribute,
    time_unit: str | None,
    faults: Faults,
    *,
    form: str = "{}",
    least: bool = False,
) -> int | float | None:
    """Return a length of time in ticks of the timestamp column.

    Return None without one, or if it has a fault.

    Parameters
    ----------
    what
        What messages call the length.
    length
        The length as it is written.
    timestamp
        The column of times.
    time_unit
        What a number without a unit counts, and the tick of a column of numbers. An unknown one is
        not reported here, but by :func:`check_time_unit`.
    faults
        Receives the fault.
    form
        How the length is written in its place, with ``{}`` for the length. A hint shows it.
    least
        Whether a length that is no whole number of ticks is rounded up, not down.
    """
    if length is None:
        return None
    if length.amount < 0:
        faults.error(f"the {what} {_window_text(length)} is negative", length.span)
        return None
    if time_unit is not None and time_unit not in UNIT_NAMES:
        return None
    scale = _scale(length, timestamp, time_unit)
    if scale is None:
        _refuse_length(what, length, timestamp, form, faults)
        return None
    return _ticks(length, timestamp, scale, math.ceil if least else math.floor)


def check_time_unit(time_unit: str | None, faults: Faults) -> None:
    """Record a fault if `time_unit` is no unit of time."""
    if time_unit is not None and time_unit not in UNIT_NAMES:
        symbol = _SYMBOLS.get(time_unit.lower().removesuffix("s"))
        if symbol is None:
            faults.unknown("time_unit", time_unit, UNIT_NAMES)
        else:
            faults.error(f"unknown time_unit {time_unit!r}", hint=f"write time_unit={symbol!r}")


def length_of(given: float | str) -> Window | None:
    """Return the length that a caller gives as a number or as text such as ``30 seconds``, with a unit as queries spell it.

    Return None for anything else.
    """
    found = _LENGTH.fullmatch(str(given).strip().lower())
    if isinstance(given, bool) or found is None or found[2] not in (*UNIT_SPELLINGS, ""):
        return None
    return Window(Decimal(found[1]), UNIT_SPELLINGS.get(found[2]))


def _count(window: Window, faults: Faults) -> CountWindow | None:
    if window.amount == int(window.amount) and window.amount >= 1:
        return CountWindow(int(window.amount))
    faults.error(f"a window of {_window_text(window)} is not a whole number of events from 1 up", window.span)
    return None


def _scale(length: Window, timestamp: Attribute, time_unit: str | None) -> Fraction | None:
    """Return how many ticks of the timestamp column one of a length's units is; None if that is not known."""
    counted = None if time_unit is None else UNITS[UNIT_NAMES[time_unit]]
    tick, unit = own_tick(timestamp) or counted, counted if length.unit is None else UNITS[length.unit]
    if tick is None and unit is None:
        return Fraction(1)
    return None if tick is None or unit is None else Fraction(unit, tick)


def _refuse_length(what: str, length: Window, timestamp: Attribute, form: str, faults: Faults) -> None:
    """Record that a length of a unit meets a column of numbers, or a bare number a column of times."""
    column, text, units = f"{timestamp.name} is {timestamp.type}", _window_text(length), f"time_unit= ({', '.join(TIME_UNITS[:5])} …)"
    if length.unit is not None:
        hint = f"say the length of one tick by {units}, or write the {what} without a unit"
        faults.error(f"{column}: {text} needs the length of its ticks", length.span, hint)
        return
    fixed = form.format(with_unit(text, "days" if timestamp.type.kind is Kind.DATE else "seconds"))
    faults.error(f"{column}: the {what} {text} needs a unit", length.span, f"write {fixed}, or say by {units} what a number counts")


def own_tick(timestamp: Attribute) -> int | None:
    """Return the nanoseconds of one tick that a timestamp's type tells; None for a type of numbers."""
    match timestamp.type.kind:
        case Kind.TIMESTAMP:
            return UNITS["seconds"] // TICKS_PER_SECOND[timestamp.type.unit]
        case Kind.DATE:
            return UNITS["days"]
    return None


def _ticks(length: Window, timestamp: Attribute, scale: Fraction, whole: Callable[[Fraction], int]) -> int | float:
    """Return a length in ticks: a float for a float column, else an int of at most :data:`LONGEST`.

    `scale` is the number of ticks of one of the length's units. `whole` rounds a fraction to an int.
    """
    ticks = Fraction(length.amount) * scale
    return approximate(ticks) if timestamp.type.kind is Kind.FLOAT else min(whole(ticks), LONGEST)


def _window_text(window: Window) -> str:
    return str(window.amount) if window.unit is None else with_unit(str(window.amount), window.unit)
