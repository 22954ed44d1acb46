"""Write groups that are repeated, ``SEQ(b, c){3}``, as a SEQ of copies whose variables are numbered.

``SEQ(a, SEQ(b, c){2}) WHERE b.x < c.x`` is ``SEQ(a, SEQ(SEQ(b1, c1), SEQ(b2, c2))) WHERE b1.x < c1.x
AND b2.x < c2.x``. A condition that names a group's variables holds in each repetition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import chain, product
from typing import Any, TypeVar

from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.lang.ast import And, Expression, Gap, Next, Node, Not, Or, PatternNode, Query, Repeat, Seq, Variable
from gpu_cep.lang.walks import children, declared

MOST_REPETITIONS = 1024

NodeT = TypeVar("NodeT", bound=Node)


@dataclass(frozen=True, slots=True)
class _Group:
    """A repeated composite: its node, the variables in it, and how often it is repeated."""

    node: Repeat
    variables: frozenset[str]

    @property
    def repetitions(self) -> range:
        """Return the numbers of the repetitions."""
        return range(1, self.node.minimum + 1)

    def copied(self, node: NodeT, number: int) -> NodeT:
        """Return `node` with the variables of one repetition in place of the group's."""
        return _renamed(node, {name: f"{name}{number}" for name in self.variables})


def expand_groups(query: Query) -> Query:
    """Return `query` with the copies of each group in its place, and with conditions on all of them.

    Examples
    --------
    >>> from gpu_cep.lang.format import format_query
    >>> from gpu_cep.lang.parser import parse
    >>> print(format_query(expand_groups(parse("PATTERN SEQ(a, SEQ(b, c){2}) WHERE b.x < c.x AND a.x < c1.x"))))
    PATTERN SEQ(a, SEQ(SEQ(b1, c1), SEQ(b2, c2)))
    WHERE b1.x < c1.x AND b2.x < c2.x AND a.x < c1.x

    Raises
    ------
    PatternError
        A name means no single variable: that of a copy is one of the query's, or RETURN names a group's variable.
    UnsupportedError
        A group stands in a group, or is repeated otherwise than a number of times.
    """
    groups = [_Group(node, frozenset(declared(node))) for node in _groups(query.pattern)]
    if not groups:
        return query
    _check(query, groups)
    return replace(
        query,
        pattern=_expanded(query.pattern, groups),
        where=None if query.where is None else _conditions(query.where, groups),
        strategy_variables=tuple(copy for name in query.strategy_variables for copy in _copies(name, groups)),
    )


def _conditions(where: Expression, groups: list[_Group]) -> Expression:
    """Return the conditions of all repetitions."""
    conjuncts = where.operands if isinstance(where, ast.Connective) and where.operator == "AND" else (where,)
    copies = [copy for conjunct in conjuncts for copy in _of_repetitions(conjunct, groups)]
    return copies[0] if len(copies) == 1 else ast.connect("AND", copies, where.span)


def _of_repetitions(conjunct: Expression, groups: list[_Group]) -> Iterator[Expression]:
    """Yield a condition for each choice of repetitions of the groups whose variables it names."""
    named = [group for group in groups if group.variables.intersection(_names(conjunct))]
    for numbers in product(*(group.repetitions for group in named)):
        copy = conjunct
        for group, number in zip(named, numbers, strict=True):
            copy = group.copied(copy, number)
        yield copy


def _expanded(node: PatternNode, groups: list[_Group]) -> PatternNode:
    match node:
        case Repeat(element) if not isinstance(element, Variable):
            group = next(each for each in groups if each.node is node)
            return Seq(tuple(group.copied(element, number) for number in group.repetitions), span=node.span)
        case Seq(elements) | And(elements) | Or(elements):
            return replace(node, elements=tuple(_expanded(each, groups) for each in elements))
        case Not(element) | Next(element) | Gap(element):
            return replace(node, element=_expanded(element, groups))
    return node


def _copies(name: str, groups: list[_Group]) -> list[str]:
    """Return the names that stand for a variable once groups are expanded."""
    group = next((each for each in groups if name in each.variables), None)
    return [name] if group is None else [f"{name}{number}" for number in group.repetitions]


def _groups(node: PatternNode) -> Iterator[Repeat]:
    """Yield the composites with a quantifier that stand in no other one."""
    match node:
        case Repeat(element) if not isinstance(element, Variable):
            yield node
        case Seq(elements) | And(elements) | Or(elements):
            yield from chain.from_iterable(map(_groups, elements))
        case Not(element) | Next(element) | Gap(element):
            yield from _groups(element)


def _check(query: Query, groups: list[_Group]) -> None:
    """Raise an error with all that has no clear meaning."""
    refused = [fault for group in groups for fault in _refused(group.node)]
    if refused:
        raise UnsupportedError(refused)
    grouped = frozenset[str]().union(*(group.variables for group in groups))
    faults = [*_name_faults(query.pattern, groups, grouped)]
    for item in query.returns:
        for name in sorted(grouped.intersection(_names(item))):
            hint = f"name a repetition: {', '.join(_copies(name, groups)[:3])}"
            faults.append(Diagnostic(f"{name!r} stands in a repeated group, and so for several variables", item.span, hint))
    if faults:
        raise PatternError(faults)


def _name_faults(pattern: PatternNode, groups: list[_Group], grouped: frozenset[str]) -> Iterator[Diagnostic]:
    """Yield the names of the pattern that would mean several variables."""
    everywhere = Counter(declared(pattern))
    for name in sorted(grouped):
        inside = next(group for group in groups if name in group.variables)
        if everywhere[name] != Counter(declared(inside.node))[name]:
            yield Diagnostic(f"{name!r} stands in a repeated group, and outside of it", inside.node.span, "rename one of them")
        for copy in _copies(name, groups):
            if copy in everywhere:
                message = f"{copy!r} is a variable of the query, and a copy of {name!r} in a repeated group"
                yield Diagnostic(message, inside.node.span, "rename one of them")


def _refused(node: Repeat) -> Iterator[Diagnostic]:
    """Yield why a composite cannot be repeated so."""
    if node.minimum != node.maximum or not node.greedy:
        message = "a group whose number of repetitions is open is not supported"
        yield Diagnostic(message, node.span, "a group is repeated a number of times: SEQ(b, c){3}")
    elif node.minimum > MOST_REPETITIONS:
        message = f"a group of {node.minimum:,} repetitions is not supported"
        yield Diagnostic(message, node.span, f"up to {MOST_REPETITIONS:,} are")
    if next(_groups(node.element), None) is not None:
        yield Diagnostic("a repeated group in a repeated group is not supported", node.span, "write one of them out")


def _names(node: Node) -> Iterator[str]:
    """Yield the names of variables that an expression reads, and those of bare attributes."""
    match node:
        case ast.Reference(variable=str(name)) | ast.PrevBound(variable=str(name)) | ast.Aggregate(variable=str(name)):
            yield name
    for child in children(node):
        yield from _names(child)


def _renamed(node: NodeT, names: Mapping[str, str]) -> NodeT:
    """Return a pattern or an expression with other names of variables."""

    def part(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(part, value))
        return _renamed(value, names) if isinstance(value, Node) else value

    changed: dict[str, Any] = {each.name: part(getattr(node, each.name)) for each in fields(node) if each.name != "span"}
    key = "name" if isinstance(node, Variable) else "variable"
    if changed.get(key) in names:
        # a bare name in UNTIL is an attribute
        bare = isinstance(node, ast.Reference) and node.attribute is None
        changed |= {"variable": None, "attribute": changed[key]} if bare else {key: names[changed[key]]}
    return replace(node, **changed)
