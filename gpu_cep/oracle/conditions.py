"""Turn a WHERE clause into conditions on bound events, as docs/language.md says."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import combinations, product
from typing import Any

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast
from gpu_cep.oracle.expressions import Assignment, Row, Schema, attribute_kind, meaning
from gpu_cep.oracle.meanings import Kind
from gpu_cep.oracle.rewriting import rewritten

Events = Mapping[str, tuple[Row, ...]]


@dataclass(frozen=True, slots=True)
class Relation:
    """A condition on the events bound to some variables.

    `variables`: the variables that it reads.
    `starts`: the variables of which it reads one event at a time, with the index of the first such event.
    The index is 1 where earlier events are read too, else 0. The condition holds if it is true for every
    combination of such events.
    `closing`: the quantified variables that it reads as a whole; it waits until they are closed.
    `is_true`: computes it for one combination.
    `is_property`: whether it concerns each event of one variable by itself.
    """

    variables: tuple[str, ...]
    starts: Mapping[str, int]
    closing: frozenset[str]
    is_true: Callable[[Assignment], bool]
    is_property: bool

    def holds(self, events: Events) -> bool:
        """Return whether the condition is true for every choice of an event of each variable."""
        choices = [range(start, len(events[variable])) for variable, start in self.starts.items()]
        assignments = (Assignment(events, dict(zip(self.starts, choice, strict=True))) for choice in product(*choices))
        return all(self.is_true(assignment) for assignment in assignments)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The condition ``[attribute]``: every two events of a match have equal values, which are not NULL."""

    attribute: str
    variables: tuple[str, ...] = ()  # it may be checked before all variables are bound
    closing: frozenset[str] = frozenset()
    is_property: bool = False

    def holds(self, events: Events) -> bool:
        """Return whether all events have one value, which is not NULL."""
        values = [row[self.attribute] for bound in events.values() for row in bound]
        return all(one is not None and one == other for one, other in combinations(values, 2))


Condition = Relation | Agreement


def conjuncts_of(where: ast.Expression | None) -> list[ast.Expression]:
    """Return the conditions of a WHERE clause: its top-level conjuncts."""
    if where is None:
        return []
    if isinstance(where, ast.Connective) and where.operator == "AND":
        return [conjunct for operand in where.operands for conjunct in conjuncts_of(operand)]
    return [where]


def condition_of(conjunct: ast.Expression, variables: Collection[str], quantified: Collection[str], schema: Schema) -> Condition:
    """Return `conjunct` as a condition on events with attributes `schema`.

    `variables` are those of the pattern; `quantified` are those of them that bind lists.
    """
    if isinstance(conjunct, ast.Equivalence):
        attribute_kind(conjunct.attribute, schema)
        return Agreement(conjunct.attribute)
    read = set(_reads(conjunct))
    for name, _ in read:
        if name not in variables:
            raise PatternError(f"unknown variable {name!r}")
    condition = meaning(conjunct, schema)
    if condition.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise PatternError(f"a condition is a truth value, not a {condition.kind.value}")
    mentioned = tuple(name for name in variables if name in {name for name, _ in read})
    by_event = [name for name in mentioned if {(name, _Read.EACH), (name, _Read.EARLIER)} & read]
    return Relation(
        variables=mentioned,
        starts={name: int((name, _Read.EARLIER) in read) for name in by_event},
        closing=frozenset(name for name in mentioned if name in quantified and (name, _Read.WHOLE) in read),
        is_true=lambda assignment: condition.value(assignment) is True,
        is_property=len(mentioned) == 1 and {place for _, place in read} == {_Read.EACH},
    )


def value_of(expression: ast.Expression, events: Events, schema: Schema) -> Any:
    """Return the value of an expression of a match; attributes of a variable that binds nothing are NULL."""

    def change(node: ast.Expression) -> ast.Expression | None:
        return ast.Literal(None) if isinstance(node, ast.Reference) and not events.get(node.variable or "") else None

    return meaning(rewritten(expression, change), schema).value(Assignment(events, dict.fromkeys(events, 0)))


class _Read(enum.Enum):
    """Which events of a binding an expression reads."""

    EACH = enum.auto()  # each one in turn
    EARLIER = enum.auto()  # those before the one whose turn it is
    FIRST = enum.auto()
    WHOLE = enum.auto()  # all of them, or the last


def _reads(expression: ast.Node) -> Iterator[tuple[str, _Read]]:
    match expression:
        case ast.PrevBound(variable=variable):
            yield variable, _Read.EARLIER
        case ast.Aggregate(variable=variable):
            yield variable, _aggregate_read(expression)
        case ast.Reference(variable=str(variable), index=index):
            yield variable, _INDEXED[type(index)]
        case _:
            for part in _parts(expression):
                yield from _reads(part)


_INDEXED = {
    type(None): _Read.EACH,
    ast.EachIndex: _Read.EACH,
    ast.PreviousIndex: _Read.EARLIER,
    ast.NumberIndex: _Read.FIRST,
    ast.LastIndex: _Read.WHOLE,
}


def _aggregate_read(expression: ast.Aggregate) -> _Read:
    if expression.running:
        return _Read.EARLIER
    return _Read.FIRST if expression.function == "first" else _Read.WHOLE


def _parts(expression: ast.Node) -> Iterator[ast.Node]:
    for field in fields(expression):
        value = getattr(expression, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, ast.Expression):
                yield part


def connecting_attributes(conjuncts: Collection[ast.Expression], variables: Collection[str]) -> tuple[str, ...]:
    """Return the attributes on which equalities connect all `variables` (thesis Def. 5.3).

    A single variable is connected by ``[attribute]`` only.
    """
    edges: dict[str, set[tuple[str, str]]] = {}
    for conjunct in conjuncts:
        if isinstance(conjunct, ast.Equivalence):
            edges.setdefault(conjunct.attribute, set()).update(product(variables, variables))
        elif (edge := _equality(conjunct)) is not None:
            attribute, first, second = edge
            edges.setdefault(attribute, set()).update({(first, second), (second, first)})
    return tuple(attribute for attribute, pairs in edges.items() if _reached(min(variables), pairs) == set(variables))


def _equality(conjunct: ast.Expression) -> tuple[str, str, str] | None:
    """Return the attribute and the variables of ``v.A = w.A``; None for other conditions."""
    if not (isinstance(conjunct, ast.Binary) and conjunct.operator == "="):
        return None
    left, right = conjunct.left, conjunct.right
    if not (isinstance(left, ast.Reference) and isinstance(right, ast.Reference)):
        return None
    if not (_is_each(left) and _is_each(right)) or left.attribute != right.attribute or left.variable == right.variable:
        return None
    if left.attribute is None or left.variable is None or right.variable is None:
        return None
    return left.attribute, left.variable, right.variable


def _is_each(reference: ast.Reference) -> bool:
    return reference.index is None or isinstance(reference.index, ast.EachIndex)


def _reached(start: str, edges: set[tuple[str, str]]) -> set[str]:
    reached = {start}
    while new := {second for first, second in edges if first in reached} - reached:
        reached |= new
    return reached
