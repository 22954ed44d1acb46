"""Random conditions for hypothesis, over the schema of :mod:`tests.drawn.tables`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from hypothesis import strategies as st

from gpu_cep.analysis.memberships import MOST_COMPARED
from tests.drawn.patterns import Variable
from tests.drawn.tables import ATTRIBUTES, LONG_TEXT

Refer = Callable[[str], str]  # attribute -> reference to it

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
TERMS: Mapping[str, tuple[str, ...]] = {
    "number": (
        *("{x}", "{y}") * 4,
        *("{x} + 1", "{x} - {y}", "{x} * 2", "{x} / {y}", "{x} % 2", "{y} % 2", "{y} * 0.5", "-{x}", "abs({x} - 2)", "sign({y})"),
        *("floor({y})", "ceil({y})", "round({y})", "sqrt({x})", "coalesce({x}, 1)", "coalesce({y}, {x})", "nullif({x}, 0)"),
        *("least({x}, 2)", "greatest({x}, 1)", "least({y}, 1)", "greatest({y}, {x})", "length({s})"),
        *("CASE WHEN {x} > {y} THEN {x} WHEN {f} THEN {y} END", "CASE {x} WHEN 1 THEN {y} ELSE 0 END"),
        *("{y} * {y} - {y} * {y}", "{y} * 0.1 + {x}"),  # other bits if a product were fused with the sum
    ),
    "decimal": ("{m}", "{m}", "{m} + 0.25", "{m} - 1", "-{m}", "{m} + {x}"),
    "string": (
        *("{s}", "{s}", "{s}", "lower({s})", "upper({s})"),
        *("CASE WHEN {x} > 1 THEN {s} ELSE 'x' END", "coalesce(nullif({s}, 'y'), 'x')"),
    ),
    "date": ("{d}", "{d}", "coalesce({d}, DATE '2024-01-02')"),
    "timestamp": ("{t}", "{t}", "{t} + 1 seconds", "{t} - INTERVAL '1' DAY"),
}
CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "number": ("0", "1", "2", "-1", "0.5", "25e-1", "NULL"),
    "decimal": ("0", "1.5", "0.25", "-2.0"),
    "string": ("'x'", "'y'", "''", "'X'"),
    "date": ("DATE '2024-01-01'", "DATE '2024-01-02'"),
    "timestamp": ("TIMESTAMP '2024-01-01 00:00:01'", "DATE '2024-01-02'"),
}
# Longer than the lists that are compared one by one.
MANY = ", ".join(map(str, range(3, 3 + MOST_COMPARED)))
MANY_TEXTS = ", ".join(f"'{number}'" for number in range(MOST_COMPARED))
TESTS = (
    *("{f}", "NOT {f}", "{f} = FALSE", "{x} IS NULL", "{y} IS NOT NULL", "{s} IS NOT NULL"),
    *("{x} BETWEEN 0 AND 2", "{y} NOT BETWEEN 0 AND 1", "{x} IN (0, 2)", "{x} NOT IN (1, 3)", "{y} IN (0.5, 1)", "{s} IN ('x', 'xy')"),
    *(f"{{s}} NOT IN ('y', '{LONG_TEXT}')", f"{{s}} IN ('', '{LONG_TEXT}', NULL)", "{s} NOT IN ('x', 'X', '')"),
    *(f"{{x}} NOT IN (2, {MANY})", f"{{y}} IN (0.5, {MANY}, NULL)", f"{{s}} IN ('x', {MANY_TEXTS})"),
    *("{s} LIKE 'x%'", "{s} LIKE '_'", "{s} NOT LIKE '%y'", "NOT ({y} < 1)", "{x} = 1 OR {y} > 0.5", "{f} OR {x} > 0"),
    *("CASE WHEN {f} THEN {x} > 1 WHEN {s} < 'x' THEN TRUE END", "CASE WHEN {y} > 0 THEN {s} END IS NULL"),
    "CASE {s} WHEN 'x' THEN {s} WHEN 'y' THEN NULL ELSE 'X' END IN ('x', 'X')",
    *("nullif({s}, 'x') NOT IN ('y', 'X')", "nullif({s}, 'x') IN ('y', NULL)", "({s} = 'y' OR 2 < 1)"),
    *("regexp_like({s}, '^x|[yY]')", "NOT regexp_like({s}, 'x.')", "coalesce({s} = 'x', TRUE)", "nullif({s} LIKE 'x%', {s} = 'x')"),
)
DIFFERENCES = ("abs({d} - {other_d}) <= 1 days", "{t} - {other_t} < 2 seconds", "{d} - {other_d} = 0 days", "{t} - {other_t} >= 0 seconds")


# What is compared with an aggregate of numbers, beside events and other aggregates.
BOUNDS = ("1", "2", "3", "0", "1.5", "4")
COUNTS = ("1", "2", "2", "3")


@st.composite
def conditions(draw: st.DrawFn, declared: list[Variable], iterations: bool = False) -> list[str]:
    """Up to three conjuncts over `declared`, and now and then a chain of equalities through all of them."""
    kinds = [properties, properties, equivalences]
    if any(variable.is_repeated for variable in declared):
        kinds += [steps, steps]
        kinds += [*[whole_bindings] * 5, *[running_aggregates] * 3] if iterations else []
    if len(declared) > 1:
        kinds += [relations, relations, relations]
    found = [draw(draw(st.sampled_from(kinds))(declared)) for _ in range(draw(st.sampled_from((1, 0, 0, 1, 1, 1, 2, 3))))]
    if draw(st.integers(0, 3)) == 0:
        found += draw(chains(declared))
    return draw(st.permutations(found))


@st.composite
def chains(draw: st.DrawFn, declared: list[Variable]) -> list[str]:
    """Equalities on one attribute that connect all variables, negated ones each with one that is not."""
    attribute = draw(st.sampled_from(("k", "k", "k", "s", "y")))
    positive = [variable for variable in declared if not variable.negated]
    pairs = [*pairwise(positive), *((variable, draw(st.sampled_from(positive))) for variable in declared if variable.negated)]
    return [f"{one.name}.{attribute} = {other.name}.{attribute}" for one, other in pairs]


@st.composite
def properties(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on single events of one variable."""
    variable = draw(st.sampled_from(declared))
    if not variable.is_repeated and draw(st.integers(0, 9)) == 0:
        return f"count({variable.name}) {draw(st.sampled_from(COMPARISONS))} {draw(st.sampled_from(COUNTS))}"
    refer = _each(draw, variable)
    if draw(st.booleans()):
        return f"({_filled(draw(st.sampled_from(TESTS)), refer)})"
    return draw(comparisons(refer))


