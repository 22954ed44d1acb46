"""Hold forms of other languages, and what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """Text of another language, and what to write instead.

    `expected`: terminals of which one must be expected; none are asked for if it is empty.
    """

    form: re.Pattern[str]
    hint: str
    expected: frozenset[str]


def form(written: str, hint: str, expected: str = "_PATTERN _RETURN $END") -> Form:
    """Return the form of text that the regular expression `written` fits, in whatever case."""
    return Form(re.compile(written, re.IGNORECASE | re.DOTALL), hint, frozenset(expected.split()))
