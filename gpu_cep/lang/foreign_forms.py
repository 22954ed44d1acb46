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


# Comparisons. Behind NOT the parser expects LIKE, BETWEEN and IN.
_LIKE, _REGEXP = "write v.attr LIKE {}", "write {}regexp_like(v.attr, 'pattern')"
COMPARISONS = (
    form(r"(none|nil|nan)\b", "write IS NULL", "NULL"),
    form(r"(not\s+)?contains\b", _LIKE.format("'%text%'"), "COMPARISON _LIKE"),
    form(r"(not\s+)?starts[_\s]*with\b", _LIKE.format("'text%'"), "COMPARISON _LIKE"),
    form(r"(not\s+)?ends[_\s]*with\b", _LIKE.format("'%text'"), "COMPARISON _LIKE"),
    form(r"not\s+(matches|regexp|rlike|similar\s+to)\b", _REGEXP.format("NOT "), ""),
    form(r"matches\b", _REGEXP.format(""), "COMPARISON"),
    form(r"(regexp|rlike|similar\s+to)\b", _REGEXP.format(""), ""),
    form(r"~", _REGEXP.format(""), "COMPARISON"),
    form(r"(not\s+)?ilike\b", "write lower(v.attr) LIKE 'text%'", ""),
)
