"""The limits of the language: the table in the docs has the numbers of the code, and each holds on both sides."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from unittest.mock import patch

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.analysis import coercion, memberships, normalize
from gpu_cep.engine.matchers.automaton import ses_automaton
from gpu_cep.errors import CepError, MatchLimitExceeded, PatternError, PatternSyntaxError, UnsupportedError
from gpu_cep.lang import branches, groups, limits, parser
from gpu_cep.plan import programs
from gpu_cep.plan.row_patterns import planner as row_planner
from gpu_cep.plan.row_patterns import steps
from gpu_cep.queries.plans import as_query

LANGUAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"
EVENTS = pa.table({"ts": [1, 2], "n": [1, 2], "s": ["x", "y"], "type": ["A", "B"]})


class Limit(NamedTuple):
    """A limit of queries: its number, a call that asks for so much of it, and the error of asking for more.

    `tested`: where the number stands in the code, and a smaller one that is tested in its place, since so much takes seconds.
    """

    most: int
    ask: Callable[[int], object]
    error: type[CepError]
    tested: tuple[ModuleType, str, int] | None = None


def match(query: str, events: pa.Table = EVENTS) -> pa.Table:
    return cep.match(events, query, output="count")


def rows(pattern: str) -> pa.Table:
    return cep.match(EVENTS, f"MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN ({pattern}))")


def where(condition: str) -> pa.Table:
    return match(f"PATTERN SEQ(a, b) WHERE {condition}")


def of_width(digits: int) -> pa.Table:
    column = pa.array([Decimal(1), Decimal(2)], pa.decimal128(digits, 0))
    return match("PATTERN a WHERE a.d > 1", EVENTS.append_column("d", column))


def of_floats(number: int) -> pa.Table:
    names = [f"f{n}" for n in range(number)]
    events = pa.table({"ts": [1, 2], **{name: [1.0, 2.0] for name in names}})
    terms = " + ".join(f"{'ab'[n % 2]}.{name}" for n, name in enumerate(names))
    return match(f"PATTERN SEQ(a, b) WHERE {terms} > 0", events)


def of_steps(number: int) -> pa.Table:
    """Search windows that need fewer steps than _STEPS in all, or one that needs more, if `number` is more."""
    rows = 5 if number <= _STEPS else 40
    table = pa.table({"ts": range(rows), "x": [n * 7 % 40 / 40 for n in range(rows)]})
    text = "PATTERN AND(a+, b+, c) WHERE a.x < b.x AND b.x < c.x AND c.x < a.x"
    # steps are counted at the end of a call
    with patch.object(ses_automaton, "STEPS_PER_CALL", number):
        return cep.match(table, text, strategy="robust_skip_till_next_match")


_STEPS = 1 << 12


LIMITS = {
    "characters of a query": Limit(limits.MAX_CHARACTERS, lambda n: match("PATTERN a".ljust(n)), PatternSyntaxError),
    "words and signs of a query, where a list of constants counts once": Limit(
        limits.MAX_TOKENS,
        lambda n: cep.parse(f"PATTERN a RETURN a.n{', a' * ((n - 6) // 2)}{';' * (n % 2)}"),
        PatternSyntaxError,
        (parser, "MAX_TOKENS", 1_000),
    ),
    "levels of brackets and operators; `1 + 2 + 3` has two, `AND` and `OR` of any number one": Limit(
        limits.MAX_DEPTH, lambda n: where("(" * n + "a.n = 1" + ")" * n), PatternSyntaxError
    ),
    "characters of a number": Limit(limits.MAX_DIGITS, lambda n: match(f"PATTERN a WHERE a.n < 0.{'0' * (n - 2)}"), PatternSyntaxError),
    "conditions joined by one `AND` or `OR`": Limit(
        limits.MAX_CONDITIONS,
        lambda n: cep.parse("PATTERN a WHERE " + " OR ".join(["TRUE"] * n)),
        PatternSyntaxError,
        (limits, "MAX_CONDITIONS", 1_000),
    ),
    "items of `IN`": Limit(
        limits.MAX_ITEMS,
        lambda n: cep.parse(f"PATTERN a WHERE a.n IN (0{',1' * (n - 1)})"),
        PatternSyntaxError,
        (limits, "MAX_ITEMS", 1_000),
    ),
    "items of `IN` behind an expression over several events": Limit(
        memberships.MOST_IN_PROGRAMS, lambda n: where(f"a.n + b.n IN ({', '.join(map(str, range(n)))})"), UnsupportedError
    ),
    "characters of a pattern of `LIKE`": Limit(limits.MAX_LIKE_CHARACTERS, lambda n: where(f"a.s LIKE '{'x' * n}'"), PatternError),
    "wildcards of a pattern of `LIKE`": Limit(limits.MAX_WILDCARDS, lambda n: where(rf"a.s LIKE '\%{'x_' * n}'"), PatternError),
    "variables of a pattern": Limit(
        normalize.MAX_VARIABLES, lambda n: match(f"PATTERN AND({', '.join(f'v{v}' for v in range(n))})"), UnsupportedError
    ),
    "branches of a pattern, which `a?` doubles": Limit(
        branches.MAX_BRANCHES, lambda n: match(f"PATTERN OR({', '.join(f'v{v}' for v in range(n))})"), UnsupportedError
    ),
    "repetitions of a group in all repetitions of the groups around it": Limit(
        groups.MOST_REPETITIONS, lambda n: as_query(f"PATTERN SEQ(a){{{n}}}"), UnsupportedError
    ),
    "the same where one of them may have several numbers of repetitions, `SEQ(…){n,m}`": Limit(
        groups.MOST_NUMBERS, lambda n: as_query(f"PATTERN SEQ(a, b){{1,{n}}}"), UnsupportedError
    ),
    "bounds of a quantifier": Limit(normalize.MAX_BOUND, lambda n: match(f"PATTERN a{{{n}}}"), UnsupportedError),
    "float attributes in one condition over several events, and others": Limit(programs.BANK_COLUMNS, of_floats, UnsupportedError),
    "digits of a decimal in a condition": Limit(coercion.MAX_DIGITS, of_width, UnsupportedError),
    "steps of `robust_skip_till_next_match` in one window, without `max_steps=`": Limit(
        ses_automaton.MOST_ROBUST_STEPS, of_steps, MatchLimitExceeded, (ses_automaton, "MOST_ROBUST_STEPS", _STEPS)
    ),
    "variables of a `MATCH_RECOGNIZE`": Limit(
        row_planner.MOST_VARIABLES, lambda n: rows(" ".join(f"v{v}" for v in range(n))), UnsupportedError
    ),
    "variables of a `MATCH_RECOGNIZE`, each as often as quantifiers and `PERMUTE` repeat it": Limit(
        steps.MOST_STATES, lambda n: rows(f"v{{{n}}}"), UnsupportedError
    ),
}


def test_the_docs_have_the_numbers_of_the_code() -> None:
    section = LANGUAGE.read_text(encoding="utf-8").partition("\n## Limits\n")[2]
    table = re.findall(r"^\| (.+) \| ([\d,]+) \| `(\w+)` \|$", section, re.MULTILINE)
    assert table == [(name, f"{limit.most:,}", limit.error.__name__) for name, limit in LIMITS.items()]


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_holds_on_both_sides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most, ask, error, tested = LIMITS[name]
    if tested is not None:
        monkeypatch.setattr(*tested)
        most = tested[-1]
    ask(most)
    with pytest.raises(error) as refused:
        ask(most + 1)
    assert type(refused.value) is error
    assert re.search(rf"{most:,}|{most}", str(refused.value))
    assert len(str(refused.value)) < 2_000
