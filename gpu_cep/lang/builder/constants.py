"""Turn Python values into literals and names of the syntax tree, as the equivalent text would."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import SupportsIndex, TypeVar

from gpu_cep.errors import Diagnostic, PatternError, nearest
from gpu_cep.lang import literals
from gpu_cep.lang.ast import DurationLiteral, Literal
from gpu_cep.lang.limits import MAX_DIGITS

T = TypeVar("T")

Constant = SupportsIndex | float | Decimal | str | date | datetime | timedelta | None
Amount = SupportsIndex | float | Decimal | str | timedelta

_MEASURE = re.compile(r"\s*(-?\s*[\d.]+)\s*([^\W\d]*)\s*")
_LONG = f"a number of more than {MAX_DIGITS:,} characters is too long"
_MICROSECONDS = {"days": 86_400_000_000, "hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000, "ms": 1_000, "us": 1}


def constant(value: object) -> Literal | DurationLiteral:
    """Return the literal that stands for `value`.

    A float is read as its shortest decimal text: 0.8 is ``0.8``, 1e20 is ``1e+20``.
    """
    match value:
        case None | bool():
            return Literal(value)
        case str():
            return Literal(characters(value))
        case float():
            return Literal(_number(float(value)))
        case Decimal():
            return Literal(_decimal(value))
        case datetime():
            return Literal(_timestamp(value))
        case date():
            return Literal(date(value.year, value.month, value.day))
        case timedelta():
            return DurationLiteral(*_whole_units(value))
    return Literal(whole(value, _NO_OPERAND.format(value=value)))


_NO_OPERAND = (
    "{value!r} is no operand: operands are attributes (v.x, or v['x'] where a method of v is called x), what is made of them, "
    "numbers, text, truth values, None, dates, timestamps and timedeltas"
)


def characters(value: str) -> str:
    """Return `value` as a plain str; raise PatternError if a query cannot hold it."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise PatternError(f"U+{ord(value[error.start]):04X} is half of a surrogate pair and no character") from None
    return str.__str__(value)


def name(value: object, what: str) -> str:
    """Return `value` as a plain str, if it is a name; errors call it the name of `what`."""
    if not isinstance(value, str):
        raise TypeError(f"the name of {what} is text, not {value!r}")
    if not value:
        raise PatternError(f"the name of {what} cannot be empty")
    return characters(value)


def whole(value: object, message: str) -> int:
    """Return `value` as an int, if it is a whole number of Python or NumPy; else raise TypeError(`message`)."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(message)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(message) from None
    if abs(number) >= 10**MAX_DIGITS:
        raise PatternError(_LONG)
    return number


def measure(amount: Amount, unit: str | None) -> tuple[int | Decimal, str | None]:
    """Return an amount and the canonical name of its unit, ``events``, or None.

    They come from a number and a unit, from one text, or from a timedelta.
    """
    if unit is not None and isinstance(amount, str | timedelta):
        raise TypeError(f"{amount!r} says its unit itself; {unit!r} is one too many")
    if isinstance(amount, timedelta):
        return _whole_units(amount)
    if isinstance(amount, str):
        return _read_measure(amount)
    return _amount(amount), None if unit is None else _unit(unit)


def _number(value: float) -> int | Decimal | float:
    if not math.isfinite(value):
        raise PatternError(f"{value} cannot be written as a literal")
    number = literals.read_number(repr(abs(value)))
    return literals.negative(number) if math.copysign(1.0, value) < 0 else number


def _decimal(value: Decimal) -> Decimal:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise PatternError(f"{value} cannot be written as a literal")
    if max(len(digits) + exponent, 1) + 1 + max(-exponent, 1) > MAX_DIGITS:
        raise PatternError(_LONG)
    return value


def _timestamp(value: datetime) -> datetime:
    """Return a plain datetime whose zone, if any, is an offset of whole minutes.

    The value may be pandas' Timestamp, which is a datetime, too.
    """
    if value != value:
        raise PatternError(f"{value} is no time; for NULL write None")
    if getattr(value, "nanosecond", 0):
        raise PatternError(f"{value}: a timestamp literal has microseconds, and no nanoseconds")
    plain = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    offset = value.utcoffset()
    if offset is None:
        return plain
    odd = offset % timedelta(minutes=1)
    return (plain - odd).replace(tzinfo=timezone(offset - odd))


def _whole_units(value: timedelta) -> tuple[int, str]:
    """Return a timedelta as a whole number of the largest possible unit (days at most), and that unit."""
    if getattr(value, "nanoseconds", 0):
        raise PatternError(f"{value}: write durations of nanoseconds as duration(…, 'ns')")
    length = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    unit = next(unit for unit, size in _MICROSECONDS.items() if length % size == 0)
    return length // _MICROSECONDS[unit], unit


def _read_measure(text: str) -> tuple[int | Decimal, str | None]:
    found = _MEASURE.fullmatch(text)
    if not found:
        raise PatternError(f"{text!r} is no length of time: a number and a unit are, as in '15 days'")
    return _read(literals.read_amount, found[1]), _unit(found[2]) if found[2] else None


def _amount(value: object) -> int | Decimal:
    match value:
        case float() if not math.isfinite(value):
            raise PatternError(f"{value} is no length of time")
        case float():
            return _decimal(Decimal(repr(float(value))))
        case Decimal():
            return _decimal(value)
    return whole(value, f"{value!r} is no length of time: a number with a unit, a text such as '15 days' or a timedelta is")


def _unit(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a unit of time is text, not {text!r}")
    if text.lower() in ("event", "events"):
        return "events"
    unit = _read(literals.read_unit, text)
    if unit is None:
        hint = nearest(text, (*literals.UNIT_SPELLINGS, "events"))
        raise PatternError([Diagnostic(f"{text!r} is no unit of time", hint=hint)])
    return unit


def _read(reader: Callable[[str], T], text: str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise PatternError(str(error)) from None
