"""What a query asks for, read from its tree as SPEC section 2 defines it, for the oracle alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import singledispatch
from itertools import combinations, pairwise, product

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.testing.expressions import Assignment, Kind, Row, Schema, attribute_kind, meaning

Order = frozenset[tuple[str, str]]
Events = Mapping[str, tuple[Row, ...]]


@dataclass(frozen=True, slots=True)
class Quantity:
    """How many events a variable binds; no `maximum` is no upper bound."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Relation:
    """A condition on every combination of events bound to `variables`.

    For those in `consecutive`, which it also reads the previous event of, a
    combination takes the i-th event with the one before it, for every i ≥ 2.
    """

    variables: tuple[str, ...]
    consecutive: frozenset[str]
    is_true: Callable[[Assignment], bool]

    def holds(self, events: Events) -> bool:
        return all(self.is_true(assignment) for assignment in self._assignments(events))

    def _assignments(self, events: Events) -> Iterator[Assignment]:
        for choice in product(*(self._choices(variable, events[variable]) for variable in self.variables)):
            pairs = dict(zip(self.variables, choice, strict=True))
            yield Assignment(
                current={variable: current for variable, (_, current) in pairs.items()},
                previous={variable: previous for variable, (previous, _) in pairs.items() if previous is not None},
            )

    def _choices(self, variable: str, bound: tuple[Row, ...]) -> list[tuple[Row | None, Row]]:
        if variable in self.consecutive:
            return list(pairwise(bound))
        return [(None, row) for row in bound]


@dataclass(frozen=True, slots=True)
class Agreement:
    """``[attribute]``: every two events of the match agree on it, and so it is not NULL."""

    attribute: str
    variables: tuple[str, ...] = ()  # it waits for none

    def holds(self, events: Events) -> bool:
        values = [row[self.attribute] for bound in events.values() for row in bound]
        return all(one is not None and one == other for one, other in combinations(values, 2))