@st.composite
def relations(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on the events of two or three variables, of one also on the previous event."""
    chosen = draw(_related(declared))
    if len(chosen) == 1:
        return draw(properties(chosen))
    one, other = _each(draw, chosen[0]), _any(draw, chosen[1])
    if len(chosen) > 2 and draw(st.integers(0, 3)) == 0:
        return f"{one('x')} + {other('x')} {draw(st.sampled_from(COMPARISONS))} {_each(draw, chosen[2])('x')}"
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(DIFFERENCES)).format(d=one("d"), t=one("t"), other_d=other("d"), other_t=other("t"))
    if draw(st.integers(0, 5)) == 0:
        return f"({draw(comparisons(one))} OR {draw(comparisons(other))})"
    return draw(comparisons(one, other))


@st.composite
def _related(draw: st.DrawFn, declared: list[Variable]) -> list[Variable]:
    """The variables in any order; of the negated ones the first alone, since a condition may read but one of them."""
    chosen = draw(st.permutations(declared))
    negated = [variable for variable in chosen if variable.negated][1:]
    return [variable for variable in chosen if variable not in negated]


@st.composite
def steps(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on consecutive events of one binding."""
    variable = draw(_repeated(declared))
    return draw(comparisons(_previous(draw, variable), _each(draw, variable)))


def _repeated(declared: list[Variable]) -> st.SearchStrategy[Variable]:
    return st.sampled_from([variable for variable in declared if variable.is_repeated])


@st.composite
def whole_bindings(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on a binding as a whole, or its first or last event, and on anything else."""
    variable = draw(_repeated(declared))
    comparison = draw(st.sampled_from(COMPARISONS))
    if draw(st.integers(0, 3)) == 0:
        return f"count({variable.name}) {comparison} {draw(st.sampled_from(COUNTS))}"
    whole = _whole(draw, variable)
    if draw(st.integers(0, 2)) == 0:
        return f"{whole(draw(st.sampled_from(('x', 'y', 'm'))))} {comparison} {draw(st.sampled_from(BOUNDS))}"
    return draw(comparisons(whole, _anything(draw, variable, declared)))


@st.composite
def running_aggregates(draw: st.DrawFn, declared: list[Variable]) -> str:
    """A condition on each event of a binding, or on one of another, and the events before it."""
    variable = draw(_repeated(declared))
    if draw(st.integers(0, 4)) == 0:
        return f"count({variable.name}[..i-1]) {draw(st.sampled_from(COMPARISONS))} {draw(st.sampled_from(COUNTS))}"
    other = _each(draw, variable) if draw(st.booleans()) else _anything(draw, variable, declared)
    return draw(comparisons(_running(draw, variable), other))


def _anything(draw: st.DrawFn, variable: Variable, declared: list[Variable]) -> Refer:
    """A reference to events of `variable` or another, in any of the ways that it may be read."""
    other = draw(st.sampled_from([variable, *declared]))
    ways = [_each, _each, *([_previous, _running, _whole, _whole] if other.is_repeated else [])]
    return draw(st.sampled_from(ways))(draw, other)


@st.composite
def equivalences(draw: st.DrawFn, declared: list[Variable]) -> str:
    return f"[{draw(st.sampled_from(('k', 'k', 'k', 's', 'f', 'x')))}]"


@st.composite
def comparisons(draw: st.DrawFn, refer: Refer, other: Refer | None = None) -> str:
    """A comparison of a term with a constant, or with a term of another event."""
    kind = draw(st.sampled_from(("number", "number", *TERMS)))
    right = draw(st.sampled_from(CONSTANTS[kind])) if other is None else _filled(draw(st.sampled_from(TERMS[kind])), other)
    return f"{_filled(draw(st.sampled_from(TERMS[kind])), refer)} {draw(st.sampled_from(COMPARISONS))} {right}"


def _filled(template: str, refer: Refer) -> str:
    return template.format(**{name: refer(name) for name in ATTRIBUTES})


def _each(draw: st.DrawFn, variable: Variable) -> Refer:
    indexed = variable.quantifier and draw(st.booleans())
    return lambda attribute: f"{variable.name}[i].{attribute}" if indexed else f"{variable.name}.{attribute}"


def _previous(draw: st.DrawFn, variable: Variable) -> Refer:
    indexed = draw(st.booleans())
    return lambda attribute: f"{variable.name}[i-1].{attribute}" if indexed else f"prev({variable.name}.{attribute})"


def _whole(draw: st.DrawFn, variable: Variable) -> Refer:
    """The first or the last event of a binding, or an aggregate over it."""
    name, index = variable.name, draw(st.sampled_from((None, None, "1", "LEN")))
    if index is not None:
        return lambda attribute: f"{name}[{index.replace('LEN', f'{name}.LEN')}].{attribute}"
    return _aggregate(draw, f"{name}[i]" if draw(st.integers(0, 3)) == 0 else name)


def _running(draw: st.DrawFn, variable: Variable) -> Refer:
    return _aggregate(draw, f"{variable.name}[..i-1]")


def _aggregate(draw: st.DrawFn, events: str) -> Refer:
    """An aggregate over `events`; of what does not add up, one that chooses."""
    function = draw(st.sampled_from(("sum", "avg", "sum", "avg", "count", "min", "max", "first", "last")))
    choice = draw(st.sampled_from(("min", "max", "first", "last")))
    return lambda attribute: f"{function if attribute in ('x', 'y', 'm') else choice}({events}.{attribute})"


def _any(draw: st.DrawFn, variable: Variable) -> Refer:
    """Mostly every event of the binding, now and then every event that another follows."""
    if variable.is_repeated and draw(st.integers(0, 4)) == 0:
        return _previous(draw, variable)
    return _each(draw, variable)
