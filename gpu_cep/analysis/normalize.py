"""Bring a pattern into its normal form: branches, each a strict partial order on variables.

SEQ puts every variable of an element before every variable of a later one. AND orders nothing. OR,
``?`` and ``*`` make branches (disjunctive normal form). The order is one bit mask per variable
(thesis Def. 3.1, with nesting). In AND a variable may stand in several elements. The order is then
the transitive closure of what all of them say (lazy paper, section 4.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product

from gpu_cep.analysis.bound import Branch, EventVariable, Negation
from gpu_cep.analysis.faults import Faults
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.lang.ast import And, Expression, Not, Or, PatternNode, Repeat, Seq, Span, Variable
from gpu_cep.lang.branches import refused_branches
from gpu_cep.lang.format import format_element
from gpu_cep.lang.walks import repeated_in_seq

MAX_VARIABLES = 1024
MAX_BOUND = 2**31 - 1
"""The largest bound of a quantifier: kernels count a binding's events in 32 bits."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """One occurrence of a variable in the pattern, with its event type and the condition of its UNTIL."""

    variable: EventVariable
    event_type: str | None
    span: Span | None
    until: Expression | None = None


def primitives(pattern: PatternNode, faults: Faults, text: str | None = None, hidden: Collection[str] = ()) -> tuple[Primitive, ...]:
    """Return the occurrences of variables in `pattern`, in order.

    Faults are recorded; the search goes on below them. `text` is the query's, for errors to quote.
    `hidden`: the negated variables that FIRST is written as. Where such a one stands twice, so does another, which is named.

    Raises
    ------
    UnsupportedError
        There are more than :data:`MAX_VARIABLES` variables; nothing else of the query is looked at.
    """
    found = tuple(_primitives(pattern, faults))
    variables = len({primitive.variable.name for primitive in found})
    if variables > MAX_VARIABLES:
        message = f"a pattern of {variables:,} variables is not supported"
        raise UnsupportedError([Diagnostic(message, pattern.span, f"at most {MAX_VARIABLES:,} are")], text)
    _check_alike(found, faults)
    _check_places(found, pattern, hidden, faults)
    return found


def branches(pattern: PatternNode, variables: tuple[EventVariable, ...], faults: Faults) -> tuple[Branch, ...]:
    """Return the distinct branches of `pattern` that bind something, without their conditions.

    A variable's number is its position in `variables`.
    """
    if repeated_in_seq(pattern):
        return ()  # this fault is recorded already, and would be reported again as a circle
    if refused := refused_branches(pattern):
        faults.refusals.append(refused)
        return ()
    numbers = {variable.name: number for number, variable in enumerate(variables)}
    positive = sum(1 << number for number, variable in enumerate(variables) if not variable.negated)
    disjuncts = dict.fromkeys(_close_order(disjunct) for disjunct in _disjuncts(pattern, numbers) if disjunct.present & positive)
    if not disjuncts:
        faults.error("the pattern binds no event", pattern.span, "NOT needs a variable beside it that is not negated")
    cyclic = next((mask for disjunct in disjuncts if (mask := _in_cycle(disjunct))), 0)
    if cyclic:
        names = ", ".join(variable.name for number, variable in enumerate(variables) if cyclic >> number & 1)
        faults.error(f"the pattern orders {names} in a circle", pattern.span)
        return ()
    return tuple(_branch(disjunct, positive) for disjunct in disjuncts)


def _primitives(node: PatternNode, faults: Faults) -> Iterator[Primitive]:
    """Yield the variables of a pattern where they stand, and report quantifiers and negations that mean nothing."""
    match node:
        case Variable():
            yield Primitive(EventVariable(node.name, 1, 1, quantified=False), node.event_type, node.span)
        case Repeat():
            yield from _repeated(node, faults)
        case Seq() | And() | Or():
            for element in node.elements:
                yield from _primitives(element, faults)
        case Not():
            if not isinstance(node.element, Variable):
                faults.error("NOT takes a single variable without a quantifier", node.span, _negated(node.element))
            for primitive in _primitives(node.element, faults):
                yield replace(primitive, variable=replace(primitive.variable, negated=True))
        case _:
            raise TypeError(f"no rule reads {type(node).__name__}")


def _repeated(node: Repeat, faults: Faults) -> Iterator[Primitive]:
    """Yield the variable that a quantifier stands on; report what the quantifier may not say."""
    element = node.element
    if not isinstance(element, Variable):
        faults.refuse(f"the quantifier {_quantifier(node)} on a composite pattern", "quantifiers stand on single variables", node.span)
        yield from _primitives(element, faults)
        return
    _check_quantifier(node, element.name, faults)
    optional = node.minimum == 0
    quantified = not (optional and node.maximum == 1)
    variable = EventVariable(element.name, max(node.minimum, 1), node.maximum, quantified, optional)
    if node.until is not None and node.maximum == 1:
        faults.error(f"UNTIL behind {element.name}{_quantifier(node)}, which binds one event", node.span, "UNTIL ends +, * or {n,m}")
    yield Primitive(variable, element.event_type, node.span or element.span, node.until)


