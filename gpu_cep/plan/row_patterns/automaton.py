"""Turn a row pattern into an automaton whose moves are in the order in which SQL prefers them.

A state maps one row to a variable. From each state the automaton moves to another one with the next
row, or accepts. A matcher that always takes the first move that leads to an accepted end finds the
preferred match. Anchors are decided here: between two rows of a match lies no border of a partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_cep.lang.ast import PatternNode
from gpu_cep.plan.row_patterns.steps import Accept, Choice, Guard, Steps, Take
from gpu_cep.plan.row_patterns.translation import translate

ACCEPT = -1
"""The move that ends a match."""


@dataclass(frozen=True, slots=True)
class RowAutomaton:
    """States with their moves, each list in order of preference; an ACCEPT is the last of its list.

    `variable`, `excluded`: of each state, the number of the variable that it maps a row to, and whether the row is left out of the output.
    `moves`: of each state, the states of the next row, or ACCEPT.
    `ends`: whether a match may end in the state, if its row is the last one of the partition.
    `starts_first`, `starts_later`: the states of a match's first row, or ACCEPT for an empty match; at
    the first row of a partition, and at others.
    """

    variable: tuple[int, ...]
    excluded: tuple[bool, ...]
    moves: tuple[tuple[int, ...], ...]
    ends: tuple[bool, ...]
    starts_first: tuple[int, ...]
    starts_later: tuple[int, ...]

    @property
    def may_be_empty(self) -> bool:
        """Return whether a match may have no row."""
        return ACCEPT in (*self.starts_first, *self.starts_later)

    @property
    def leaves_no_choice(self) -> bool:
        """Return whether each row can be mapped in one way at most, whatever rows there are: one state comes behind each."""
        lists = (*self.moves, self.starts_first, self.starts_later)
        return all(sum(move != ACCEPT for move in moves) <= 1 for moves in lists)


def row_automaton(pattern: PatternNode) -> RowAutomaton:
    """Return the automaton of a pattern; variables are numbered in order of first appearance.

    Raises
    ------
    UnsupportedError
        The pattern has more states than are supported; the message names the limit.

    Examples
    --------
    >>> from gpu_cep.lang.parser import parse
    >>> found = row_automaton(parse("MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A+ B*? C))").pattern)
    >>> found.variable, found.moves
    ((0, 2, 1), ((0, 1, 2), (-1,), (1, 2)))
    """
    start, steps = translate(pattern)
    numbers: dict[int, int] = {}
    takes: list[Take] = []

    def number(move: int) -> int:
        step = steps[move]
        if not isinstance(step, Take):
            return ACCEPT
        if move not in numbers:
            numbers[move] = len(takes)
            takes.append(step)
        return numbers[move]

    first = tuple(map(number, _moves(start, steps, at_first=True)))
    later = tuple(map(number, _moves(start, steps)))
    moves: list[tuple[int, ...]] = []
    while len(moves) < len(takes):
        moves.append(tuple(map(number, _moves(takes[len(moves)].then, steps))))
    ends = [any(isinstance(steps[move], Accept) for move in _moves(take.then, steps, at_end=True)) for take in takes]
    return RowAutomaton(
        tuple(take.variable for take in takes), tuple(take.excluded for take in takes), tuple(moves), tuple(ends), first, later
    )


def _moves(start: int, steps: Steps, at_first: bool = False, at_end: bool = False) -> Iterator[int]:
    """Yield the steps that take a row, and the accepting one, which can come first from `start` on, in order of preference.

    What comes after the accepting step is never preferred to it. A step that was come to before leads to nothing new.
    """
    seen: set[int] = set()
    stack = [start]
    while stack:
        place = stack.pop()
        if place in seen:
            continue
        seen.add(place)
        match steps[place]:
            case Choice(alternatives):
                stack.extend(reversed(alternatives))
            case Guard(sign, then):
                if at_first if sign == "^" else at_end:
                    stack.append(then)
            case Take():
                yield place
            case Accept():
                yield place
                return
