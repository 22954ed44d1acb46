"""Random queries over random event tables for hypothesis, with the keywords to ask them with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang.ast import STRATEGIES, Query
from gpu_cep.lang.parser import parse
from gpu_cep.oracle.expressions import Schema
from gpu_cep.oracle.meanings import Kind
from gpu_cep.oracle.patterns import pattern_of
from tests.drawn.conditions import conditions
from tests.drawn.patterns import ALL_OPERATORS, ALPHABETS, OPERATORS, QUANTIFIERS, patterns, variables
from tests.drawn.tables import CLOCKS, Clock, event_tables, scattered_table
from tests.drawn.trends import TYPES, trends


@dataclass(frozen=True, slots=True)
class Case:
    """A query over a table, and the keywords to ask it with."""

    text: str
    events: pa.Table
    options: Mapping[str, Any] = field(default_factory=dict)


@st.composite
def queries(
    draw: st.DrawFn,
    windows: tuple[str, ...] = ("{n}",),
    alphabet: tuple[str, ...] = ALPHABETS[0],
    max_variables: int = 5,
    quantifiers: tuple[str, ...] = QUANTIFIERS,
    operators: tuple[str, ...] = OPERATORS,
    iterations: bool = False,
) -> str:
    """The text of a query over the common schema, without PARTITION BY and strategy."""
    declared = draw(variables(alphabet, max_variables, quantifiers, operators))
    clauses = [f"PATTERN {draw(patterns(declared, operators))}"]
    conjuncts = draw(conditions(declared, iterations))
    if conjuncts:
        clauses.append("WHERE " + "\n  AND ".join(conjuncts))
    unbounded = () if _needs_window(clauses[0]) else (None,)
    window = draw(st.sampled_from((*unbounded, *windows, *windows, "{n} EVENTS")))
    if window is not None:
        clauses.append("WITHIN " + window.format(n=draw(st.sampled_from((5, 1, 3, 4, 6, 8)))))
    return "\n".join(clauses)


def _needs_window(pattern: str) -> bool:
    """Whether a negation of the PATTERN clause is open on a side."""
    query = parse(pattern)
    assert isinstance(query, Query)
    try:
        pattern_of(query, Schema({"type": Kind.STRING}), "type")
    except PatternError:
        return True
    except UnsupportedError:
        # of more branches than the oracle takes
        reject()
    return False


@st.composite
def cases(
    draw: st.DrawFn,
    max_size: int = 9,
    max_variables: int = 5,
    tied: bool = True,
    strategies: tuple[str, ...] = ("skip_till_next_match", "skip_till_any_match"),
    quantifiers: tuple[str, ...] = QUANTIFIERS,
    operators: tuple[str, ...] = OPERATORS,
    iterations: bool = False,
    after_match: tuple[str | None, ...] = (None,),
    alphabets: tuple[tuple[str, ...], ...] = ALPHABETS,
) -> Case:
    """A query, a table and keywords that go together.

    Parameters
    ----------
    max_size, tied
        How many events there are at most, and whether timestamps may be equal.
    max_variables, quantifiers, operators
        What patterns are made of; operators are those of :data:`~tests.drawn.patterns.ALL_OPERATORS`.
    iterations
        Whether conditions read bindings as a whole, their first events and running aggregates.
    strategies, after_match
        The keywords to choose from; None leaves one out.
    alphabets
        The event types to choose from, for the table and the pattern alike.
    """
    clock, alphabet = draw(st.sampled_from(CLOCKS)), draw(st.sampled_from(alphabets))
    text = draw(queries(clock.windows, alphabet, max_variables, quantifiers, operators, iterations))
    return Case(text, draw(event_tables(clock, alphabet, max_size, tied)), draw(_options(clock, strategies, after_match)))


# What after_match= may say; what stands twice is twice as likely.
AFTER_MATCH = ("all", "all", "skip_past_last", "skip_to_next")


def whole_language(**options: Any) -> st.SearchStrategy[Case]:
    """Cases with all operators, conditions on iterations, all strategies and after_match; `options` as of :func:`cases`."""
    everything = {"operators": ALL_OPERATORS, "iterations": True, "strategies": STRATEGIES, "after_match": AFTER_MATCH}
    return cases(**{**everything, **options})


def label_cases(**options: Any) -> st.SearchStrategy[Case]:
    """Cases under skip_till_any_match without conditions, whose matches labels decide; `options` as of :func:`cases`."""
    return cases(**{"strategies": ("skip_till_any_match",), **options}).map(_without_conditions)


def _without_conditions(case: Case) -> Case:
    """The case without its WHERE clause."""
    lines = [line for line in case.text.splitlines() if not line.startswith(("WHERE ", "  AND "))]
    return Case("\n".join(lines), case.events, case.options)


@st.composite
def trend_cases(
    draw: st.DrawFn,
    max_size: int = 12,
    tied: bool = False,
    strategies: tuple[str, ...] = STRATEGIES,
    after_match: tuple[str | None, ...] = (None,),
) -> Case:
    """A query of :mod:`~tests.drawn.trends`, which tells strategies apart, a table and keywords that go together."""
    clock = draw(st.sampled_from((CLOCKS[0], CLOCKS[0], *CLOCKS)))
    options = draw(_options(clock, strategies, after_match, partitions=(None, None, None, ("k",))))
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from((max_size, max_size, max_size // 2)))
    return Case(draw(trends(clock.windows)), scattered_table(seed, clock, TYPES, size, tied), options)


@st.composite
def _options(
    draw: st.DrawFn,
    clock: Clock,
    strategies: tuple[str, ...],
    after_match: tuple[str | None, ...],
    partitions: tuple[tuple[str, ...] | None, ...] = (None, None, None, None, ("k",), ("k",), ("s",), ("k", "y")),
) -> dict[str, Any]:
    options = {
        "strategy": draw(st.sampled_from(strategies)),
        "ties": draw(st.sampled_from(("strict", "position"))),
        "partition_by": draw(st.sampled_from(partitions)),
        "order_by": draw(st.sampled_from((None, None, ("x",), ("s", "y")))),
        "time_unit": clock.time_unit,
        "after_match": draw(st.sampled_from(after_match)),
    }
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items() if value is not None}
