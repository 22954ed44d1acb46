"""The pattern in normal form: event variables and a strict partial order on them.

SEQ and AND in any nesting give one branch. SEQ puts every variable of an
element before every variable of a later one; AND orders nothing. The order is
kept as one bit mask per variable (thesis Def. 3.1, with nesting).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

from gpu_cep.analysis.bound import Branch, EventVariable
from gpu_cep.analysis.faults import Faults
from gpu_cep.lang.ast import And, Not, Or, PatternNode, Repeat, Seq, Span, Variable

MAX_VARIABLES = 1024
MAX_BOUND = 2**31 - 1
"""The largest bound of a quantifier: kernels count a binding's events in 32 bits."""

SUPPORTED = "patterns are built of SEQ and AND, of single variables and of those with +, {n}, {n,} or {n,m}"


@dataclass(frozen=True, slots=True)
class Primitive:
    """One occurrence of a variable in the pattern, with what was written around it."""

    variable: EventVariable
    event_type: str | None
    span: Span | None


def primitives(pattern: PatternNode, faults: Faults) -> tuple[Primitive, ...]:
    """The variables of `pattern` in order of first appearance.

    What is not supported is recorded by name, and what stands below it is read
    all the same, so that its other faults are found.
    """
    found = tuple(_primitives(pattern, faults))
    _check_names(found, pattern, faults)
    if len(found) > MAX_VARIABLES:
        faults.refuse(f"a pattern of {len(found)} variables", f"at most {MAX_VARIABLES} are", pattern.span)
    return found


def branch(pattern: PatternNode) -> Branch:
    """The partial order of a pattern of SEQ, AND and single-named variables."""
    before = _order(pattern, 0)
    return Branch(tuple(range(len(before))), before)


# Variables -------------------------------------------------------------------


@singledispatch
def _primitives(node: PatternNode, faults: Faults) -> Iterator[Primitive]:
    raise TypeError(f"no rule reads {type(node).__name__}")


@_primitives.register
def _(node: Variable, faults: Faults) -> Iterator[Primitive]:
    yield Primitive(EventVariable(node.name, 1, 1, quantified=False), node.event_type, node.span)


@_primitives.register
def _(node: Repeat, faults: Faults) -> Iterator[Primitive]:
    element = node.element
    if not isinstance(element, Variable):
        faults.refuse(f"the quantifier {_quantifier(node)} on a composite pattern", "quantifiers stand on single variables", node.span)
        yield from _primitives(element, faults)
        return
    _check_quantifier(node, element.name, faults)
    yield Primitive(EventVariable(element.name, node.minimum, node.maximum, quantified=True), element.event_type, node.span or element.span)


@_primitives.register(Seq)
@_primitives.register(And)
def _(node: Seq | And, faults: Faults) -> Iterator[Primitive]:
    for element in node.elements:
        yield from _primitives(element, faults)


@_primitives.register
def _(node: Or, faults: Faults) -> Iterator[Primitive]:
    faults.refuse("OR", SUPPORTED, node.span)
    for element in node.elements:
        yield from _primitives(element, faults)


@_primitives.register
def _(node: Not, faults: Faults) -> Iterator[Primitive]:
    if not isinstance(node.element, Variable):
        faults.error("NOT takes a single variable", node.span)
    faults.refuse("NOT", SUPPORTED, node.span)
    yield from _primitives(node.element, faults)


def _quantifier(node: Repeat) -> str:
    match node.minimum, node.maximum:
        case 1, None:
            return "+"
        case 0, None:
            return "*"
        case 0, 1:
            return "?"
        case minimum, None:
            return f"{{{minimum},}}"
        case minimum, maximum:
            return f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{maximum}}}"


def _check_quantifier(node: Repeat, name: str, faults: Faults) -> None:
    written = f"{name}{_quantifier(node)}"
    if node.maximum is not None and node.maximum < max(node.minimum, 1):
        faults.error(f"{written} allows no binding", node.span, "the upper bound is at least 1 and at least the lower bound")
    elif node.minimum == 0:
        faults.refuse(written, SUPPORTED, node.span)
    if max(node.minimum, node.maximum or 0) > MAX_BOUND:
        faults.refuse(f"the quantifier of {written}", f"bounds up to {MAX_BOUND:,} are", node.span)
    if not node.greedy:
        faults.refuse(f"the reluctant quantifier of {written}", "quantifiers take as much as the strategy lets them", node.span)


def _check_names(found: tuple[Primitive, ...], pattern: PatternNode, faults: Faults) -> None:
    """Each variable once; between elements of AND or OR the language allows more, but it is not run."""
    ordered_after_itself = _twice_in_seq(pattern)
    seen: set[str] = set()
    for primitive in found:
        name = primitive.variable.name
        if name in seen and name in ordered_after_itself:
            faults.error(f"variable {name!r} stands in the pattern twice", primitive.span)
        elif name in seen:
            faults.refuse(f"variable {name!r} in several elements of AND or OR", "each variable stands in the pattern once", primitive.span)
        seen.add(name)


def _twice_in_seq(node: PatternNode) -> frozenset[str]:
    """The variables that stand in two elements of one SEQ."""
    elements = _elements(node)
    counts = Counter(name for element in elements for name in _names(element)) if isinstance(node, Seq) else Counter[str]()
    return frozenset(name for name, count in counts.items() if count > 1).union(*map(_twice_in_seq, elements))


def _names(node: PatternNode) -> frozenset[str]:
    own = frozenset({node.name} if isinstance(node, Variable) else ())
    return own.union(*map(_names, _elements(node)))


def _elements(node: PatternNode) -> tuple[PatternNode, ...]:
    match node:
        case Variable():
            return ()
        case Repeat(element) | Not(element):
            return (element,)
        case Seq(elements) | And(elements) | Or(elements):
            return elements
    raise TypeError(f"no rule reads {type(node).__name__}")


# Order -----------------------------------------------------------------------


@singledispatch
def _order(node: PatternNode, first: int) -> tuple[int, ...]:
    """For each variable below `node`, the mask of those below it that precede it; the variables are numbered from `first`."""
    raise TypeError(f"no rule orders {type(node).__name__}")


@_order.register(Variable)
@_order.register(Repeat)
def _(node: Variable | Repeat, first: int) -> tuple[int, ...]:
    return (0,)


@_order.register
def _(node: And, first: int) -> tuple[int, ...]:
    before: tuple[int, ...] = ()
    for element in node.elements:
        before += _order(element, first + len(before))
    return before


@_order.register
def _(node: Seq, first: int) -> tuple[int, ...]:
    before: tuple[int, ...] = ()
    for element in node.elements:
        earlier = _mask(first, len(before))
        before += tuple(mask | earlier for mask in _order(element, first + len(before)))
    return before


def _mask(first: int, count: int) -> int:
    return ((1 << count) - 1) << first
