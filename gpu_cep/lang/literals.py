"""Read literals and names from their text, and write them.

Every reader raises ValueError with a message for the user. Every writer returns text that its reader
turns into the same value again.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from gpu_cep.lang.ast import STRATEGIES, UNITS, DurationLiteral, Literal
from gpu_cep.lang.limits import MAX_DIGITS

_SPELLINGS = {
    "ns": "nanosecond nanoseconds",
    "us": "µs μs microsecond microseconds",
    "ms": "millisecond milliseconds",
    "seconds": "s sec secs second",
    "minutes": "m min mins minute",
    "hours": "h hr hrs hour",
    "days": "d day",
    "weeks": "w week",
}
UNIT_SPELLINGS = {name: unit for unit in UNITS for name in (unit, *_SPELLINGS[unit].split())}

_NAME = re.compile(r"[^\W\d]\w*")
# The words of the grammar's NOT_RESERVED. Both match regardless of case, which differs from comparing lower case ("ſeq" is SEQ).
_RESERVED = re.compile(
    "from|partition|define|pattern|where|within|return|seq|and|or|not|as|between|in|is|like|true|false|null|" + "|".join(STRATEGIES),
    re.IGNORECASE,
)
# Words in front of brackets that call no function, here or in row patterns, though they may be names.
_NO_FUNCTIONS = frozenset({"case", "subset"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)? ?(Z|[+-]\d\d:\d\d)?", re.ASCII | re.IGNORECASE)
_WILDCARD = re.compile(r"[%_\\]")
_AMOUNT = re.compile(r"\s*(-?)\s*(\d+|\d+\.\d*|\.\d+)\s*", re.ASCII)


def read_number(text: str) -> int | Decimal | float:
    """Return an int, a Decimal for a fraction or a percentage, or a float for a number with an exponent."""
    _check_length(text)
    if text.endswith("%"):
        return Decimal(f"{text[:-1]}e-2")
    return _read_float(text) if "e" in text.lower() else _read_exact(text)


def _check_length(text: str) -> None:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text):,} characters is too long: {MAX_DIGITS:,} are the most")


def _read_exact(text: str) -> int | Decimal:
    return Decimal(text) if "." in text else int(text)


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is larger than any floating point number")
    if value == 0.0 and re.match(r"[0.]*[1-9]", text):
        raise ValueError(f"{text} is nearer to zero than any floating point number")
    return value


def write_number(value: int | Decimal | float) -> str:
    """Return the text of a number: a Decimal has a point in it, a float an exponent."""
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as a literal")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text if "." in text else f"{text}.0"
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def read_text(text: str) -> str:
    """Return the content of a quoted text or name; a doubled quote in it is one quote."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def write_text(value: str, quote: str = "'") -> str:
    """Return a text in quotes; those in it are doubled."""
    return quote + value.replace(quote, quote * 2) + quote


def escape_wildcards(text: str) -> str:
    """Return the pattern of LIKE that `text` alone fits."""
    return _WILDCARD.sub(r"\\\g<0>", text)


def write_name(name: str) -> str:
    """Return `name` as an identifier, quoted if it must be."""
    return write_text(name, '"') if _RESERVED.fullmatch(name) else write_attribute(name)


def names_no_function(name: str) -> bool:
    """Return whether `name` is a keyword, so that ``name(x)`` is no call of a function."""
    return name.lower() in _NO_FUNCTIONS or _RESERVED.fullmatch(name) is not None


def write_attribute(name: str) -> str:
    """Return `name` as it is written behind a dot, where no word is reserved."""
    if not name:
        raise ValueError("a name cannot be empty")
    return name if _NAME.fullmatch(name) else write_text(name, '"')


def read_date(text: str) -> date:
    """Return the date that the text of a DATE literal names; raise ValueError if it names none."""
    if not _DATE.fullmatch(text):
        raise ValueError("a date is written DATE '2020-01-31'")
    return date.fromisoformat(text)


def read_timestamp(text: str) -> datetime:
    """Return the point in time that the text of a TIMESTAMP literal names; raise ValueError if it names none."""
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        raise ValueError(
            "a timestamp is written TIMESTAMP '2020-01-31 10:00:00', with up to six digits of a second and a zone such as +02:00 or Z"
        )
    day, clock, fraction, zone = found.groups()
    zone = "+00:00" if zone in ("Z", "z") else zone or ""
    return datetime.fromisoformat(f"{day} {clock or '00:00:00'}.{(fraction or '').ljust(6, '0')}{zone}")


def read_amount(text: str) -> int | Decimal:
    """Return the number of a duration; inside ``INTERVAL '…'`` it may be negative."""
    found = _AMOUNT.fullmatch(text)
    if not found:
        raise ValueError("the amount of a duration is a whole number or a decimal: 15 days, INTERVAL '1.5' HOUR")
    _check_length(text)
    return _read_exact(found[1] + found[2])


def read_unit(text: str) -> str | None:
    """Return the canonical name of a unit of time; None if `text` is none."""
    unit = text.lower()
    if unit.rstrip("s") in ("month", "year"):
        raise ValueError(f"a {unit.rstrip('s')} has no fixed length: say it in days")
    return UNIT_SPELLINGS.get(unit)


def negative(value: int | Decimal | float) -> int | Decimal | float:
    """Return −`value` exactly; Decimal's own minus would round."""
    return value.copy_negate() if isinstance(value, Decimal) else -value


def with_unit(amount: str, unit: str) -> str:
    """Return an amount and its unit in words: ``1 day``, ``2 days``, ``1 ms``."""
    return f"{amount} {unit.removesuffix('s') if amount == '1' and len(unit) > 2 else unit}"


def write_duration(literal: DurationLiteral) -> str:
    """Return the text of a length of time; a negative one is an INTERVAL."""
    amount = write_number(literal.amount)
    return f"INTERVAL '{amount}' {literal.unit}" if amount.startswith("-") else with_unit(amount, literal.unit)


def write_literal(literal: Literal) -> str:
    """Return the text of a constant."""
    match literal.value:
        case None:
            return "NULL"
        case bool(value):
            return "TRUE" if value else "FALSE"
        case str(value):
            return write_text(value)
        case datetime() as value:
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date() as value:
            return f"DATE '{value.isoformat()}'"
        case value:
            return write_number(value)