Condition = Relation | Agreement


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern without OR and NOT.

    `variables` stand in order of first appearance; `before` is the strict
    partial order ≺. `closure` holds the attributes that the equality
    conditions connect all variables on (thesis Def. 5.3), as agreements.
    """

    variables: Mapping[str, Quantity]
    before: Order
    conditions: tuple[Condition, ...]
    closure: tuple[Agreement, ...]


def pattern_of(query: ast.Query, schema: Schema, type_column: str) -> Pattern:
    """The pattern of `query` over events with attributes `schema`."""
    variables, order, properties = _elements(query.pattern, type_column)
    conjuncts = [*properties, *_conjuncts(query.where)]
    return Pattern(
        variables=variables,
        before=_closed(order),
        conditions=tuple(_condition(conjunct, variables, schema) for conjunct in conjuncts),
        closure=tuple(Agreement(attribute) for attribute in _connected_attributes(conjuncts, set(variables))),
    )


# The pattern clause ----------------------------------------------------------

Elements = tuple[dict[str, Quantity], Order, tuple[ast.Expression, ...]]


@singledispatch
def _elements(node: ast.PatternNode, type_column: str) -> Elements:
    """The variables of `node`, their order as far as `node` states it, and the conditions that its event types stand for."""
    raise UnsupportedError(f"the oracle does not match {type(node).__name__.upper()}; it matches SEQ, AND and variables")


@_elements.register
def _(node: ast.Variable, type_column: str) -> Elements:
    properties: tuple[ast.Expression, ...] = ()
    if node.event_type is not None:
        properties = (ast.Binary("=", ast.Reference(node.name, type_column), ast.Literal(node.event_type)),)
    return {node.name: Quantity(1, 1)}, frozenset(), properties


@_elements.register
def _(node: ast.Repeat, type_column: str) -> Elements:
    if not isinstance(node.element, ast.Variable):
        raise UnsupportedError("the oracle repeats single variables only")
    if node.minimum < 1:
        raise UnsupportedError("the oracle does not match variables that may be absent (? and *)")
    if node.maximum is not None and node.maximum < node.minimum:
        raise PatternError(f"{node.element.name} cannot bind at least {node.minimum} and at most {node.maximum} events")
    _, order, properties = _elements(node.element, type_column)
    return {node.element.name: Quantity(node.minimum, node.maximum)}, order, properties


@_elements.register
def _(node: ast.And, type_column: str) -> Elements:
    parts = [_elements(element, type_column) for element in node.elements]
    variables: dict[str, Quantity] = {}
    for part, _, _ in parts:
        for name, quantity in part.items():
            if variables.setdefault(name, quantity) != quantity:
                raise PatternError(f"{name} stands in the pattern with different quantifiers")
    order = frozenset[tuple[str, str]]().union(*(part for _, part, _ in parts))
    return variables, order, tuple(conjunct for _, _, part in parts for conjunct in part)


@_elements.register
def _(node: ast.Seq, type_column: str) -> Elements:
    parts = [_elements(element, type_column)[0] for element in node.elements]
    variables, order, properties = _elements(ast.And(node.elements), type_column)
    for earlier, later in combinations(parts, 2):
        if earlier.keys() & later.keys():
            raise PatternError(f"{min(earlier.keys() & later.keys())} cannot come before itself")
        order |= frozenset(product(earlier, later))
    return variables, order, properties


def _closed(order: Order) -> Order:
    """The transitive closure of `order`."""
    longer = order | {(first, last) for first, middle in order for other, last in order if middle == other}
    if longer != order:
        return _closed(longer)
    if any(first == last for first, last in order):
        raise PatternError("the pattern orders a variable before itself")
    return order


# The WHERE clause ------------------------------------------------------------


def _conjuncts(where: ast.Expression | None) -> list[ast.Expression]:
    if where is None:
        return []
    if isinstance(where, ast.Binary) and where.operator == "AND":
        return [*_conjuncts(where.left), *_conjuncts(where.right)]
    return [where]


def _condition(conjunct: ast.Expression, variables: Mapping[str, Quantity], schema: Schema) -> Condition:
    if isinstance(conjunct, ast.Equivalence):
        attribute_kind(conjunct.attribute, schema)
        return Agreement(conjunct.attribute)
    read = list(_variables_read(conjunct))
    for name, _ in read:
        if name not in variables:
            raise PatternError(f"unknown variable {name!r}")
    condition = meaning(conjunct, schema)
    if condition.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise PatternError(f"a condition is a truth value, not a {condition.kind.value}")
    return Relation(
        variables=tuple(name for name in variables if name in {name for name, _ in read}),
        consecutive=frozenset(name for name, previous in read if previous),
        is_true=lambda assignment: condition.value(assignment) is True,
    )


def _variables_read(expression: ast.Node) -> Iterator[tuple[str, bool]]:
    """The variables that `expression` reads, and whether it reads the event bound before the current one."""
    if isinstance(expression, ast.PrevBound):
        yield expression.variable, True
    elif isinstance(expression, ast.Reference) and expression.variable is not None:
        yield expression.variable, isinstance(expression.index, ast.PreviousIndex)
    else:
        for part in _parts(expression):
            yield from _variables_read(part)


def _parts(expression: ast.Node) -> Iterator[ast.Node]:
    for field in fields(expression):
        value = getattr(expression, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, ast.Expression):
                yield part


def _connected_attributes(conjuncts: list[ast.Expression], variables: set[str]) -> list[str]:
    """The attributes on which the equality conditions connect all variables, two or more (thesis Def. 5.3)."""
    if len(variables) < 2:
        return []
    edges: dict[str, set[tuple[str, str]]] = {}
    for conjunct in conjuncts:
        if isinstance(conjunct, ast.Equivalence):
            edges.setdefault(conjunct.attribute, set()).update(product(variables, variables))
        elif (edge := _equality(conjunct)) is not None:
            attribute, first, second = edge
            edges.setdefault(attribute, set()).update({(first, second), (second, first)})
    return [attribute for attribute, pairs in edges.items() if _reached(min(variables), pairs) == variables]


def _equality(conjunct: ast.Expression) -> tuple[str, str, str] | None:
    """Attribute and variables of ``v.A = w.A``."""
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
