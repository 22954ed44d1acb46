"""Bring a pattern into its normal form, as docs/language.md says.

The normal form is its branches: OR, ``?`` and ``*`` are multiplied out, so that each branch is a
strict partial order of variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.oracle.conditions import Agreement, Condition, condition_of, conjuncts_of, connecting_attributes
from gpu_cep.oracle.expressions import Schema
from gpu_cep.oracle.rewriting import rewritten

Order = frozenset[tuple[str, str]]
MAX_BRANCHES = 1_000
END = "UNTIL"


@dataclass(frozen=True, slots=True)
class Quantity:
    """How many events a variable binds, if it is present; a maximum of None is no bound."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Negation:
    """``NOT(variable)``: no event between `predecessors` and `successors` satisfies `conditions`.

    `predecessors`, `successors`: the positive variables before and behind it in the branch.
    """

    variable: str
    predecessors: frozenset[str]
    successors: frozenset[str]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Branch:
    """A pattern without alternatives.

    `variables`: the positive ones in order of first appearance, with their quantities.
    `before`: the strict partial order ≺ on them, as pairs.
    `conditions`: those on its variables.
    `keys`: the attributes on which equalities connect all variables.
    `negations`: what must not happen between them.
    `chosen`: the variables before which FIRST or ANY stands in it, each with the strategy of that gap; None if none of the
    pattern has them.
    `until`: the variables that an event ends, each with the conditions on such an event, which stands for
    the variable :data:`END`.
    """

    variables: Mapping[str, Quantity]
    before: Order
    conditions: tuple[Condition, ...]
    keys: tuple[str, ...] = ()
    negations: tuple[Negation, ...] = ()
    chosen: Mapping[str, str] | None = None
    until: Mapping[str, tuple[Condition, ...]] = field(default_factory=dict)

    @cached_property
    def predecessors(self) -> Mapping[str, tuple[str, ...]]:
        """Return, by each variable, those before it."""
        return {name: tuple(first for first, second in self.before if second == name) for name in self.variables}

    @cached_property
    def successors(self) -> Mapping[str, tuple[str, ...]]:
        """Return, by each variable, those behind it."""
        return {name: tuple(second for first, second in self.before if first == name) for name in self.variables}

    @property
    def closure(self) -> tuple[Agreement, ...]:
        """Return the conditions that every two events agree on the `keys` (thesis Def. 5.3)."""
        return tuple(Agreement(attribute) for attribute in self.keys)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern in normal form.

    `variables`: the positive ones of all branches, in order of first appearance.
    """

    variables: tuple[str, ...]
    branches: tuple[Branch, ...]


def pattern_of(query: ast.Query, schema: Schema, type_column: str) -> Pattern:
    """Return the pattern of `query` in normal form, over events with attributes `schema`."""
    declared = _declared(query.pattern)
    quantified = {name for name, declaration in declared.items() if declaration.quantity != Quantity(1, 1)}
    conjuncts = [*_type_tests(declared, type_column), *conjuncts_of(query.where)]
    where = [(conjunct, condition_of(conjunct, declared, quantified, schema)) for conjunct in conjuncts]
    negated = {name for name, declaration in declared.items() if declaration.negated}
    for _, condition in where:
        if len(negated.intersection(condition.variables)) > 1:
            raise PatternError(f"a condition relates the negated variables {' and '.join(negated.intersection(condition.variables))}")
    every = _all_alternatives(query.pattern)
    alternatives = dict.fromkeys(_Alternative(each.names, _close_order(each.order), gaps=each.gaps, chosen=each.chosen) for each in every)
    has_gaps = any(each.chosen for each in alternatives)
    agreements = tuple(condition for _, condition in where if isinstance(condition, Agreement))
    until = {name: (_until(name, each.until, schema), *agreements) for name, each in declared.items() if each.until is not None}
    branches = [
        replace(_branch(each, declared, where), chosen=dict(each.chosen) if has_gaps else None, until=until)
        for each in alternatives
        if each.names - negated
    ]
    if not branches:
        raise PatternError("the pattern binds no event: it has no branch with a variable that is not negated")
    if query.within is None:
        _check_scopes(branches)
    return Pattern(tuple(name for name in declared if name not in negated), tuple(branches))


def _branch(alternative: _Alternative, declared: Mapping[str, _Declaration], where: Sequence[tuple[ast.Expression, Condition]]) -> Branch:
    """Return `alternative` as a branch, with the conditions on variables that it has."""
    positive = {name: declared[name].quantity for name in declared if name in alternative.names and not declared[name].negated}
    present = [(conjunct, condition) for conjunct, condition in where if alternative.names.issuperset(condition.variables)]
    own = [(conjunct, condition) for conjunct, condition in present if positive.keys() >= set(condition.variables)]
    agreements = tuple(condition for _, condition in present if isinstance(condition, Agreement))
    gaps = ((after & positive.keys(), before & positive.keys()) for after, before in alternative.gaps)
    return Branch(
        variables=positive,
        before=frozenset((first, second) for first, second in alternative.order if first in positive and second in positive),
        conditions=tuple(condition for _, condition in own),
        keys=connecting_attributes([conjunct for conjunct, _ in own], positive),
        negations=tuple(
            _negation(name, positive, alternative.order, [condition for _, condition in present])
            for name in declared
            if name in alternative.names and name not in positive
        )
        + tuple(Negation("NEXT", after, before, agreements) for after, before in gaps if after),
    )


def _negation(name: str, positive: Collection[str], order: Order, conditions: Sequence[Condition]) -> Negation:
    return Negation(
        name,
        predecessors=frozenset(first for first, second in order if second == name and first in positive),
        successors=frozenset(second for first, second in order if first == name and second in positive),
        conditions=tuple(each for each in conditions if name in each.variables or isinstance(each, Agreement)),
    )


def _until(name: str, written: ast.Expression, schema: Schema) -> Condition:
    """Return the condition of UNTIL as one on the event that ends the variable `name`."""

    def change(node: ast.Expression) -> ast.Expression | None:
        match node:
            case ast.Reference(variable=None, attribute=str(attribute), index=None):
                return replace(node, variable=END)
            case ast.Reference(variable=str(attribute), attribute=None, index=None):
                return replace(node, variable=END, attribute=attribute)
            case ast.Reference(variable=variable, index=None) if variable == name:
                return replace(node, variable=END)
            case ast.Reference() | ast.PrevBound() | ast.Aggregate() | ast.Equivalence():
                raise PatternError("UNTIL reads attributes of the current event")
        return None

    return condition_of(rewritten(written, change), [END], (), schema)


def _check_scopes(branches: Sequence[Branch]) -> None:
    for branch in branches:
        for negation in branch.negations:
            if not (negation.predecessors and negation.successors):
                raise PatternError(f"without WITHIN, no window bounds where NOT({negation.variable}) looks for events")


@dataclass(frozen=True, slots=True)
class _Declaration:
    """How the pattern writes a variable, wherever it appears."""

    event_type: str | None
    quantity: Quantity
    optional: bool
    negated: bool
    until: ast.Expression | None = None


def _declared(pattern: ast.PatternNode) -> dict[str, _Declaration]:
    """Return the variables in order of first appearance."""
    declared: dict[str, _Declaration] = {}
    for name, declaration in _declarations(pattern):
        if declared.setdefault(name, declaration) != declaration:
            raise PatternError(f"{name} stands in the pattern twice, with different types or quantifiers or one of them negated")
    return declared


def _type_tests(declared: Mapping[str, _Declaration], type_column: str) -> list[ast.Expression]:
    """Return the conditions that event types stand for: ``v.type_column = 'EventType'``."""
    return [
        ast.Binary("=", ast.Reference(name, type_column), ast.Literal(declaration.event_type))
        for name, declaration in declared.items()
        if declaration.event_type is not None
    ]


def _declarations(node: ast.PatternNode) -> Iterator[tuple[str, _Declaration]]:
    """Yield each variable of a pattern where it stands, with how it is written there."""
    match node:
        case ast.Variable():
            yield node.name, _Declaration(node.event_type, Quantity(1, 1), optional=False, negated=False)
        case ast.Repeat():
            yield _repeated(node)
        case ast.Not():
            if not isinstance(node.element, ast.Variable):
                raise PatternError("NOT takes one variable without a quantifier")
            yield node.element.name, _Declaration(node.element.event_type, Quantity(1, 1), optional=False, negated=True)
        case ast.Next() | ast.Gap():
            yield from _declarations(node.element)
        case ast.Seq() | ast.And() | ast.Or():
            for element in node.elements:
                yield from _declarations(element)
        case _:
            raise UnsupportedError(f"the oracle does not match {type(node).__name__.upper()}")


def _repeated(node: ast.Repeat) -> tuple[str, _Declaration]:
    """Return a variable with a quantifier, and how it is written."""
    if not isinstance(node.element, ast.Variable):
        raise UnsupportedError("the oracle repeats single variables only")
    name, event_type = node.element.name, node.element.event_type
    if node.maximum is not None and node.maximum < max(node.minimum, 1):
        raise PatternError(f"{name} cannot bind at least {node.minimum} and at most {node.maximum} events")
    quantity = Quantity(max(node.minimum, 1), node.maximum)
    if node.until is not None and node.maximum == 1:
        raise PatternError(f"UNTIL behind {name}, which binds one event")
    return name, _Declaration(event_type, quantity, optional=node.minimum == 0, negated=False, until=node.until)


@dataclass(frozen=True, slots=True)
class _Alternative:
    """One choice for every OR, ``?`` and ``*``.

    `names`: the variables that are present, with negated ones.
    `order`: the pairs of variables of which one precedes the other.
    `omitted`: the variables that their own quantifiers leave out.
    `gaps`: pairs of sets of variables, between whose events no other event lies.
    `is_next`: whether it stands in NEXT.
    `chosen`: the variables with which FIRST or ANY begins, each with the strategy of that gap.
    """

    names: frozenset[str] = frozenset()
    order: Order = frozenset()
    omitted: frozenset[str] = frozenset()
    gaps: frozenset[tuple[frozenset[str], frozenset[str]]] = frozenset()
    is_next: bool = False
    chosen: frozenset[tuple[str, str]] = frozenset()


def _all_alternatives(pattern: ast.PatternNode) -> list[_Alternative]:
    number = _number_of_alternatives(pattern)
    if number > MAX_BRANCHES:
        raise UnsupportedError(f"the oracle takes patterns of {MAX_BRANCHES} branches; this one has {number}")
    return _alternatives(pattern)


def _number_of_alternatives(node: ast.PatternNode) -> int:
    match node:
        case ast.Repeat(minimum=0):
            return 2
        case ast.Next(element=element) | ast.Gap(element=element):
            return _number_of_alternatives(element)
        case ast.Or(elements=elements):
            return sum(map(_number_of_alternatives, elements))
        case ast.Seq(elements=elements) | ast.And(elements=elements):
            return math.prod(map(_number_of_alternatives, elements))
    return 1


def _alternatives(node: ast.PatternNode) -> list[_Alternative]:
    """Return one alternative for each choice in a pattern."""
    match node:
        case ast.Variable():
            return [_Alternative(frozenset({node.name}))]
        case ast.Repeat():
            present = _alternatives(node.element)
            return [*present, _Alternative(omitted=present[0].names)] if node.minimum == 0 else present
        case ast.Not():
            return _alternatives(node.element)
        case ast.Next():
            return [replace(alternative, is_next=True) for alternative in _alternatives(node.element)]
        case ast.Gap():
            return [
                replace(each, chosen=each.chosen | {(name, node.strategy) for name in each.names - {later for _, later in each.order}})
                for each in _alternatives(node.element)
            ]
        case ast.Or():
            return [alternative for element in node.elements for alternative in _alternatives(element)]
        case ast.And():
            return _combine(node.elements, _together)
        case ast.Seq():
            return _combine(node.elements, _in_sequence)
    raise UnsupportedError(f"the oracle does not match {type(node).__name__.upper()}")


def _combine(elements: Sequence[ast.PatternNode], combine: Callable[[Sequence[_Alternative]], _Alternative]) -> list[_Alternative]:
    """Return an alternative for each choice of one alternative per element.

    A choice in which a variable is both present and omitted is left out.
    """
    combined = (combine(choice) for choice in product(*(_alternatives(element) for element in elements)))
    return [alternative for alternative in combined if not alternative.names & alternative.omitted]


def _together(parts: Sequence[_Alternative]) -> _Alternative:
    return _Alternative(
        frozenset[str]().union(*(part.names for part in parts)),
        frozenset[tuple[str, str]]().union(*(part.order for part in parts)),
        frozenset[str]().union(*(part.omitted for part in parts)),
        frozenset[tuple[frozenset[str], frozenset[str]]]().union(*(part.gaps for part in parts), *map(_own_gap, parts)),
        chosen=frozenset[tuple[str, str]]().union(*(part.chosen for part in parts)),
    )


def _own_gap(part: _Alternative) -> set[tuple[frozenset[str], frozenset[str]]]:
    """Return the gap that NEXT asks for before `part` itself, to which what precedes is still to be added."""
    return {(frozenset(), part.names)} if part.is_next else set()


def _in_sequence(parts: Sequence[_Alternative]) -> _Alternative:
    together = _together(parts)
    order = together.order
    for earlier, later in combinations(parts, 2):
        if twice := earlier.names & later.names:
            raise PatternError(f"{min(twice)} cannot come before itself")
        order |= frozenset(product(earlier.names, later.names))
    gaps = set()
    for place, part in enumerate(parts):
        earlier_names = frozenset[str]().union(*(each.names for each in parts[:place]))
        gaps |= {(earlier_names | after, before) for after, before in (*part.gaps, *_own_gap(part))}
    return replace(together, order=order, gaps=frozenset(gaps))


def _close_order(order: Order) -> Order:
    """Return the transitive closure of `order`."""
    longer = order | {(first, last) for first, middle in order for other, last in order if middle == other}
    if longer != order:
        return _close_order(longer)
    if any(first == last for first, last in order):
        raise PatternError("the pattern orders a variable before itself")
    return order
