"""Names that stand alone, without a variable or in no column: what they may have meant."""

from __future__ import annotations

import pytest

from tests.analysis.queries import SCHEMA, errors

ATTRIBUTES = f"the attributes are {', '.join(SCHEMA.names)}"
TIMES = "write DATE '{}'"
NOW = "a query means the same whenever it runs: write the time as a literal, TIMESTAMP '2026-01-31 10:00:00'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 1", "'id' stands alone: an attribute belongs to a variable; write a.id"),
        ('a.s = "fr"', "'fr' stands alone: an attribute belongs to a variable; a text stands in single quotes: 'fr'"),
        ("a.ts > Current_Date", f"'Current_Date' stands alone: an attribute belongs to a variable; {NOW}"),
        ("a.s = dy", "'dy' stands alone: an attribute belongs to a variable; did you mean a.day? a text stands in single quotes: 'dy'"),
        ('a.n = "quux"', "'quux' stands alone: an attribute belongs to a variable; a text stands in single quotes: 'quux'"),
        ('a.n > "5"', "'5' stands alone: an attribute belongs to a variable; leave the quotes out: 5"),
        *(
            (text, f"'quux' stands alone: an attribute belongs to a variable; write a.id; {ATTRIBUTES}")
            for text in (
                "a.n > quux",
                "quux = 1",
                "a.n BETWEEN 1 AND quux",
                "a.n IN (quux)",
                "quux + 1 > a.n",
                "a.n = b.n + quux",
                "quux < a.n * 2",
                "prev(b.n) = quux",
                "count(b) > quux",
                "max(b.n) > quux",
                "quux < 5 days",
            )
        ),
        (
            'a.zoned > "2026-01-01 10:00:00"',
            "'2026-01-01 10:00:00' stands alone: an attribute belongs to a variable; write TIMESTAMP '2026-01-01 10:00:00+00:00'",
        ),
        ("a.flag = quux", f"'quux' stands alone: an attribute belongs to a variable; write a.flag; {ATTRIBUTES}"),
        *(
            (text, "'quux' stands alone: an attribute belongs to a variable; a text stands in single quotes: 'quux'")
            for text in ("quux <> last(b.s)", "a.s IN ('x', quux)", "prev(b.s) = quux", "a.s BETWEEN quux AND 'x'", "a.n > length(quux)")
        ),
        *(
            (f'{other} "{name}"', f"'{name}' stands alone: an attribute belongs to a variable; {TIMES.format(name)}")
            for other, name in (("a.ts >", "2026-01-01"), ("a.day =", "2020-01-01"))
        ),
        *(
            (f'{other} "{name}"', f"'{name}' stands alone: an attribute belongs to a variable; a text stands in single quotes: '{name}'")
            for other, name in (("a.took >", "5"), ("a.n =", "quux"))
        ),
    ],
)
def test_names_in_conditions(text: str, expected: str) -> None:
    assert errors(f"PATTERN SEQ(a, b+) WHERE {text}") == [expected]


def test_the_variable_of_a_hint_is_quoted_where_it_must_be() -> None:
    (told,) = errors('PATTERN SEQ(A "my a", B b) WHERE "my a".n > quux')
    assert 'write "my a".id; the attributes are ' in told


@pytest.mark.parametrize(
    ("condition", "hint"),
    [('ts > "2026-01-01"', TIMES.format("2026-01-01")), ('n > "quux"', "a text stands in single quotes: 'quux'")],
)
def test_quoted_names_in_conditions_on_one_event(condition: str, hint: str) -> None:
    (error,) = errors(f"PATTERN SEQ(a, b+ UNTIL ({condition}), c)")
    assert error.endswith(hint)
