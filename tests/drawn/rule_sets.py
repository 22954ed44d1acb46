"""Random rule sets over random event tables for hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.rules import Rule
from tests.drawn.patterns import ALL_OPERATORS, ALPHABETS
from tests.drawn.queries import AFTER_MATCH, _options, queries
from tests.drawn.tables import CLOCKS, event_tables

# Queries that no events have a match for, or that have an error.
WRONG = ("PATTERN SEQ(A a, B b", "PATTERN SEQ(A a, B b) WHERE a.nothing > 1", "PATTERN SEQ(A a, NOT(B b))")


@dataclass(frozen=True, slots=True)
class RuleCase:
    """Rules by name, over a table."""

    rules: Mapping[str, Rule]
    events: pa.Table


@st.composite
def rule_sets(draw: st.DrawFn, max_size: int = 12, max_rules: int = 5, operators: tuple[str, ...] = ALL_OPERATORS) -> RuleCase:
    """Rules of the whole language with options of their own, some with errors, and a table for all of them."""
    clock, alphabet = draw(st.sampled_from(CLOCKS)), draw(st.sampled_from((*ALPHABETS, ("A", "B", "C"))))
    query = st.one_of(queries(clock.windows, alphabet, 4, operators=operators, iterations=True), _typed(alphabet, clock.windows))
    rules = {}
    for number in range(draw(st.integers(1, max_rules))):
        options = draw(_options(clock, STRATEGIES, AFTER_MATCH))
        options |= draw(st.sampled_from(({}, {}, {}, {"max_matches": 1})))
        text = draw(st.sampled_from(WRONG)) if draw(st.integers(0, 9)) == 0 else draw(query)
        rules[f"rule {number}"] = Rule(text, options)
    return RuleCase(rules, draw(event_tables(clock, alphabet, max_size)))


@st.composite
def _typed(draw: st.DrawFn, alphabet: tuple[str, ...], windows: tuple[str, ...]) -> str:
    """The text of a query whose variables all have a type, so that other events need not be looked at."""
    one, other = draw(st.sampled_from(alphabet)), draw(st.sampled_from(alphabet))
    parts = draw(st.sampled_from(("{0} a, {1} b", "{0} a+, {1} b", "{0} a, NOT({1} n), {0} b", "a, b")))
    tests = draw(st.sampled_from(("", " WHERE a.x < b.x", " WHERE a.type IN ('A', 'B') AND b.k = 1", " WHERE a.k = 1 AND b.k IN (1, 2)")))
    window = draw(st.sampled_from(windows)).format(n=draw(st.sampled_from((2, 4, 8))))
    return f"PATTERN SEQ({parts.format(one, other)}){tests} WITHIN {window}"
