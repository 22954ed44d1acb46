"""Functions of other languages: what the error of a call says to write here, with the call's own arguments."""

from __future__ import annotations

import pytest

from tests.analysis.queries import errors

NOW = "a query means the same whenever it runs: write the time as a literal, TIMESTAMP '2026-01-31 10:00:00'"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("if(a.n > 1, 1, 2) = 1", "unknown function 'if'; write CASE WHEN a.n > 1 THEN 1 ELSE 2 END"),
        ("startswith(a.s, 'x')", "unknown function 'startswith'; write a.s LIKE 'x%'"),
        ("ends_with(lower(a.s), 'x')", "unknown function 'ends_with'; write lower(a.s) LIKE '%x'"),
        ("now() > a.ts", f"unknown function 'now'; {NOW}"),
        ("NVL(a.n, 1) = 1", "unknown function 'nvl'; write coalesce(a.n, 1)"),
        ("if() = 1", "unknown function 'if'; write CASE WHEN v.attr THEN x ELSE y END"),
        ("any_value(b.n) > 1", "unknown function 'any_value'; write first(b.n)"),
        (
            "datediff(minute, a.ts, b.ts) < 5",
            "unknown function 'datediff'; the difference of two times is a length of time: b.ts - a.ts > 5 minutes",
        ),
        (
            "isfirst(minute, 10)",
            "unknown function 'isfirst'; compute the interval of each event as a column, slot, and write"
            " SEQ(NOT(x), y) WHERE x.slot = y.slot, WITHIN its length",
        ),
        ("event_name() = 'a'", "unknown function 'event_name'; output='events' has the variable of each event, and match_id"),
        ("classifier() = 'a'", "unknown function 'classifier'; output='events' has the variable of each event, and match_id"),
        ("safe_divide(a.n + 1, -b.n) > 1", "unknown function 'safe_divide'; what is divided by 0 is NULL: write (a.n + 1) / (-b.n)"),
        ("isnull(a.n > 1)", "unknown function 'isnull'; write (a.n > 1) IS NULL, or coalesce(a.n > 1, x)"),
        ("rlike(a.s, b.s)", "unknown function 'rlike'; write regexp_like(a.s, 'pattern')"),
    ],
)
def test_a_call_is_written_here(text: str, told: str) -> None:
    assert errors(f"PATTERN SEQ(a, b+) WHERE {text}") == [told]
