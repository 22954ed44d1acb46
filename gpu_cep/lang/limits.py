"""Name the limits of queries; docs/language.md lists them."""

from __future__ import annotations

import re

MAX_CHARACTERS = 10_000_000
"""The most characters of a query."""

MAX_TOKENS = 200_000
"""The most words and signs of a query, of which a whole list of constants is one."""

MAX_DEPTH = 200
"""How deep brackets and operators may nest, so that no pass over the tree meets Python's recursion limit."""

MAX_CONDITIONS = 20_000
"""The most conditions that one AND or OR joins."""

MAX_ITEMS = 200_000
"""The most items of a list of IN."""

MAX_DIGITS = 1_000
"""The most characters of a number."""

MAX_LIKE_CHARACTERS = 100_000
"""The most characters of a pattern of LIKE."""

MAX_WILDCARDS = 1_000
"""The most wildcards of a pattern of LIKE."""


def fault_of_items(number: int) -> str | None:
    """Return why a list of IN cannot have `number` items; None if it can."""
    if number <= MAX_ITEMS:
        return None
    return f"IN has more than {MAX_ITEMS:,} items: join the values to the events as a column, and test that column"


def fault_of_conditions(number: int) -> str | None:
    """Return why AND or OR cannot join `number` conditions; None if it can."""
    if number <= MAX_CONDITIONS:
        return None
    return f"AND and OR join at most {MAX_CONDITIONS:,} conditions: test for many values with IN"


def fault_of_like(pattern: str) -> str | None:
    """Return why a text cannot be a pattern of LIKE; None if it can."""
    if len(pattern) > MAX_LIKE_CHARACTERS:
        return f"a pattern of LIKE of {len(pattern):,} characters is too long: {MAX_LIKE_CHARACTERS:,} are the most"
    wildcards = len(_PLAIN.sub("", pattern))
    if wildcards > MAX_WILDCARDS:
        return f"a pattern of LIKE with {wildcards:,} wildcards has too many: {MAX_WILDCARDS:,} are the most"
    return None


# All of a pattern but its wildcards.
_PLAIN = re.compile(r"\\.|[^%_]", re.DOTALL)
