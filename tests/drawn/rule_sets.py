"""Random rule sets over random event tables for hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.rule_sets.rules import Rule
from tests.drawn.patterns import ALL_OPERATORS, ALPHABETS
from tests.drawn.queries import AFTER_MATCH, _options, queries
from tests.drawn.tables import CLOCKS, event_tables, scattered_table

# Queries that no events have a match for, or that have an error.
WRONG = ("PATTERN SEQ(A a, B b", "PATTERN SEQ(A a, B b) WHERE a.nothing > 1", "PATTERN SEQ(A a, NOT(B b))")
# The variables of a query whose types are filled in, and further conditions.
SHAPES = (
    "{0} a, {1} b", "{0} a+, {1} b", "{0} a, NOT({1} n), {2} b", "NOT({1} n), {0} a, {2} b", "{0} a, {1} b, NOT({2} n)",
    "{0} a, {1} c?, {2} b", "AND({0} a, {1} b)", "a, b",
)  # fmt: skip
TESTS = ("", " WHERE a.x < b.x", " WHERE a.type IN ('A', 'B') AND b.type IN ('C', 'A', 'D')", " WHERE a.k = 1 AND b.k IN (1, 2)")
# Strategies that may pass over an event.
PASSING = ("skip_till_next_match", "skip_till_any_match", "robust_skip_till_next_match")


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
def typed_rule_sets(draw: st.DrawFn, max_size: int = 24) -> RuleCase:
    """Rules whose variables all have a type, over events of which other types are many; each may be answered by its own events alone."""
    clock, alphabet = draw(st.sampled_from(CLOCKS)), ("A", "B", "C", "D")
    rules = {}
    for number in range(draw(st.integers(2, 5))):
        options = draw(_options(clock, PASSING, AFTER_MATCH, partitions=(None, None, ("k",), ("s",))))
        rules[f"rule {number}"] = Rule(draw(_typed(alphabet, clock.windows)), options)
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from((max_size, max_size, max_size // 2)))
    return RuleCase(rules, scattered_table(seed, clock, (*alphabet, "E", "F"), size, draw(st.booleans())))


# What rules of a family may compare with constants, and what they have in common.
HOLES = ("", " AND a.x > {0}", " AND {0} >= b.x", " AND a.x < {0} AND b.k <> {1}", " AND b.y > {0}.5", " AND a.s = 'x' AND b.y <= {0}")
COMMON = ("", " AND a.x < b.x", " AND a.x + b.x > 1", " AND [k]", " AND max(a.x) < 3 AND (a.s LIKE 'x%' OR b.x > 0)")


@st.composite
def families(draw: st.DrawFn, max_size: int = 24) -> RuleCase:
    """Rules that differ in types and constants only, but for their windows and keys; those alike may be answered as one query."""
    clock, alphabet = draw(st.sampled_from(CLOCKS)), ("A", "B", "C", "D")
    options = draw(_options(clock, PASSING, AFTER_MATCH, partitions=(None, None, ("k",), ("s",))))
    options |= draw(st.sampled_from(({}, {}, {}, {"max_matches": 2})))
    # some rules have other keys
    keyed = draw(st.sampled_from(({}, {}, {"partition_by": ("k",)}, {"partition_by": ("s",)})))
    window, lengths = draw(st.sampled_from(clock.windows)), draw(st.sampled_from(((2,), (4,), (8,), (2, 4, 8))))
    shape = draw(st.sampled_from([each for each in SHAPES if each.startswith(("{0}", "NOT", "AND"))]))
    parts = shape if shape.startswith("AND") else f"SEQ({shape})"
    tests = f"a.k >= 0{draw(st.sampled_from(HOLES))}{draw(st.sampled_from(COMMON))}"
    rules = {}
    for number in range(draw(st.integers(2, 6))):
        types = [draw(st.sampled_from(alphabet)) for _ in range(3)]
        constants = [draw(st.integers(-1, 2)) for _ in range(2)]
        within = window.format(n=draw(st.sampled_from(lengths)))
        text = f"PATTERN {parts.format(*types)} WHERE {tests.format(*constants)} WITHIN {within}"
        rules[f"rule {number}"] = Rule(text, draw(st.sampled_from((options, options | keyed))))
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from((max_size, max_size, max_size // 2)))
    return RuleCase(rules, scattered_table(seed, clock, (*alphabet, "E", "F"), size, draw(st.booleans())))


@st.composite
def _typed(draw: st.DrawFn, alphabet: tuple[str, ...], windows: tuple[str, ...]) -> str:
    """The text of a query whose variables all have a type, so that other events need not be looked at."""
    types = [draw(st.sampled_from(alphabet)) for _ in range(3)]
    parts = draw(st.sampled_from(SHAPES))
    tests = draw(st.sampled_from(TESTS))
    window = draw(st.sampled_from(windows)).format(n=draw(st.sampled_from((2, 4, 8))))
    shape = parts if parts.startswith("AND") else f"SEQ({parts})"
    return f"PATTERN {shape.format(*types)}{tests} WITHIN {window}"
