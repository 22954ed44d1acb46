"""Count the branches of a pattern, of which OR, ``?``, ``*`` and repeated groups make several, without writing them out."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from gpu_cep.errors import Diagnostic
from gpu_cep.lang.ast import And, Gap, Next, Node, Not, Or, PatternNode, Repeat, Seq, Variable

MAX_BRANCHES = 1024
"""The most branches of a pattern, with those that are alike or bind no event."""
_MOST_WRITTEN = 10**12  # Python refuses to write a number of thousands of digits


class _Ways(NamedTuple):
    """In how many ways a pattern can be there, and in how many (none or one) it is left out as a group."""

    present: int
    absent: int

    @property
    def total(self) -> int:
        """Return the number of all ways."""
        return self.present + self.absent


def refused_branches(pattern: PatternNode) -> Diagnostic | None:
    """Return why a pattern has too many branches; None if it has not.

    Examples
    --------
    >>> from gpu_cep.lang.parser import parse
    >>> refused_branches(parse("PATTERN SEQ(a, SEQ(b?){1,10})").pattern).message
    'a pattern of 2,046 branches is not supported'
    """
    number = number_of_branches(pattern)
    if number <= MAX_BRANCHES:
        return None
    written = f"{number:,}" if number <= _MOST_WRITTEN else f"more than {_MOST_WRITTEN:,}"
    hint = f"OR, ?, * and repeated groups may make up to {MAX_BRANCHES:,}"
    return Diagnostic(f"a pattern of {written} branches is not supported", pattern.span, hint)


def number_of_branches(pattern: PatternNode) -> int:
    """Return the number of branches, with those that are alike or bind no event."""
    return _ways(pattern).present


def _ways(node: Node) -> _Ways:
    """Return the ways in which a pattern can be there.

    A quantifier on a variable makes a branch that binds nothing in its place. A group that is left out has no place.
    """
    match node:
        case Repeat(Variable(), minimum):
            return _Ways(2 if minimum == 0 else 1, 0)
        case Repeat(element, minimum, maximum):
            each = _ways(element)
            fewest = max(minimum, 1)
            numbers = range(fewest, (maximum or fewest) + 1)
            absent = 1 if minimum == 0 else each.absent
            return _Ways(sum(each.total**number - each.absent for number in numbers), absent)
        case Or(elements):
            alternatives = [*map(_ways, elements)]
            return _Ways(sum(each.present for each in alternatives), max(each.absent for each in alternatives))
        case Seq(elements) | And(elements):
            parts = [*map(_ways, elements)]
            absent = prod(each.absent for each in parts)
            return _Ways(prod(each.total for each in parts) - absent, absent)
        case Not(element) | Next(element) | Gap(element):
            return _ways(element)
    return _Ways(1, 0)
