"""Compute expressions at a place in a match: columns of variables, navigations, aggregates, CLASSIFIER and MATCH_NUMBER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast
from gpu_cep.lang.row_patterns.ast import PHYSICAL, Classifier, Column, MatchNumber, Navigation, RowAggregate
from gpu_cep.lang.row_patterns.names import folded
from gpu_cep.oracle.aggregates import AGGREGATES
from gpu_cep.oracle.expressions import Row, Schema, attribute_kind, meaning
from gpu_cep.oracle.meanings import Kind, Meaning, aggregate_kind
from gpu_cep.oracle.row_patterns.rows import column
from gpu_cep.oracle.values import Value


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of a pattern: how each is spelled, and the variables of each subset; names are folded."""

    spelled: Mapping[str, str]
    subsets: Mapping[str, frozenset[str]]

    def members(self, identifier: str) -> frozenset[str]:
        """Return the variables for which an identifier stands."""
        name = folded(identifier)
        if name in self.subsets:
            return self.subsets[name]
        if name not in self.spelled:
            raise PatternError(f"unknown variable {identifier!r}")
        return frozenset({name})


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row of a match, at which an expression is computed.

    `rows`: those of the partition. `first`: the position of the first row of the match.
    `labels`: the variables of its rows, from the first one on.
    `current`: the position of the row; RUNNING sees the match up to it.
    `number`: that of the match.
    `at`: the row to which a navigation or an aggregate has gone; None outside of these.
    """

    rows: Sequence[Row]
    first: int
    labels: Sequence[str]
    current: int
    number: int
    variables: Variables
    at: int | None = None

    def positions(self, variable: str | None, semantics: str | None) -> list[int]:
        """Return the rows that are mapped to a variable, None for any: up to the current row, or with FINAL all."""
        members = None if variable is None else self.variables.members(variable)
        mapped = [self.first + number for number, label in enumerate(self.labels) if members is None or label in members]
        return mapped if semantics == "FINAL" else [position for position in mapped if position <= self.current]

    def label(self, position: int) -> str | None:
        """Return the spelling of the variable of a row; None outside of the match."""
        number = position - self.first
        return self.variables.spelled[self.labels[number]] if 0 <= number < len(self.labels) else None


@meaning.register
def _(expression: Column, schema: Schema) -> Meaning:
    name = column(expression.name, tuple(schema.kinds))

    def value(place: MatchedRow) -> Value:
        position = _last(place, expression.variable) if place.at is None else place.at
        return None if position is None else place.rows[position][name]

    return Meaning(attribute_kind(name, schema), value)


@meaning.register
def _(expression: Classifier, schema: Schema) -> Meaning:
    def value(place: MatchedRow) -> Value:
        position = _last(place, expression.variable) if place.at is None else place.at
        return None if position is None else place.label(position)

    return Meaning(Kind.STRING, value)


@meaning.register
def _(expression: MatchNumber, schema: Schema) -> Meaning:
    return Meaning(Kind.INTEGER, lambda place: place.number)


@meaning.register
def _(expression: Navigation, schema: Schema) -> Meaning:
    argument = meaning(_innermost(expression), schema)

    def value(place: MatchedRow) -> Value:
        position = _target(expression, place)
        return None if position is None else argument.value(replace(place, at=position))

    return Meaning(argument.kind, value)


@meaning.register
def _(expression: RowAggregate, schema: Schema) -> Meaning:
    if expression.argument is None:
        return Meaning(Kind.INTEGER, lambda place: len(place.positions(expression.variable, expression.semantics)))
    argument, variable = meaning(expression.argument, schema), variable_of(expression.argument)
    aggregate = AGGREGATES[expression.function]

    def value(place: MatchedRow) -> Value:
        return aggregate([argument.value(replace(place, at=each)) for each in place.positions(variable, expression.semantics)])

    return Meaning(aggregate_kind(expression.function, argument.kind), value)


def _last(place: MatchedRow, variable: str | None) -> int | None:
    """Return the last row up to the current one that is mapped to a variable, None for any variable."""
    return next(reversed(place.positions(variable, "RUNNING")), None)


def _innermost(navigation: Navigation) -> ast.Expression:
    """Return what is computed at the row to which a navigation goes."""
    inner = navigation.argument
    return inner.argument if isinstance(inner, Navigation) else inner


def _target(navigation: Navigation, place: MatchedRow) -> int | None:
    """Return the row to which a navigation goes, None if there is none."""
    inner = navigation.argument
    if navigation.function not in PHYSICAL:
        mapped = place.positions(variable_of(inner), navigation.semantics)
        number = navigation.offset or 0
        in_order = mapped if navigation.function == "FIRST" else mapped[::-1]
        return in_order[number] if number < len(in_order) else None
    start = _target(inner, place) if isinstance(inner, Navigation) else _last(place, variable_of(inner))
    if start is None:
        return None
    distance = 1 if navigation.offset is None else navigation.offset
    target = start - distance if navigation.function == "PREV" else start + distance
    return target if 0 <= target < len(place.rows) else None


def variable_of(expression: ast.Expression) -> str | None:
    """Return the one variable whose rows an argument reads, None for any row."""
    return next((node.variable for node in _nodes(expression) if isinstance(node, Column | Classifier)), None)


def _nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for each in node:
            yield from _nodes(each)
    elif is_dataclass(node):
        yield node
        for each in fields(node):
            yield from _nodes(getattr(node, each.name))
