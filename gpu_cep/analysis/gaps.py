"""Write FIRST and ANY, the strategies of single gaps, as negations under skip_till_any_match.

``SEQ(a, FIRST(b))`` takes the first event that fits b behind a: between the two there is no other
one that does. So it is ``SEQ(a, NOT(earlier b), b)``, where what b must satisfy with the events
before it, the negated variable must, too. ANY asks for nothing. The negation stands in the pattern
itself, so that each alternative has its own gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from gpu_cep.analysis.bound import Branch, Condition, ConditionKind, EventVariable
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.renaming import renamed
from gpu_cep.lang.ast import GAPS, And, Gap, Next, Not, Or, PatternNode, Repeat, Seq, Span, Variable
from gpu_cep.lang.walks import declared

FIRST, ANY = GAPS["FIRST"], GAPS["ANY"]
_WORDS = {strategy: word for word, strategy in GAPS.items()}


@dataclass(frozen=True, slots=True)
class PatternWithoutGaps:
    """A pattern without FIRST and ANY.

    `firsts`: for each variable of which no earlier event may fit in some gap, by its name, the negated variable before it.
    `has_gaps`: whether FIRST or ANY stood in it. `span`: the place of the first of them, in a pattern that was read.
    """

    pattern: PatternNode
    firsts: Mapping[str, str]
    has_gaps: bool
    span: Span | None


@dataclass(frozen=True, slots=True)
class _Query:
    """What is found in a query: the names that it gives variables, those of negated ones so far, places of gaps, and faults."""

    taken: frozenset[str]
    firsts: dict[str, str]
    spans: list[Span | None]
    faults: Faults

    def negation(self, variable: Variable) -> Not:
        """Return the negation of an earlier event that fits; explain shows "no earlier b"."""
        name = variable.name
        if name not in self.firsts:
            names = (f"earlier {name}{f' {number}' if number > 1 else ''}" for number in count(1))
            self.firsts[name] = next(each for each in names if each not in self.taken and each not in self.firsts.values())
        earlier = self.firsts[name]
        return Not(Variable(earlier, span=variable.span), span=variable.span)


def choose_gaps(pattern: PatternNode, strategy: str, faults: Faults) -> PatternWithoutGaps:
    """Return `pattern` without FIRST and ANY; `strategy` is that of the gaps that have none of their own.

    Record a fault for each FIRST and ANY that means nothing.
    """
    query = _Query(frozenset(declared(pattern)), {}, [], faults)
    if not _has_gaps(pattern):
        return PatternWithoutGaps(pattern, {}, has_gaps=False, span=None)
    chosen = _without_gaps(pattern, query, None, strategy)
    return PatternWithoutGaps(chosen, query.firsts, has_gaps=True, span=next(iter(query.spans), None))


def _has_gaps(node: PatternNode) -> bool:
    """Return whether FIRST or ANY stands in `node`."""
    match node:
        case Gap():
            return True
        case Seq(elements) | Or(elements) | And(elements):
            return any(map(_has_gaps, elements))
        case Next(element) | Repeat(element) | Not(element):
            return _has_gaps(element)
    return False


def _without_gaps(node: PatternNode, query: _Query, gap: str | None, strategy: str) -> PatternNode:
    """Return `node` without FIRST and ANY.

    `gap`: the strategy of the gap before it; None if no element of a SEQ around it stands before it.
    `strategy`: that of the gaps that have none of their own.
    """

    def without(inner: PatternNode, behind: str | None = None) -> PatternNode:
        return _without_gaps(inner, query, behind, strategy)

    match node:
        case Variable() if gap == FIRST:
            return Seq((query.negation(node), node), span=node.span)
        case Repeat(Variable() as variable, 0, 1) if gap == FIRST:
            return Seq((query.negation(variable), node), span=node.span)
        case Gap() if gap is not None:
            return without(_element(node, query), node.strategy)
        case Gap(element, written):
            word = _WORDS[written]
            hint = f"{word} stands in a SEQ, behind another element: SEQ(a, {word}(b))"
            query.faults.error(f"{word}(…) follows nothing", node.span, hint)
            return without(element)
        case Seq((first, *others)):
            return replace(node, elements=(without(first, gap), *(without(each, strategy) for each in others)))
        case Or(elements) | And(elements):
            return replace(node, elements=tuple(without(each, gap) for each in elements))
        case Next(element):
            # where nothing lies in between, no earlier event does
            return replace(node, element=without(element, None if gap is None else ANY))
        case Repeat(element) | Not(element):
            return replace(node, element=without(element))
    return node


def _element(gap: Gap, query: _Query) -> PatternNode:
    """Return what stands in FIRST or ANY; record a fault if no variable begins it."""
    query.spans.append(gap.span)
    if not _begins(gap.element):
        construct = f"{_WORDS[gap.strategy]} of what does not begin with a variable"
        query.faults.refuse(construct, "a variable without a quantifier is, alone, first in a SEQ, or in an OR", gap.span)
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


def check_gaps(
    chosen: PatternWithoutGaps, strategy: str, branches: Sequence[Branch], variables: Sequence[EventVariable], faults: Faults
) -> None:
    """Record a fault if gaps cannot have strategies of their own under `strategy`, or in some branch."""
    if not chosen.has_gaps:
        return
    if strategy not in GAPS.values():
        message = f"FIRST and ANY mean nothing under {strategy}"
        faults.error(message, chosen.span, f"they choose between {FIRST} and {ANY}, of which one holds for the other gaps")
    if any(variable.quantified for variable in variables) or not all(map(_is_sequence, branches)):
        faults.refuse("FIRST or ANY beside a quantifier or AND", "a SEQ of single variables is, each of which may be negated", chosen.span)


def _is_sequence(branch: Branch) -> bool:
    """Return whether each variable of a branch precedes or follows each other one."""
    return sorted(mask.bit_count() for mask in branch.before) == list(range(len(branch.variables)))


def without_firsts_left_out(branch: Branch, firsts: Mapping[int, int]) -> Branch:
    """Return a branch without the negations before variables that it leaves out; `firsts` is as in :func:`first_properties`."""
    absent = {earlier for number, earlier in firsts.items() if number not in branch.variables}
    return replace(branch, negations=tuple(each for each in branch.negations if each.variable not in absent))


def first_properties(firsts: Mapping[int, int], conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the properties of variables for the negated ones before them; `firsts` has the numbers of both."""
    return tuple(
        renamed(each, number, firsts[number])
        for each in conditions
        for number in each.variables
        if each.kind is ConditionKind.PROPERTY and number in firsts
    )


def with_first_conditions(branch: Branch, firsts: Mapping[int, int]) -> Branch:
    """Return a branch with what variables must satisfy with those before them for the negated ones, too.

    The branch has its conditions, with the closure of equalities. `firsts` is as in :func:`first_properties`.
    """
    after = {negation.variable: negation.after for negation in branch.negations}
    conditions = (
        renamed(each, number, earlier)
        for number, earlier in firsts.items()
        if earlier in after
        for each in branch.conditions
        if number in each.variables and all(other == number or after[earlier] >> other & 1 for other in each.variables)
    )
    return replace(branch, conditions=tuple(dict.fromkeys((*branch.conditions, *conditions))))
