"""Random queries, each built in Python and written as text, in parallel: neither is made from the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from gpu_cep.lang import builder as cep
from gpu_cep.lang.ast import STRATEGIES, UNITS

VARIABLES = ("a", "b2", "größe", "from", "odd name", 'quo"te', "i", "count", "plus")
ATTRIBUTES = ("x", "Price", "in", "LEN", "plus", "where", "ast", "_hidden", "2nd", "with space", 'quo"te', "'; DROP TABLE e; --")
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "%": lambda left, right: left % right,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
AGGREGATES = {
    **{"avg": cep.avg, "sum": cep.sum, "min": cep.min, "max": cep.max, "count": cep.count, "first": cep.first, "last": cep.last},
    **{"median": cep.median, "count_distinct": cep.count_distinct},
}


@dataclass(frozen=True)
class Twin:
    """The same thing built and written."""

    built: Any
    text: str


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def listed(twins: list[Twin]) -> str:
    return ", ".join(twin.text for twin in twins)


# Values ----------------------------------------------------------------------

variables = st.sampled_from(VARIABLES).map(lambda name: Twin(cep.var(name), quoted(name)))
attributes = st.sampled_from(ATTRIBUTES)
zones = st.none() | st.builds(timezone, st.integers(-1000, 1000).map(lambda minutes: timedelta(minutes=minutes)))

constants = st.one_of(
    st.integers(-(10**20), 10**20).map(lambda value: Twin(value, str(value))),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: Twin(value, repr(value))),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(lambda value: Twin(value, f"{value:f}")),
    st.text(max_size=8).map(lambda value: Twin(value, "'" + value.replace("'", "''") + "'")),
    st.dates().map(lambda value: Twin(value, f"DATE '{value.isoformat()}'")),
    st.datetimes(timezones=zones).map(lambda value: Twin(value, f"TIMESTAMP '{value.isoformat(sep=' ')}'")),
    st.booleans().map(lambda value: Twin(value, str(value))),
    st.sampled_from(
        [
            Twin(timedelta(days=14), "14 days"),
            Twin(timedelta(hours=36), "36 h"),
            Twin(timedelta(milliseconds=1500), "1500 ms"),
            Twin(timedelta(minutes=-90), "INTERVAL '-90' MINUTE"),
            Twin(timedelta(0), "0 days"),
        ]
    ),
)


@st.composite
def references(draw: st.DrawFn) -> Twin:
    variable, attribute = draw(variables), draw(attributes)
    place, index = draw(
        st.sampled_from(
            [
                (variable.built, ""),
                (variable.built[cep.i], "[i]"),
                (variable.built[cep.i - 1], "[i-1]"),
                (variable.built[3], "[3]"),
                (variable.built[-1], f"[{variable.text}.LEN]"),
            ]
        )
    )
    read = getattr(place, attribute) if attribute in ("x", "Price", "LEN") else place[attribute]
    return Twin(read, f"{variable.text}{index}.{quoted(attribute)}")


@st.composite
def aggregates(draw: st.DrawFn) -> Twin:
    variable, attribute, function = draw(variables), draw(attributes), draw(st.sampled_from(list(AGGREGATES)))
    place, index = draw(st.sampled_from([(variable.built, ""), (variable.built[cep.i], "[i]"), (variable.built[: cep.i - 1], "[..i-1]")]))
    if draw(st.booleans()):
        return Twin(cep.count(place), f"count({variable.text}{index})")
    return Twin(AGGREGATES[function](place[attribute]), f"{function}({variable.text}{index}.{quoted(attribute)})")


def previous(variable: Twin, attribute: str) -> Twin:
    return Twin(cep.prev(variable.built[attribute]), f"prev({variable.text}.{quoted(attribute)})")


def called(function: str, arguments: list[Twin]) -> Twin:
    return Twin(cep.fn(function, *(each.built for each in arguments)), f"{quoted(function)}({listed(arguments)})")


def computed(operator: str, left: Twin, right: Twin) -> Twin:
    return Twin(OPERATORS[operator](left.built, right.built), f"({left.text}) {operator} ({right.text})")


def composed(inner: st.SearchStrategy[Twin]) -> st.SearchStrategy[Twin]:
    operators = st.sampled_from(list(OPERATORS))
    return st.one_of(
        st.builds(computed, operators, inner, inner),
        st.builds(computed, operators, constants.filter(lambda twin: not isinstance(twin.built, str)), inner),
        st.builds(computed, operators, inner, constants),
        inner.map(lambda twin: Twin(-twin.built, f"-({twin.text})")),
        inner.map(lambda twin: Twin(abs(twin.built), f"abs({twin.text})")),
        st.builds(called, st.sampled_from(["lower", "Least", "my function"]), st.lists(inner | constants, max_size=2)),
    )


literal = constants.map(lambda twin: Twin(cep.literal(twin.built), twin.text)) | st.just(Twin(cep.literal(None), "NULL"))
values = st.recursive(references() | aggregates() | st.builds(previous, variables, attributes) | literal, composed, max_leaves=4)

# Conditions ------------------------------------------------------------------


def compared(operator: str, left: Twin, right: Twin) -> Twin:
    return Twin(COMPARISONS[operator](left.built, right.built), f"({left.text}) {operator} ({right.text})")


def tested(negated: bool, built: Any, operand: str, test: str) -> Twin:
    return Twin(~built if negated else built, f"({operand}) {'NOT ' if negated else ''}{test}")


comparisons = st.builds(compared, st.sampled_from(list(COMPARISONS)), values, values | constants)
tests = st.one_of(
    st.builds(
        lambda negated, value, low, high: tested(
            negated, value.built.between(low.built, high.built), value.text, f"BETWEEN ({low.text}) AND ({high.text})"
        ),
        st.booleans(),
        values,
        values | constants,
        values | constants,
    ),
    st.builds(
        lambda negated, value, items: tested(
            negated, value.built.isin([item.built for item in items]), value.text, f"IN ({listed(items)})"
        ),
        st.booleans(),
        values,
        st.lists(values | constants, min_size=1, max_size=3),
    ),
    st.builds(lambda negated, value: tested(negated, value.built.like("a%_"), value.text, "LIKE 'a%_'"), st.booleans(), values),
    values.map(lambda value: Twin(value.built.is_null(), f"({value.text}) IS NULL")),
    values.map(lambda value: Twin(value.built.is_not_null(), f"({value.text}) IS NOT NULL")),
    attributes.map(lambda attribute: Twin(cep.same(attribute), f"[{quoted(attribute)}]")),
)


def joined(inner: st.SearchStrategy[Twin]) -> st.SearchStrategy[Twin]:
    both = st.builds(lambda left, right: Twin(left.built & right.built, f"({left.text}) AND ({right.text})"), inner, inner)
    either = st.builds(lambda left, right: Twin(left.built | right.built, f"({left.text}) OR ({right.text})"), inner, inner)
    return both | either | (both | either | comparisons).map(lambda twin: Twin(~twin.built, f"NOT ({twin.text})"))


conditions = st.recursive(comparisons | tests, joined, max_leaves=4)

# Patterns and queries --------------------------------------------------------

quantifiers: st.SearchStrategy[tuple[Callable[[Any], Any], str]] = st.sampled_from(
    [
        (lambda variable: variable, ""),
        (lambda variable: variable.plus(), "+"),
        (lambda variable: variable.star(), "*"),
        (lambda variable: variable.optional(), "?"),
        (lambda variable: variable.times(3), "{3}"),
        (lambda variable: variable.times(0, 2), "{0,2}"),
        (lambda variable: variable.at_least(2), "{2,}"),
    ]
)


@st.composite
def primitives(draw: st.DrawFn) -> Twin:
    name, event_type = draw(st.sampled_from(VARIABLES)), draw(st.none() | st.sampled_from(ATTRIBUTES))
    quantify, sign = draw(quantifiers)
    built, text = quantify(cep.var(name, event_type)), f"{'' if event_type is None else quoted(event_type)} {quoted(name)}{sign}"
    if sign and draw(st.booleans()):
        ending = draw(conditions)
        return Twin(built.until(ending.built), f"{text} UNTIL ({ending.text})")
    return Twin(built, text)


def combined(inner: st.SearchStrategy[Twin]) -> st.SearchStrategy[Twin]:
    composites = st.sampled_from([(cep.seq, "SEQ"), (cep.all_of, "AND"), (cep.any_of, "OR")])
    elements = st.lists(inner | primitives().map(lambda twin: Twin(~twin.built, f"NOT ({twin.text})")), min_size=1, max_size=3)
    composed = st.builds(
        lambda how, parts: Twin(how[0](*(part.built for part in parts)), f"{how[1]}({listed(parts)})"), composites, elements
    )
    words = st.sampled_from([(cep.next_, "NEXT"), (cep.first_, "FIRST"), (cep.any_, "ANY")])
    return composed | st.builds(lambda how, twin: Twin(how[0](twin.built), f"{how[1]}({twin.text})"), words, inner)


patterns = st.recursive(primitives(), combined, max_leaves=4)

windows = st.one_of(
    st.integers(0, 10**9).map(lambda amount: Twin((amount,), str(amount))),
    st.integers(1, 100).map(lambda amount: Twin((amount, "events"), f"{amount} EVENTS")),
    st.integers(1, 100).map(lambda amount: Twin((f"{amount} events",), f"{amount} EVENTS")),
    st.builds(lambda amount, unit: Twin((amount, unit), f"{amount} {unit}"), st.integers(0, 10**9), st.sampled_from(list(UNITS))),
    st.builds(lambda amount, unit: Twin((f"{amount} {unit}",), f"{amount} {unit}"), st.integers(0, 10**9), st.sampled_from(list(UNITS))),
    st.decimals(0, 1000, places=3).map(lambda amount: Twin((amount, "h"), f"{amount:f} hours")),
    st.just(Twin((1.5, "days"), "1.5 days")),
    st.just(Twin((timedelta(days=11),), "11 days")),
)


@st.composite
def queries(draw: st.DrawFn) -> Twin:
    """A query with any of its clauses; its pattern declares every variable of VARIABLES first."""
    pattern = draw(patterns)
    built: Any = cep.seq(*map(cep.var, VARIABLES), pattern.built)
    clauses = [f"PATTERN SEQ({', '.join(map(quoted, VARIABLES))}, {pattern.text})"]
    if draw(st.booleans()):
        keys = draw(st.lists(attributes, min_size=1, max_size=2))
        built = built.partition_by(*keys)
        clauses.insert(0, f"PARTITION BY {', '.join(map(quoted, keys))}")
    if draw(st.booleans()):
        source, alias = draw(attributes), draw(st.none() | attributes)
        built = built.from_(source, alias)
        clauses.insert(0, f"FROM {quoted(source)} {'' if alias is None else quoted(alias)}")
    wheres = draw(st.lists(conditions, max_size=2))
    where = " AND ".join(f"({each.text})" for each in wheres)
    built = built.where(*(each.built for each in wheres)) if wheres else built
    if draw(st.booleans()):
        strategy, chosen = draw(st.sampled_from(STRATEGIES)), draw(st.lists(variables, max_size=2))
        built = built.using(strategy, *(each.built for each in chosen))
        clauses.append(f"WHERE {strategy}{f'({listed(chosen)})' if chosen else ''} {{ {where} }}")
    elif wheres:
        clauses.append(f"WHERE {where}")
    if draw(st.booleans()):
        window = draw(windows)
        built = built.within(*window.built)
        clauses.append(f"WITHIN {window.text}")
    if draw(st.booleans()):
        items, named, whole = draw(st.lists(values, max_size=2)), draw(values), draw(variables)
        built = built.returning(*(item.built for item in items), whole.built, named.built.alias("odd one"), total=named.built)
        texts = [*(item.text for item in items), whole.text, f'{named.text} AS "odd one"', f"{named.text} AS total"]
        clauses.append(f"RETURN {', '.join(texts)}")
    return Twin(built, " ".join(clauses))
