"""Enumerate the ways in which a pattern matches from a row on, in the order in which SQL prefers them.

Alternatives are preferred from left to right. A greedy quantifier prefers one more iteration, a
reluctant one none. PERMUTE prefers its orders lexicographically. An iteration of no row ends the
iterations, once there are as many as the quantifier asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from itertools import permutations

from gpu_cep.errors import UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.lang.ast import PatternNode
from gpu_cep.lang.row_patterns.ast import Anchor, Empty, Exclusion, Permute
from gpu_cep.lang.row_patterns.names import folded
from gpu_cep.oracle.meanings import Meaning
from gpu_cep.oracle.row_patterns.places import MatchedRow
from gpu_cep.oracle.row_patterns.rows import Partition

Fits = Callable[[Partition, int, int], bool]


@dataclass(frozen=True, slots=True)
class MappedRows:
    """The rows mapped so far: their variables, and whether they are excluded from the output."""

    labels: tuple[str, ...] = ()
    excluded: tuple[bool, ...] = ()


@dataclass(frozen=True)
class PreferenceSearch:
    """The search for a match that starts at row `place.first` of a partition.

    `conditions`: what DEFINE says, by folded name; a variable without one fits every row.
    `fits`: whether two rows, the earlier first, lie in the window.
    `excluding`: whether the search is inside ``{- … -}``.
    """

    partition: Partition
    place: MatchedRow
    conditions: Mapping[str, Meaning]
    fits: Fits
    excluding: bool = False

    def first(self, pattern: PatternNode) -> MappedRows | None:
        """Return the match that is preferred to all others, None if there is none."""
        try:
            return next(self.ways(pattern, MappedRows()), None)
        except RecursionError:
            raise UnsupportedError("the pattern repeats too deep for algorithm='brute_force'") from None

    @singledispatchmethod
    def ways(self, node: PatternNode, before: MappedRows) -> Iterator[MappedRows]:
        """Yield what is mapped behind `node`, of which `before` is mapped already."""
        raise TypeError(f"no way to match {type(node).__name__}")

    @ways.register
    def _(self, node: ast.Variable, before: MappedRows) -> Iterator[MappedRows]:
        first, position = self.place.first, self.place.first + len(before.labels)
        if position >= len(self.partition.rows) or not self.fits(self.partition, first, position):
            return
        label = folded(node.name)
        after = MappedRows((*before.labels, label), (*before.excluded, self.excluding))
        condition = self.conditions.get(label)
        if condition is None or condition.value(replace(self.place, labels=after.labels, current=position)) is True:
            yield after

    @ways.register
    def _(self, node: Empty, before: MappedRows) -> Iterator[MappedRows]:
        yield before

    @ways.register
    def _(self, node: Anchor, before: MappedRows) -> Iterator[MappedRows]:
        position = self.place.first + len(before.labels)
        if position == (0 if node.sign == "^" else len(self.partition.rows)):
            yield before

    @ways.register
    def _(self, node: ast.Or, before: MappedRows) -> Iterator[MappedRows]:
        for element in node.elements:
            yield from self.ways(element, before)

    @ways.register
    def _(self, node: ast.Seq, before: MappedRows) -> Iterator[MappedRows]:
        return self._in_order(node.elements, before)

    @ways.register
    def _(self, node: Permute, before: MappedRows) -> Iterator[MappedRows]:
        for order in permutations(node.elements):
            yield from self._in_order(order, before)

    @ways.register
    def _(self, node: Exclusion, before: MappedRows) -> Iterator[MappedRows]:
        return replace(self, excluding=True).ways(node.element, before)

    @ways.register
    def _(self, node: ast.Repeat, before: MappedRows) -> Iterator[MappedRows]:
        return self._iterate(node, before, 0)

    def _in_order(self, elements: Sequence[PatternNode], before: MappedRows) -> Iterator[MappedRows]:
        if not elements:
            yield before
            return
        for between in self.ways(elements[0], before):
            yield from self._in_order(elements[1:], between)

    def _iterate(self, node: ast.Repeat, before: MappedRows, done: int) -> Iterator[MappedRows]:
        if done < node.minimum:
            yield from self._once_more(node, before, done)
            return
        if not node.greedy:
            yield before
        if node.maximum is None or done < node.maximum:
            yield from self._once_more(node, before, done)
        if node.greedy:
            yield before

    def _once_more(self, node: ast.Repeat, before: MappedRows, done: int) -> Iterator[MappedRows]:
        for after in self.ways(node.element, before):
            if done >= node.minimum and after == before:
                yield after
            else:
                yield from self._iterate(node, after, done + 1)
