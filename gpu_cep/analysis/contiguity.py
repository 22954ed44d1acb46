"""Write NEXT as a negation: between two elements of a SEQ there is no event.

``SEQ(a, NEXT(b))`` becomes ``SEQ(a, NOT("event right before b"), b)``, where no condition but
``[attr]`` is on the negated variable. So all that finds matches of negations finds those of NEXT.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count

from gpu_cep.analysis.bound import Branch, EventVariable
from gpu_cep.analysis.faults import Faults
from gpu_cep.lang.ast import And, Next, Not, Or, PatternNode, Repeat, Seq, Span, Variable
from gpu_cep.lang.format import format_element
from gpu_cep.lang.walks import declared

Gaps = dict[str, tuple[Span | None, str]]


@dataclass(frozen=True, slots=True)
class PatternWithoutNext:
    """A pattern without NEXT.

    `pattern`: the pattern, with a negated variable in front of what stood in NEXT.
    `gaps`: the names of these variables, each with the place of its NEXT and its text.
    """

    pattern: PatternNode
    gaps: Gaps


@dataclass(frozen=True, slots=True)
class _Query:
    """What is found in a query: the names that it gives variables, the gaps so far, and its faults."""

    taken: frozenset[str]
    gaps: Gaps
    faults: Faults


def negate_gaps(pattern: PatternNode, faults: Faults) -> PatternWithoutNext:
    """Return `pattern` with each NEXT written as a negation; record a fault for each NEXT that means nothing."""
    query = _Query(frozenset(declared(pattern)), {}, faults)
    return PatternWithoutNext(_without_next(pattern, query, preceded=False), query.gaps)


def drop_open_gaps(branch: Branch, gaps: Collection[int]) -> Branch:
    """Return `branch` without the negations of `gaps` that are open: OR and ``?`` may leave out all that precedes."""
    return replace(branch, negations=tuple(each for each in branch.negations if each.variable not in gaps or (each.after and each.before)))


def may_move(branch: Branch, gap: int, variables: tuple[EventVariable, ...]) -> bool:
    """Return whether what `gap` follows can bind more events than it must, so that the gap may begin later."""
    after = next((each.after for each in branch.negations if each.variable == gap), 0)
    before = dict(zip(branch.variables, branch.before, strict=True))
    ended = [v for v in before if after >> v & 1 and not any(after >> w & 1 and before[w] >> v & 1 for w in before)]
    return any(variables[v].minimum != variables[v].maximum for v in ended)


def _without_next(node: PatternNode, query: _Query, *, preceded: bool) -> PatternNode:
    """Return `node` without NEXT; `preceded`: whether an element of a SEQ around it stands before it."""
    match node:
        case Next() if preceded:
            return Seq(tuple(_opened(node, query, preceded=True)), span=node.span)
        case Next(element):
            hint = "NEXT stands in a SEQ, behind another element: SEQ(a, NEXT(b))"
            query.faults.error(f"{format_element(node)} follows nothing", node.span, hint)
            return _without_next(element, query, preceded=False)
        case Seq(elements):
            opened = (_opened(each, query, preceded=preceded or place > 0) for place, each in enumerate(elements))
            return replace(node, elements=tuple(chain.from_iterable(opened)))
        case Or(elements) | And(elements):
            return replace(node, elements=tuple(_without_next(each, query, preceded=preceded) for each in elements))
        case Repeat(element) | Not(element):
            return replace(node, element=_without_next(element, query, preceded=False))
    return node


def _opened(node: PatternNode, query: _Query, *, preceded: bool) -> Iterator[PatternNode]:
    """Yield an element of a SEQ; if it stands in NEXT behind another, the negation of its gap comes before it."""
    if isinstance(node, Next) and preceded:
        element = node.element
        if _may_be_absent(element):
            query.faults.error(f"{format_element(element)} in {format_element(node)} may bind nothing", node.span, _where_absent(element))
        name = next(each for each in _names(element) if each not in query.taken and each not in query.gaps)
        query.gaps[name] = (node.span, format_element(node))
        yield Not(Variable(name, span=node.span), span=node.span)
        node = element
    yield _without_next(node, query, preceded=preceded)


def _names(element: PatternNode) -> Iterator[str]:
    """Yield names for the negated variable of a gap before `element`; explain shows "no event right before b after {a}"."""
    shown = f"event right before {' or '.join(dict.fromkeys(declared(_first(element))))}"
    return chain([shown], (f"{shown} ({number})" for number in count(2)))


def _first(element: PatternNode) -> PatternNode:
    """Return the part of `element` that comes first, and binds events."""
    while isinstance(element, Seq):
        element = next((each for each in element.elements if not isinstance(each, Not)), element.elements[0])
    return element


def _where_absent(element: PatternNode) -> str:
    """Return what to write for NEXT of what may bind nothing."""
    match element:
        case Repeat(Variable(), maximum=maximum):
            present = element.element if maximum == 1 else replace(element, minimum=1)
            return f"write SEQ({format_element(Next(present))})?"
    return "NEXT takes what binds an event in any case; write the alternatives as OR(SEQ(…), SEQ(…))"


def _may_be_absent(node: PatternNode) -> bool:
    """Return whether some branch of `node` binds no event."""
    match node:
        case Not():
            return True
        case Repeat(minimum=minimum):
            return minimum == 0
        case Or(elements):
            return any(map(_may_be_absent, elements))
        case Seq(elements) | And(elements):
            return all(map(_may_be_absent, elements))
        case Next(element):
            return _may_be_absent(element)
    return False
