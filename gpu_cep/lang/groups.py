"""Write groups that are repeated, ``SEQ(b, c){3}``, as a SEQ of copies whose variables are numbered.

``SEQ(a, SEQ(b, c){2}) WHERE b.x < c.x`` is ``SEQ(a, SEQ(SEQ(b1, c1), SEQ(b2, c2))) WHERE b1.x < c1.x
AND b2.x < c2.x``. A condition that names a group's variables holds in each repetition.

``SEQ(a, SEQ(b, c){0,2})`` is an OR of what it may be: no repetition, one, or two. The variables of
a group that is repeated once at most, ``SEQ(b, c)?``, keep their names.

Groups in groups are written out from the outermost to the innermost. So ``SEQ(b, SEQ(c){2}){2}`` has
the variables ``b1``, ``c1_1``, ``c1_2``, ``b2``, ``c2_1``, ``c2_2``; and ``c1`` in WHERE stands for
those of the first repetition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, product
from typing import Any, TypeVar

from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.lang.ast import And, Expression, Gap, Next, Node, Not, Or, PatternNode, Query, Repeat, Seq, Variable
from gpu_cep.lang.branches import refused_branches
from gpu_cep.lang.walks import children, declared, repeated_in_seq

MOST_REPETITIONS = 1024
"""The most repetitions of a group, in all repetitions of the groups around it."""
MOST_NUMBERS = 64
"""The same where a group, or one around it, may have several numbers of repetitions: each is written out."""

NodeT = TypeVar("NodeT", bound=Node)


@dataclass(frozen=True, slots=True)
class _Group:
    """A repeated composite: its node, the variables in it, and what stands between their names and the number of a repetition."""

    node: Repeat
    variables: frozenset[str]
    separator: str

    @property
    def repetitions(self) -> range:
        """Return the numbers of the repetitions; of a group without a largest one, which is refused, none."""
        return range(1, (self.node.maximum or 0) + 1)

    @property
    def numbered(self) -> bool:
        """Return whether the variables of a repetition have its number."""
        return self.node.maximum != 1

    def copy(self, name: str, number: int) -> str:
        """Return the name of a variable of the group in one repetition."""
        return f"{name}{self.separator}{number}" if self.numbered else name

    def copies(self, name: str) -> list[str]:
        """Return the names that stand for a variable of the group, one for each repetition."""
        return [self.copy(name, number) for number in self.repetitions]

    def copied(self, node: NodeT, number: int) -> NodeT:
        """Return `node` with the variables of one repetition in place of the group's."""
        return _renamed(node, {name: self.copy(name, number) for name in self.variables}) if self.numbered else node

    def written_out(self) -> list[PatternNode | None]:
        """Return the copies, as an OR of each number of them, the largest first; then None if there may be no copy."""
        copies = [self.copied(self.node.element, number) for number in self.repetitions]
        numbers = range(len(copies), max(self.node.minimum, 1) - 1, -1)
        sequences = tuple(Seq(tuple(copies[:number]), span=self.node.span) for number in numbers)
        present = sequences[0] if len(sequences) == 1 else Or(sequences, span=self.node.span)
        return [present] if self.node.minimum else [present, None]


def expand_groups(query: Query) -> Query:
    """Return `query` with the copies of each group in its place, and with conditions on all of them.

    Examples
    --------
    >>> from gpu_cep.lang.format import format_query
    >>> from gpu_cep.lang.parser import parse
    >>> print(format_query(expand_groups(parse("PATTERN SEQ(a, SEQ(b, c){2}) WHERE b.x < c.x AND a.x < c1.x"))))
    PATTERN SEQ(a, SEQ(SEQ(b1, c1), SEQ(b2, c2)))
    WHERE b1.x < c1.x AND b2.x < c2.x AND a.x < c1.x
    >>> print(format_query(expand_groups(parse("PATTERN SEQ(a, SEQ(b, c){0,2}, d)"))))
    PATTERN OR(SEQ(a, OR(SEQ(SEQ(b1, c1), SEQ(b2, c2)), SEQ(SEQ(b1, c1))), d), SEQ(a, d))
    >>> print(format_query(expand_groups(parse("PATTERN SEQ(a, SEQ(b, SEQ(c){2}){2}) WHERE b.x < c.x AND c1.x > 5"))))
    PATTERN SEQ(a, SEQ(SEQ(b1, SEQ(SEQ(c1_1), SEQ(c1_2))), SEQ(b2, SEQ(SEQ(c2_1), SEQ(c2_2)))))
    WHERE b1.x < c1_1.x AND b1.x < c1_2.x AND b2.x < c2_1.x AND b2.x < c2_2.x AND c1_1.x > 5 AND c1_2.x > 5

    Raises
    ------
    PatternError
        A name means no single variable: that of a copy is another's, too, or RETURN names a group's variable.
    UnsupportedError
        A group has too many repetitions, or no largest number of them; or groups make too many branches.
    """
    refused = [fault for node in _groups(query.pattern) for fault in _refused(node)]
    if refused:
        raise UnsupportedError(refused)
    _check_names(query)
    if next(_groups(query.pattern), None) and (too_many := refused_branches(query.pattern)):
        raise UnsupportedError([too_many])
    numbered: frozenset[str] = frozenset()
    while groups := _outermost(query.pattern, numbered):
        query = _written_out(query, groups)
        numbered = numbered.union(copy for group in groups if group.numbered for name in group.variables for copy in group.copies(name))
    return query


