"""Translate a row pattern to steps, from the last element to the first.

What follows an element is given twice: what comes if the element took no row, and if it took one.
So an iteration of no row ends the iterations, as SQL asks, and no way through the steps is endless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

from gpu_cep.lang import ast
from gpu_cep.lang.ast import PatternNode
from gpu_cep.lang.row_patterns.ast import Anchor, Empty, Exclusion, Permute
from gpu_cep.lang.row_patterns.names import folded, variables_of
from gpu_cep.plan.row_patterns.steps import MOST_STATES, Accept, Choice, Guard, NumberedSteps, Step, Take, too_many_states

# The most elements of a PERMUTE whose orders are tried one after the other.
_MOST_ORDERED = 7


class Next(NamedTuple):
    """The steps behind an element that took no row, and behind one that took a row."""

    empty: int
    taken: int

    def after(self, taken: bool) -> int:
        """Return the step behind elements of which some took a row, or none did."""
        return self.taken if taken else self.empty


def translate(pattern: PatternNode) -> tuple[int, list[Step]]:
    """Return the first step of a pattern, and all steps.

    Raises
    ------
    UnsupportedError
        The pattern has more states than are supported.
    """
    names = list(dict.fromkeys(folded(variable.name) for variable in variables_of(pattern)))
    translation = _Translation({name: number for number, name in enumerate(names)})
    accept = translation.numbered.add(Accept())
    start = translation.steps(pattern, Next(accept, accept), excluded=False)
    return start, translation.numbered.steps


@dataclass
class _Translation:
    """The steps made so far; `variables` are numbers by folded name."""

    variables: dict[str, int]
    numbered: NumberedSteps = field(default_factory=NumberedSteps)
    _known: dict[tuple[int, Next, bool], int] = field(default_factory=dict)

    def steps(self, node: PatternNode, then: Next, excluded: bool) -> int:
        """Return the first step of an element before the steps `then`; the same element before the same steps is translated once."""
        then = then if _may_be_empty(node) else Next(then.taken, then.taken)
        known = id(node), then, excluded
        if known not in self._known:
            self._known[known] = self._translate(node, then, excluded)
        return self._known[known]

    def _translate(self, node: PatternNode, then: Next, excluded: bool) -> int:
        """Return the first step of an element, which is not translated yet, before the steps `then`."""
        match node:
            case ast.Variable():
                return self.numbered.add(Take(self.variables[folded(node.name)], excluded, then.taken))
            case Empty():
                return then.empty
            case Anchor():
                return self.numbered.add(Guard(node.sign, then.empty))
            case Exclusion():
                return self.steps(node.element, then, excluded=True)
            case ast.Or():
                return self._choose(tuple(self.steps(element, then, excluded) for element in node.elements))
            case ast.Seq():
                return self._in_order(node.elements, then, excluded)
            case Permute():
                return self._permute(node.elements, then, excluded)
            case ast.Repeat():
                return self._repeat(node, then, excluded)
        raise TypeError(f"no steps for {type(node).__name__}")

    def _permute(self, elements: tuple[PatternNode, ...], then: Next, excluded: bool) -> int:
        """Return the first step of all orders of the elements; the orders share steps where their rows are alike."""
        if all(map(_has_one_way, elements)):
            return self._from_subset(elements, then, excluded)
        if len(elements) > _MOST_ORDERED:
            raise too_many_states()
        orders = permutations(elements)
        return self._choose(tuple(self._in_order(order, then, excluded) for order in orders))

    def _repeat(self, node: ast.Repeat, then: Next, excluded: bool) -> int:
        """Return the first step of the iterations."""
        minimum, maximum = node.minimum, node.maximum
        if next(variables_of(node.element), None) is None:
            # what takes no row does so once or never
            minimum, maximum = min(minimum, 1), 1 if maximum is None else min(maximum, 1)
        if max(minimum, maximum or 0) > MOST_STATES:
            raise too_many_states()
        before = self._unbounded(node, then, excluded) if maximum is None else then
        for done in reversed(range(maximum or minimum)):
            before = self._once(node, before, then, excluded, optional=done >= minimum)
        return before.empty

    def _once(self, node: ast.Repeat, more: Next, then: Next, excluded: bool, optional: bool) -> Next:
        """Return the steps of one iteration before those of the iterations that may follow.

        They are given for the case that no iteration before took a row, and that one did.
        """

        def begin(taken: bool) -> int:
            # an optional iteration of no row is the last one
            nothing = then.after(taken) if optional else more.after(taken)
            again = self.steps(node.element, Next(nothing, more.taken), excluded)
            return self._or_leave(node, again, then.after(taken)) if optional else again

        taken = begin(True)
        return Next(taken if then.empty == then.taken and more.empty == more.taken else begin(False), taken)

    def _unbounded(self, node: ast.Repeat, then: Next, excluded: bool) -> Next:
        """Return the steps of any number of iterations."""
        again = self.numbered.reserve()
        self.numbered.set(again, self._loop(node, Next(then.taken, again), then.taken, excluded))
        if then.empty == then.taken:
            return Next(again, again)
        return Next(self.numbered.add(self._loop(node, Next(then.empty, again), then.empty, excluded)), again)

    def _loop(self, node: ast.Repeat, more: Next, leave: int, excluded: bool) -> Choice:
        iteration = self.steps(node.element, more, excluded)
        return Choice((iteration, leave) if node.greedy else (leave, iteration))

    def _or_leave(self, node: ast.Repeat, again: int, leave: int) -> int:
        return self._choose((again, leave) if node.greedy else (leave, again))

    def _choose(self, alternatives: tuple[int, ...]) -> int:
        distinct = tuple(dict.fromkeys(alternatives))
        return distinct[0] if len(distinct) == 1 else self.numbered.add(Choice(distinct))

    def _in_order(self, elements: Sequence[PatternNode], then: Next, excluded: bool) -> int:
        for element in reversed(elements):
            taken = self.steps(element, Next(then.taken, then.taken), excluded)
            same = then.empty == then.taken
            then = Next(taken if same else self.steps(element, then, excluded), taken)
        return then.empty

    def _from_subset(self, elements: Sequence[PatternNode], then: Next, excluded: bool) -> int:
        """Return the steps of a permutation, which depend on the set of elements that are done, and not on their order."""
        known: dict[tuple[int, bool], int] = {}
        everything = (1 << len(elements)) - 1

        def begin(done: int, taken: bool) -> int:
            if done == everything:
                return then.after(taken)
            if (done, taken) not in known:
                left = [number for number in range(len(elements)) if not done >> number & 1]
                known[done, taken] = self._choose(tuple(_one(number, done, taken) for number in left))
            return known[done, taken]

        def _one(number: int, done: int, taken: bool) -> int:
            done |= 1 << number
            return self.steps(elements[number], Next(begin(done, taken), begin(done, True)), excluded)

        if len(elements) > MOST_STATES.bit_length():
            raise too_many_states()
        return begin(0, False)


def _may_be_empty(node: PatternNode) -> bool:
    """Return whether an element can match no row."""
    match node:
        case ast.Variable():
            return False
        case ast.Seq(elements=elements) | Permute(elements=elements):
            return all(map(_may_be_empty, elements))
        case ast.Or(elements=elements):
            return any(map(_may_be_empty, elements))
        case Exclusion(element=element):
            return _may_be_empty(element)
        case ast.Repeat(element=element, minimum=minimum):
            return minimum == 0 or _may_be_empty(element)
    return True


def _has_one_way(node: PatternNode) -> bool:
    """Return whether an element takes the same variables one after the other, however it matches."""
    match node:
        case ast.Seq(elements=elements):
            return all(map(_has_one_way, elements))
        case Exclusion(element=element):
            return _has_one_way(element)
        case ast.Repeat(element=element, minimum=minimum, maximum=maximum):
            return minimum == maximum and _has_one_way(element)
    return isinstance(node, ast.Variable | Empty | Anchor)
