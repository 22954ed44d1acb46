"""Turn literals into typed constants in their machine representation."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction

from gpu_cep.analysis.bound_expressions import Constant
from gpu_cep.analysis.types import BOOLEAN, DATE, FLOAT, INTEGER, NULL, STRING, TICKS_PER_SECOND, decimal, duration, timestamp
from gpu_cep.lang.ast import UNITS

INT32_MAX = 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
SECONDS_PER_DAY = 86_400

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
# The arithmetic of decimals that rounds nothing.
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
_NANOSECONDS = TICKS_PER_SECOND["ns"]


def constant(value: int | Decimal | float | str | bool | date | datetime | None) -> Constant:
    """Return the constant of a literal's value.

    A number with a fraction becomes a DECIMAL with exactly its digits. What it meets may turn it into a
    float (see :func:`gpu_cep.analysis.coercion.common_type`).
    A timestamp takes the coarsest unit that is exact.
    """
    match value:
        case None:
            return Constant(None, NULL)
        case bool():
            return Constant(value, BOOLEAN)
        case int():
            return Constant(value, INTEGER)
        case float():
            return Constant(value, FLOAT)
        case Decimal():
            return _fraction(value)
        case str():
            return Constant(value, STRING)
        case datetime():
            return _timestamp(value)
        case date():
            return Constant(value.toordinal() - _EPOCH_DAY, DATE)


def span_of_time(amount: int | Decimal, unit: str) -> Constant | None:
    """Return a duration in the coarsest unit that holds it exactly; None if it has parts of a nanosecond."""
    nanoseconds = Fraction(amount) * UNITS[unit]
    if nanoseconds.denominator != 1:
        return None
    ticks, tick_unit = _coarsest(int(nanoseconds))
    return Constant(ticks, duration(tick_unit))


def approximate(value: Fraction) -> float:
    """Return the nearest float; an infinity for a number beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _fraction(value: Decimal) -> Constant:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return Constant(float(value), FLOAT)
    scale = max(0, -exponent)
    unscaled = int(value.scaleb(scale, _EXACT))
    return Constant(unscaled, decimal(max(len(str(abs(unscaled))), scale), scale))


def _timestamp(value: datetime) -> Constant:
    zone = None if value.tzinfo is None else "UTC"
    # a time in a zone may be a day beyond what datetime holds in UTC
    since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or timedelta(0))
    microseconds = (since.days * SECONDS_PER_DAY + since.seconds) * TICKS_PER_SECOND["us"] + since.microseconds
    ticks, unit = _coarsest(microseconds * (_NANOSECONDS // TICKS_PER_SECOND["us"]))
    return Constant(ticks, timestamp(unit, zone))


def _coarsest(nanoseconds: int) -> tuple[int, str]:
    for unit, per_second in TICKS_PER_SECOND.items():
        length = _NANOSECONDS // per_second
        if nanoseconds % length == 0:
            return nanoseconds // length, unit
    raise AssertionError("a whole number of nanoseconds is a whole number of ns ticks")