def _outermost(pattern: PatternNode, numbered: frozenset[str]) -> list[_Group]:
    """Return the groups that stand in no other one, each once; a number follows a name that is `numbered` behind a ``_``."""
    found = {node: frozenset(declared(node)) for node in _groups(pattern)}
    return [_Group(node, names, "" if names.isdisjoint(numbered) else "_") for node, names in found.items()]


def _written_out(query: Query, groups: list[_Group]) -> Query:
    """Return `query` with the copies of `groups`, in which others may stand."""
    return replace(
        query,
        pattern=_one_of(query.pattern, groups),
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
    names = frozenset(_names(conjunct))
    named = [group for group in groups if not group.variables.isdisjoint(names)]
    for numbers in product(*(group.repetitions for group in named)):
        copy = conjunct
        for group, number in zip(named, numbers, strict=True):
            copy = group.copied(copy, number)
        yield copy


def _one_of(pattern: PatternNode, groups: list[_Group]) -> PatternNode:
    """Return what a pattern with groups may be, as an OR if it may be several things."""
    choices = tuple(choice for choice in _choices(pattern, groups) if choice is not None)
    return choices[0] if len(choices) == 1 else Or(choices, span=pattern.span)


def _choices(node: PatternNode, groups: list[_Group], *, preceded: bool = False) -> list[PatternNode | None]:
    """Return what `node` may be for each choice of groups that are left out; None where nothing is left of it.

    `preceded`: whether an element of a SEQ around it stands before it.
    """
    match node:
        case Repeat(element) if not isinstance(element, Variable):
            return next(each for each in groups if each.node == node).written_out()
        case Seq(elements):
            parts = [_choices(each, groups, preceded=preceded or place > 0) for place, each in enumerate(elements)]
            return [_sequence(node, choice, preceded=preceded) for choice in product(*parts)]
        case And(elements):
            parts = [_choices(each, groups, preceded=preceded) for each in elements]
            return [_joined(node, choice) for choice in product(*parts)]
        case Or(elements):
            found = [choice for each in elements for choice in _choices(each, groups, preceded=preceded)]
            alternatives = _joined(node, found)
            return [alternatives] if alternatives is None or None not in found else [alternatives, None]
        case Not(element) | Next(element) | Gap(element):
            return [None if choice is None else replace(node, element=choice) for choice in _choices(element, groups, preceded=preceded)]
    return [node]


def _sequence(node: Seq, elements: Sequence[PatternNode | None], *, preceded: bool) -> PatternNode | None:
    """Return a SEQ without what is left out, or None if all is; what then follows nothing asks for no gap."""
    sequence = _joined(node, elements)
    return sequence if sequence is None or preceded or elements[0] is not None else _without_first_gap(sequence)


def _without_first_gap(node: PatternNode) -> PatternNode:
    """Return `node` without NEXT, FIRST and ANY around that with which it may begin."""
    match node:
        case Next(element) | Gap(element):
            return _without_first_gap(element)
        case Seq(elements):
            return replace(node, elements=(_without_first_gap(elements[0]), *elements[1:]))
        case Or(elements) | And(elements):
            return replace(node, elements=tuple(map(_without_first_gap, elements)))
    return node


def _joined(node: Seq | And | Or, elements: Sequence[PatternNode | None]) -> PatternNode | None:
    """Return `node` with the elements that are not left out, or None if all are."""
    present = tuple(each for each in elements if each is not None)
    return replace(node, elements=present) if present else None


def _copies(name: str, groups: list[_Group]) -> list[str]:
    """Return the names that stand for a variable once groups are expanded."""
    group = next((each for each in groups if name in each.variables), None)
    return [name] if group is None else group.copies(name)


def _groups(node: PatternNode) -> Iterator[Repeat]:
    """Yield the composites with a quantifier that stand in no other one."""
    match node:
        case Repeat(element) if not isinstance(element, Variable):
            yield node
        case Seq(elements) | And(elements) | Or(elements):
            yield from chain.from_iterable(map(_groups, elements))
        case Not(element) | Next(element) | Gap(element):
            yield from _groups(element)


def _check_names(query: Query) -> None:
    """Raise an error with all names that have no clear meaning, as the query is written."""
    misplaced: dict[str, Diagnostic] = {}
    for name, fault in _misplaced(query.pattern):
        misplaced.setdefault(name, fault)
    around = {name: groups for name, groups in _grouped(query.pattern) if name not in misplaced}
    meanings = {name: _meanings(name, groups) for name, groups in sorted(around.items())}
    clashes = [Diagnostic(message, around[name][0].node.span, "rename one of them") for name, message in _clashes(meanings, query.pattern)]
    if faults := [*misplaced.values(), *clashes, *_ambiguous(query.returns, meanings)]:
        raise PatternError(faults)


def _misplaced(pattern: PatternNode) -> Iterator[tuple[str, Diagnostic]]:
    """Yield the variables of groups that stand in another place, too, each with the fault.

    A group may stand alike in several alternatives of an OR.
    """
    nodes = [*_groups(pattern)]
    for node in dict.fromkeys(nodes):
        yield from _misplaced(node.element)
        for name in sorted(repeated_in_seq(node.element)):
            yield name, Diagnostic(f"variable {name!r} stands in the pattern twice", node.span, "give each its own name")
    everywhere, grouped = Counter(declared(pattern)), Counter(chain.from_iterable(map(declared, nodes)))
    repeated = repeated_in_seq(pattern)
    for name in sorted(grouped):
        inside = [node for node in nodes if name in declared(node)]
        if everywhere[name] != grouped[name]:
            yield name, Diagnostic(f"{name!r} stands in a repeated group, and outside of it", inside[0].span, "rename one of them")
        elif name in repeated or len({*inside}) > 1:
            yield name, Diagnostic(f"{name!r} stands in several repeated groups", inside[-1].span, "rename all but one of them")


def _grouped(pattern: PatternNode, around: tuple[_Group, ...] = ()) -> Iterator[tuple[str, tuple[_Group, ...]]]:
    """Yield the variables of groups with the groups around each, the outermost first."""
    numbered = frozenset(declared(pattern)) if any(group.numbered for group in around) else frozenset[str]()
    for group in _outermost(pattern, numbered):
        groups = (*around, group)
        yield from (dict.fromkeys(group.variables, groups) | dict(_grouped(group.node.element, groups))).items()


def _meanings(name: str, around: Sequence[_Group]) -> dict[str, list[str]]:
    """Return, for a variable and for its copies by some of the groups around it, the names of the copies by all of them."""
    if not around:
        return {name: [name]}
    meanings: dict[str, list[str]] = {}
    last: list[str] = []
    for copy in around[0].copies(name):
        of_copy = _meanings(copy, around[1:])
        last += of_copy[copy]
        meanings |= of_copy
    return meanings | {name: last}


def _clashes(meanings: Mapping[str, Mapping[str, list[str]]], pattern: PatternNode) -> Iterator[tuple[str, str]]:
    """Yield variables that have a copy with the name of something else, and what that is; of two variables the first such copy."""
    variables = frozenset(declared(pattern))
    owners: dict[str, str] = {}
    found: set[tuple[str, str]] = set()
    for name, of_name in meanings.items():
        for copy in sorted((of_name.keys() - {name}) & variables):
            yield name, f"{copy!r} is a variable of the query, and a copy of {name!r} in a repeated group"
        for copy in sorted(of_name.keys() - variables):
            pair = (owners.setdefault(copy, name), name)
            if pair[0] != name and pair not in found:
                yield name, f"{copy!r} is a copy of {pair[0]!r}, and of {name!r}, in repeated groups"
            found.add(pair)


def _ambiguous(returns: Sequence[Node], meanings: Mapping[str, Mapping[str, list[str]]]) -> Iterator[Diagnostic]:
    """Yield the names in RETURN that stand for several copies."""
    copies = dict(chain.from_iterable(of_name.items() for of_name in meanings.values()))
    for item in returns:
        for name in sorted(frozenset(_names(item))):
            if len(last := copies.get(name, [])) > 1:
                hint = f"name a repetition: {', '.join(last[:3])}"
                yield Diagnostic(f"{name!r} stands in a repeated group, and so for several variables", item.span, hint)


def _refused(node: Repeat, around: int = 1, *, several: bool = False) -> Iterator[Diagnostic]:
    """Yield why a composite, or one in it, cannot be repeated so.

    `around`: how often the groups around it repeat it. `several`: whether one of them may have several numbers of repetitions.
    """
    if not node.greedy:
        yield Diagnostic("a reluctant quantifier on a group is not supported", node.span, "the strategy says which repetitions there are")
    if node.maximum is None:
        message = "a group without a largest number of repetitions is not supported"
        yield Diagnostic(message, node.span, f"write the most that there may be: SEQ(b, c){{{node.minimum},{max(node.minimum, 5)}}}")
        return
    several |= node.minimum != node.maximum > 1
    copies = around * node.maximum
    if copies > (most := MOST_NUMBERS if several else MOST_REPETITIONS):
        where = "" if around == 1 else ", with those of the groups around it,"
        message = f"a group of {'up to ' if several else ''}{copies:,} repetitions{where} is not supported"
        yield Diagnostic(message, node.span, f"up to {most:,} are")
        return
    for inner in _groups(node.element):
        yield from _refused(inner, copies, several=several)


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
