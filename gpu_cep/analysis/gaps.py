"""Write FIRST and ANY, the strategies of single gaps, as negations under skip_till_any_match.

``SEQ(a, FIRST(b))`` takes the first event that fits b behind a: between the two there is no other
one that does. So it is ``SEQ(a, NOT(earlier b), b)``, where what b must satisfy with the events
before it, the negated variable must, too. ANY asks for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TypeAlias

from gpu_cep.analysis.bound import Branch, Condition, ConditionKind, EventVariable, Negation
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.renaming import renamed
from gpu_cep.lang.ast import GAPS, And, Gap, Next, Not, Or, PatternNode, Repeat, Seq, Span, Variable

FIRST, ANY = GAPS["FIRST"], GAPS["ANY"]
_WORDS = {strategy: word for word, strategy in GAPS.items()}
# The name of a variable -> the strategy of each gap before it (None: no own one) -> the variable there.
_Gaps: TypeAlias = dict[str, dict[str | None, Variable]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A pattern without FIRST and ANY.

    `strategies`: the strategy of the gap before each variable that stood in one of them. `span`: the place of the first of them.
    """

    pattern: PatternNode
    strategies: Mapping[str, str]
    span: Span | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstGaps:
    """What FIRST means: negated `variables` behind the query's own, their properties, and the branches with the negations."""

    variables: tuple[EventVariable, ...]
    properties: tuple[Condition, ...]
    branches: tuple[Branch, ...]


def choose_gaps(pattern: PatternNode, faults: Faults) -> Chosen:
    """Return `pattern` without FIRST and ANY.

    Record a fault for each that means nothing, and for a variable whose alternatives have different ones.
    """
    gaps: _Gaps = {}
    spans: list[Span | None] = []
    chosen = _without_gaps(pattern, gaps, spans, faults)
    for name, found in gaps.items():
        if len(found) > 1:
            _, second, *_ = found.values()
            faults.refuse(f"{name} behind different gaps", f"write an OR in which each {name} has a name of its own", second.span)
    strategies = {name: strategy for name, found in gaps.items() for strategy in found if strategy is not None}
    return Chosen(chosen, strategies, next(iter(spans), None))


def _without_gaps(
    node: PatternNode, gaps: _Gaps, spans: list[Span | None], faults: Faults, *, preceded: bool = False, strategy: str | None = None
) -> PatternNode:
    """Return `node` without FIRST and ANY, and note the gap before each variable.

    `preceded`: whether an element of a SEQ around it stands before it. `strategy`: that of the gap in between, if it has its own.
    """

    def without(inner: PatternNode, *, behind: bool = False, own: str | None = None) -> PatternNode:
        return _without_gaps(inner, gaps, spans, faults, preceded=behind, strategy=own)

    match node:
        case Variable(name) if preceded:
            gaps.setdefault(name, {}).setdefault(strategy, node)
        case Gap() if preceded:
            return without(_element(node, spans, faults), behind=True, own=node.strategy)
        case Gap(element, written):
            word = _WORDS[written]
            faults.error(f"{word}(…) follows nothing", node.span, f"{word} stands in a SEQ, behind another element: SEQ(a, {word}(b))")
            return without(element)
        case Seq((first, *others)):
            later = (without(each, behind=True) for each in others)
            return replace(node, elements=(without(first, behind=preceded, own=strategy), *later))
        case Or(elements) | And(elements):
            return replace(node, elements=tuple(without(each, behind=preceded, own=strategy) for each in elements))
        case Next(element):
            return replace(node, element=without(element, behind=preceded, own=strategy))
        case Repeat(element) | Not(element):
            return replace(node, element=without(element))
    return node


def _element(gap: Gap, spans: list[Span | None], faults: Faults) -> PatternNode:
    """Return what stands in FIRST or ANY; record a fault if no variable begins it."""
    spans.append(gap.span)
    if not _begins(gap.element):
        construct = f"{_WORDS[gap.strategy]} of what does not begin with a variable"
        faults.refuse(construct, "a variable without a quantifier is, alone, first in a SEQ, or in an OR", gap.span)
    return gap.element


def _begins(node: PatternNode) -> bool:
    """Return whether variables bind the first event of `node`; False where a quantifier, NOT or an AND may come first."""
    match node:
        case Variable():
            return True
        case Next(element) | Seq((element, *_)):
            return _begins(element)
        case Or(elements):
            return all(map(_begins, elements))
    return False


def check_gaps(chosen: Chosen, strategy: str, branches: Sequence[Branch], variables: Sequence[EventVariable], faults: Faults) -> None:
    """Record a fault if gaps cannot have strategies of their own under `strategy`, or in some branch."""
    if not chosen.span:
        return
    if strategy not in GAPS.values():
        message = f"FIRST and ANY mean nothing under {strategy}"
        faults.error(message, chosen.span, f"they choose between {FIRST} and {ANY}, of which one holds for the other gaps")
    if any(variable.quantified for variable in variables) or not all(map(_is_sequence, branches)):
        faults.refuse("FIRST or ANY beside a quantifier or AND", "a SEQ of single variables is, each of which may be negated", chosen.span)


def _is_sequence(branch: Branch) -> bool:
    """Return whether each variable of a branch precedes or follows each other one."""
    return sorted(mask.bit_count() for mask in branch.before) == list(range(len(branch.variables)))


def first_gaps(
    chosen: Chosen, strategy: str, branches: Sequence[Branch], variables: Sequence[EventVariable], conditions: Sequence[Condition]
) -> FirstGaps:  # fmt: skip
    """Return the gaps whose first event is to be taken as negations; `strategy` is that of the gaps that have none of their own.

    The `branches` have their conditions, with the closure of equalities.
    """
    taken = {variable.name for variable in variables}
    added: dict[int, int] = {}
    names: list[str] = []
    for number, variable in enumerate(variables):
        if not variable.negated and chosen.strategies.get(variable.name, strategy) == FIRST:
            added[number] = len(variables) + len(names)
            names.append(next(each for each in _names(variable.name) if each not in taken))
    properties = tuple(
        renamed(each, number, added[number])
        for each in conditions
        for number in each.variables
        if each.kind is ConditionKind.PROPERTY and number in added
    )
    return FirstGaps(
        variables=tuple(EventVariable(name, 1, 1, quantified=False, negated=True) for name in names),
        properties=properties,
        branches=tuple(_with_firsts(branch, added) for branch in branches),
    )


def _names(name: str) -> chain[str]:
    """Return names for the negated variable of FIRST; explain shows "no earlier b"."""
    return chain([f"earlier {name}"], (f"earlier {name} {number}" for number in count(2)))


def _with_firsts(branch: Branch, added: Mapping[int, int]) -> Branch:
    """Return a branch with a negation for each variable that is `added` and has another before it."""
    everyone = sum(1 << number for number in branch.variables)
    preceded = [(number, mask) for number, mask in zip(branch.variables, branch.before, strict=True) if number in added and mask]
    negations = tuple(Negation(added[number], after=mask, before=everyone & ~mask) for number, mask in preceded)
    conditions = tuple(
        renamed(each, number, added[number])
        for number, mask in preceded
        for each in branch.conditions
        if number in each.variables and all(other == number or mask >> other & 1 for other in each.variables)
    )
    return replace(branch, negations=(*branch.negations, *negations), conditions=(*branch.conditions, *conditions))
