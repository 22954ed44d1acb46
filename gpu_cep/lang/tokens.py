"""Read single tokens: names, numbers, amounts and units; raise a fault for those without a meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_cep.errors import Diagnostic, PatternSyntaxError, nearest
from gpu_cep.lang import literals
from gpu_cep.lang.ast import UNITS, Span
from gpu_cep.lang.diagnosis import span_of

if TYPE_CHECKING:
    from lark import Token

T = TypeVar("T")

_PART = re.compile(r"([0-9]{1,9})([^\W\d_]+)")
_PARTS = re.compile(r"(?:[0-9]{1,9}[^\W\d_]+)+")


@dataclass(frozen=True, slots=True)
class Word:
    """A name as written in the text; `quoted` says whether it was in quotes."""

    text: str
    span: Span
    quoted: bool


def fault(message: str, span: Span, hint: str | None = None) -> PatternSyntaxError:
    """Return the error for a text that breaks the grammar at a place."""
    return PatternSyntaxError([Diagnostic(message, span, hint)])


def read(reader: Callable[[str], T], text: str, span: Span) -> T:
    """Return what `reader` makes of a text; its ValueError becomes an error with the place in the query."""
    try:
        return reader(str(text))
    except ValueError as error:
        raise fault(str(error), span) from None


def word(span: Span, children: list[Any]) -> Word:
    """Return the name that a rule with one token holds."""
    token = children[0]
    quoted = token.type == "QUOTED"
    return Word(literals.read_text(token) if quoted else str(token), span, quoted)


def integer(token: Token) -> int:
    """Return the whole number that a token holds."""
    value = read(literals.read_number, token, span_of(token))
    assert isinstance(value, int)
    return value


def amount(token: Token) -> int | Decimal:
    """Return the number of a duration that a token holds, in quotes or not."""
    text = literals.read_text(token) if token.type == "TEXT" else str(token)
    return read(literals.read_amount, text, span_of(token))


def unit(token: Token, keywords: tuple[str, ...], number: str = "") -> str:
    """Return the unit that a token names; `number` is what stands before it, and `keywords` are what may be meant as well."""
    found = read(literals.read_unit, token, span_of(token))
    if found is None:
        counted = "a window of events is written WITHIN 10 EVENTS" if "EVENTS" in keywords and token.lower() in ("row", "rows") else None
        choices = (*literals.UNIT_SPELLINGS, *keywords)
        hint = counted or _in_one_unit(f"{number}{token}") or nearest(token, choices) or f"units are {', '.join(UNITS)}"
        raise fault(f"'{token}' is no unit of time", span_of(token), hint)
    return found


def _in_one_unit(written: str) -> str | None:
    """Return a hint that says a length such as ``1h30m`` in the finest of its units; None if it is no such length."""
    named = _PART.findall(written.lower())
    if len(named) < 2 or not _PARTS.fullmatch(written) or not all(name in literals.UNIT_SPELLINGS for _, name in named):
        return None
    parts = [(int(number), literals.UNIT_SPELLINGS[name]) for number, name in named]
    finest = min((name for _, name in parts), key=UNITS.__getitem__)
    amount = sum(number * UNITS[name] for number, name in parts) // UNITS[finest]
    return f"a length has one unit: {literals.with_unit(str(amount), finest)}"
