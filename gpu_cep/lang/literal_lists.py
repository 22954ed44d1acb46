"""Read the whole list of constants of ``IN (…)``, which the grammar takes as one token, item by item."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from gpu_cep.lang import literals
from gpu_cep.lang.ast import Literal, Span
from gpu_cep.lang.diagnosis import span_of
from gpu_cep.lang.limits import MAX_ITEMS, fault_of_items
from gpu_cep.lang.tokens import fault, read

if TYPE_CHECKING:
    from lark import Token

CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}

_TEXT = r"'[^']*+(?:''[^']*+)*+'"
# The grammar has checked the list: this only finds where its items begin and end.
_ITEM = re.compile(
    rf"(?P<text>{_TEXT})|(?P<number>(?:-\s*)?[0-9.](?:[0-9.%]|e[-+]?)*)|(?P<date>date\s*{_TEXT})|(?P<timestamp>timestamp\s*{_TEXT})|(?P<word>\w+)",
    re.IGNORECASE,
)


def read_literals(token: Token) -> tuple[Literal, ...]:
    """Return the constants of a list in brackets, each with its place.

    Raises
    ------
    PatternSyntaxError
        An item is no number, date or timestamp that exists; the error has its place.
    """
    begin = span = span_of(token)
    lines = list(accumulate((len(line) for line in token.split("\n")), lambda start, size: start + size + 1, initial=0))

    def place(at: int) -> tuple[int, int]:
        line = bisect_right(lines, at) - 1
        return begin.line + line, at - lines[line] + (1 if line else begin.column)

    found = []
    for item in islice(_ITEM.finditer(token), MAX_ITEMS + 1):
        span = Span(*place(item.start()), *place(item.end()))
        found.append(Literal(read(_READERS[item.lastgroup or ""], item[0], span), span=span))
    check_number_of_items(len(found), span)
    return tuple(found)


def check_number_of_items(number: int, span: Span) -> None:
    """Refuse a list of `number` items if it is too long; `span` is the place of the error."""
    message = fault_of_items(number)
    if message is not None:
        raise fault(message, span)


def _number(text: str) -> Any:
    value = literals.read_number(text.lstrip("-").lstrip())
    return literals.negative(value) if text.startswith("-") else value


def _quoted(text: str) -> str:
    return literals.read_text(text[text.index("'") :])


_READERS: dict[str, Callable[[str], Any]] = {
    "text": literals.read_text,
    "number": _number,
    "date": lambda text: literals.read_date(_quoted(text)),
    "timestamp": lambda text: literals.read_timestamp(_quoted(text)),
    "word": lambda text: CONSTANTS[text.upper()],
}
