"""Write a row pattern's automaton as the arrays that kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.row_patterns.tables import NOWHERE, RowAutomatonTable

_BITS = 64
_NARROW = 8

Words = npt.NDArray[Any]


class ReachTables(NamedTuple):
    """Hold what :func:`gpu_cep_kernels.row_patterns.reach.mark_reach` looks up; wide ones have several words for each row."""

    fits: Words
    before: Words
    accepts: Any
    ends: Any

    @property
    def wide(self) -> bool:
        """Return whether a row has several words."""
        return isinstance(self.accepts, np.ndarray)


def automaton_table(plan: RowPlan) -> RowAutomatonTable:
    """Return the automaton, with the states of the variable to skip to."""
    automaton = plan.automaton
    lists = (*automaton.moves, automaton.starts_first, automaton.starts_later)
    target = _target_variables(plan)
    return RowAutomatonTable(
        variable=np.array(automaton.variable, np.uint16),
        move_first=np.array([0, *accumulate(map(len, lists))], np.int64),
        moves=np.array([move for moves in lists for move in moves], np.int32),
        ends=np.array(automaton.ends, np.bool_),
        target=np.array([variable in target for variable in automaton.variable], np.bool_),
        choices=_choices(lists, len(automaton.variable)),
    )


def _choices(lists: Sequence[tuple[int, ...]], states: int) -> npt.NDArray[np.int32]:
    """Return the preferred move of each list for each word of one byte; none for automata with more states, or without any."""
    # without states only ACCEPT is listed, and with a window rows have no words
    if not 0 < states <= _NARROW:
        return np.empty((0, 0), np.int32)
    words = np.arange(1 << _NARROW)
    table = np.full((len(lists), len(words)), NOWHERE, np.int32)
    for row, moves in zip(table, lists, strict=True):
        for move in reversed(moves):
            row[slice(None) if move == ACCEPT else (words >> move & 1) != 0] = move
    return table


def _target_variables(plan: RowPlan) -> tuple[int, ...]:
    skip = plan.bound.skip
    if skip is None:
        return ()
    return (skip,) if skip < plan.variables else plan.bound.subsets[skip - plan.variables]


def bytes_of_word(states: int) -> int:
    """Return the bytes of the word that has a bit for each of so many states, 64 at most."""
    return 1 if states <= _NARROW else _BITS // 8


def reach_tables(automaton: RowAutomaton, label: npt.DTypeLike) -> ReachTables:
    """Return the tables of an automaton for labels of a type."""
    states = len(automaton.variable)
    accepts = np.array([[ACCEPT in moves for moves in automaton.moves]], np.bool_)
    ends = np.array([automaton.ends], np.bool_)
    before = np.zeros((states, states), np.bool_)
    for source, moves in enumerate(automaton.moves):
        before[[move for move in moves if move != ACCEPT], source] = True
    variables = np.arange(8 * np.dtype(label).itemsize)
    fits = variables[:, None] == np.array([automaton.variable], np.int64).reshape(1, states)
    if states > _BITS:
        return ReachTables(_words(fits), _words(before), _words(accepts)[0], _words(ends)[0])
    kind = np.dtype(f"u{bytes_of_word(states)}")
    narrow = [_words(each)[:, 0].astype(kind) for each in (fits, before, accepts, ends)]
    return ReachTables(_by_byte(narrow[0]), _by_byte(narrow[1]), narrow[2][0], narrow[3][0])


def _words(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Return the bits of the last axis packed into words."""
    width = max(1, -(-bits.shape[-1] // _BITS))
    padded = np.zeros((*bits.shape[:-1], width * _BITS), np.bool_)
    padded[..., : bits.shape[-1]] = bits
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64)


def _by_byte(words: Words) -> Words:
    """Return for each byte k and its value b the union of the words whose numbers, from 8 k on, are the bits of b."""
    count = max(1, -(-len(words) // 8))
    padded = np.zeros(count * 8, words.dtype)
    padded[: len(words)] = words
    table = np.zeros((count, 256), words.dtype)
    for bit in range(8):
        table[:, (np.arange(256) >> bit & 1).astype(np.bool_)] |= padded.reshape(count, 8)[:, bit : bit + 1]
    return table