def _negated(element: PatternNode) -> str | None:
    """Return how what stands inside NOT is forbidden; None if it cannot be."""
    if (events := _alternatives(element)) is None:
        return None
    written = list(dict.fromkeys(format_element(Not(event)) for event in events))
    return f"each has a NOT of its own: {', '.join(written)}" if len(written) > 1 else f"{written[0]} forbids every such event"


def _alternatives(element: PatternNode) -> list[Variable] | None:
    """Return the variables of which any one matches `element`; None if it takes several of them together."""
    match element:
        case Variable():
            return [element]
        case Repeat(element=Variable() as event):
            return [event]
        case Or(elements):
            found = [_alternatives(each) for each in elements]
            return None if None in found else [event for events in found if events for event in events]
    return None


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
    if max(node.minimum, node.maximum or 0) > MAX_BOUND:
        faults.refuse(f"the quantifier of {written}", f"bounds up to {MAX_BOUND:,} are", node.span)
    if not node.greedy:
        faults.refuse(f"the reluctant quantifier of {written}", "quantifiers take as much as the strategy lets them", node.span)


def _check_alike(found: tuple[Primitive, ...], faults: Faults) -> None:
    """Refuse a variable that appears with different types or quantifiers, or both negated and not."""
    first: dict[str, Primitive] = {}
    for primitive in found:
        known = first.setdefault(primitive.variable.name, primitive)
        if (primitive.variable, primitive.event_type, primitive.until) != (known.variable, known.event_type, known.until):
            message = f"variable {primitive.variable.name!r} stands in the pattern with different types, quantifiers, ends or negations"
            faults.error(message, primitive.span, "write it alike everywhere, or give each its own name")


def _check_places(found: tuple[Primitive, ...], pattern: PatternNode, hidden: Collection[str], faults: Faults) -> None:
    """Refuse a variable that stands in two elements of a SEQ."""
    misplaced = repeated_in_seq(pattern).difference(hidden)
    seen: set[str] = set()
    for primitive in found:
        name = primitive.variable.name
        if name in seen and name in misplaced:
            faults.error(f"variable {name!r} stands in the pattern twice", primitive.span, "give each its own name")
        seen.add(name)


@dataclass(frozen=True, slots=True)
class _Disjunct:
    """One choice for every OR, ``?`` and ``*``.

    `present`: the mask of the variables that appear.
    `left_out`: the mask of those that their own quantifiers leave out.
    `before`: for each variable that appears the mask of those before it.
    """

    present: int = 0
    left_out: int = 0
    before: Mapping[int, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.present)


def _disjuncts(node: PatternNode, numbers: Mapping[str, int]) -> Iterator[_Disjunct]:
    """Yield one disjunct for each choice of the alternatives in a pattern."""
    match node:
        case Variable():
            number = numbers[node.name]
            yield _Disjunct(1 << number, 0, {number: 0})
        case Not():
            yield from _disjuncts(node.element, numbers)
        case Repeat():
            for disjunct in _disjuncts(node.element, numbers):
                yield disjunct
                if node.minimum == 0:
                    yield _Disjunct(left_out=disjunct.present)
        case Or():
            for element in node.elements:
                yield from _disjuncts(element, numbers)
        case And():
            for parts in product(*(tuple(_disjuncts(element, numbers)) for element in node.elements)):
                joined = reduce(_together, parts)
                # a variable cannot be present in one element and left out in another
                if not joined.present & joined.left_out:
                    yield joined
        case Seq():
            for parts in product(*(tuple(_disjuncts(element, numbers)) for element in node.elements)):
                yield reduce(_one_after_the_other, parts)
        case _:
            raise TypeError(f"no rule orders {type(node).__name__}")


def _together(one: _Disjunct, other: _Disjunct) -> _Disjunct:
    before = {**one.before, **{number: mask | one.before.get(number, 0) for number, mask in other.before.items()}}
    return _Disjunct(one.present | other.present, one.left_out | other.left_out, before)


def _one_after_the_other(one: _Disjunct, other: _Disjunct) -> _Disjunct:
    before = {**one.before, **{number: mask | one.present for number, mask in other.before.items()}}
    return _Disjunct(one.present | other.present, one.left_out | other.left_out, before)


def _close_order(disjunct: _Disjunct) -> _Disjunct:
    """Return the disjunct with the transitive closure of its order, and without `left_out`."""
    before = dict(disjunct.before)
    for middle in before:
        before = {number: mask | before[middle] if mask >> middle & 1 else mask for number, mask in before.items()}
    return _Disjunct(disjunct.present, 0, before)


def _in_cycle(disjunct: _Disjunct) -> int:
    """Return the mask of the variables that precede themselves."""
    return sum(1 << number for number, mask in disjunct.before.items() if mask >> number & 1)


def _branch(disjunct: _Disjunct, positive: int) -> Branch:
    variables = tuple(number for number in sorted(disjunct.before) if positive >> number & 1)
    return Branch(
        variables=variables,
        before=tuple(disjunct.before[number] & positive for number in variables),
        negations=tuple(
            Negation(number, after=mask & positive, before=sum(1 << other for other in variables if disjunct.before[other] >> number & 1))
            for number, mask in sorted(disjunct.before.items())
            if not positive >> number & 1
        ),
    )
