"""Find on a card the matches that labels decide: where the one ends that begins at each row, then which of them are taken.

Partitions are cut into pieces of a few rows. A thread goes through a piece for each state that may stand at its border.
What holds at the borders is carried from piece to piece on the host. Then each piece is gone through once more, by itself.
So a match takes no longer the more pieces it has, and no thread makes more steps than a piece has rows, times its states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory, memory_of
from gpu_cep.engine.phase_one.device.disjoint_matches import taken_apart
from gpu_cep.engine.phase_one.device.in_pieces import in_smaller_pieces
from gpu_cep.engine.phase_one.engine_choice import require_device
from gpu_cep.engine.phase_one.run_phase_one import telling_why
from gpu_cep.engine.row_patterns.automaton_tables import ReachTables, automaton_table, bytes_of_word, reach_tables
from gpu_cep.engine.row_patterns.device_labels import labels_on_card
from gpu_cep.engine.row_patterns.found import Lengths
from gpu_cep.engine.row_patterns.pieces import is_cut, short_pieces
from gpu_cep.engine.row_patterns.rows_beside import RowsBeside
from gpu_cep.engine.row_patterns.skipping import skip_to
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.device.interface import Array, Device, to_device
from gpu_cep_kernels.row_patterns.matches import Chains, Trail, carry_row_matches, cross_row_matches, find_row_matches
from gpu_cep_kernels.row_patterns.reach import carry_reach, cross_reach, mark_reach
from gpu_cep_kernels.row_patterns.tables import UNMATCHED, Pieces, Reach, SkipTo

# Rows of a piece.
_ROWS = 256
# Rows that int32 can number.
_MOST_ROWS = 1 << 31
# Bytes per row beside its label and word: its match's length, its state and where that leads; of a match its first row, its length,
# and scratch. Where matches are taken apart also its last row, hops over blocks of six sizes, and what is taken.
_ROW, _APART = 4 + 2 * 4 + 8 + 4 + 8, 4 + 6 * 4 + 8 + 4
# Bytes per piece: its borders, and what is known of its search; where pieces are cut, also what leads to its borders.
_PIECE, _BORDER = 3 * 8 + 3 * 8, 3 * 8
# Bytes per state at a border beside its word: the end to which it leads, twice.
_STATE = 2 * 4


class FoundRows(NamedTuple):
    """Hold the first row and the length of each match that is taken, and from which states a match can end, on the host."""

    firsts: Indices
    lengths: Lengths
    reach: Reach


def find_on_device(beside: RowsBeside, profile: Profile) -> FoundRows | None:
    """Label rows, one at least, and find their matches; None, with nothing done, if the card has no room for that.

    Raises
    ------
    EventError
        A condition cannot be computed for some row.
    EngineUnavailable
        The card cannot be used, its memory does not suffice to label the rows, or CUDA failed.
    """
    with telling_why():
        device = require_device()
        return in_smaller_pieces(device, memory_of(device, beside.plan.labels), lambda memory: _find(beside, device, memory, profile))


def _find(beside: RowsBeside, device: Device, memory: DeviceMemory, profile: Profile) -> FoundRows | None:
    """Return the matches, if `memory` holds what finding them takes."""
    pieces = short_pieces(beside.ordered.offsets, _ROWS)
    rows, states = len(beside.ordered), len(beside.plan.automaton.variable)
    if rows >= _MOST_ROWS or not memory.holds(_bytes_of_search(beside.plan, pieces), rows):
        return None
    with profile.stage("labels"):
        labels = labels_on_card(beside, device, memory)
    search = _Search(device, pieces, to_device(device, pieces), rows, states)
    with profile.stage("reach"):
        words = search.mark_reach(labels, reach_tables(beside.plan.automaton, labels.dtype))
    with profile.stage("matching"):
        firsts, lengths = search.find(beside, words)
        reach = _reach_of(device.download(words))
        return FoundRows(device.download(firsts), device.download(lengths), reach)


def _bytes_of_search(plan: RowPlan, pieces: Pieces) -> int:
    """Return the bytes that a search takes beside the labels of the rows."""
    rows, states = int(pieces.offsets[-1]), len(plan.automaton.variable)
    word = bytes_of_word(states)
    row = _ROW + word + (0 if skip_to(plan) == SkipTo.NEXT_ROW else _APART)
    piece = _PIECE + (_BORDER + states * (word + _STATE) if is_cut(pieces) else 0)
    return rows * row + len(pieces.begins) * piece


def _reach_of(words: Any, xp: Any = np) -> Reach:
    """Return what words say where there are no windows; `xp` has their arrays."""
    return Reach(words, xp.empty((0, 0), np.int32), xp.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class _Search:
    """A search over so many `rows` by an automaton of so many `states`, in pieces, which the card has as `held`."""

    device: Device
    pieces: Pieces
    held: Pieces
    rows: int
    states: int

    def mark_reach(self, labels: Array, tables: ReachTables) -> Array:
        """Return the words from whose states a match can end, [row, 0]."""
        xp, size, kind = self.device.xp, len(self.pieces.begins), tables.fits.dtype
        words = xp.empty((self.rows, 1), kind)
        fits, before = to_device(self.device, (tables.fits, tables.before))

        def mark(behind: Array) -> None:
            self.device.launch(mark_reach, size, self.held, labels, fits, before, tables.accepts, tables.ends, behind, words)

        mark(xp.empty(0, kind))
        if is_cut(self.pieces):
            behind = self._reach_behind(labels, tables, (fits, before), words)
            if behind.any():
                mark(self.device.upload(behind))
        return words

    def _reach_behind(self, labels: Array, tables: ReachTables, held: tuple[Array, Array], words: Array) -> npt.NDArray[Any]:
        """Return the states that can map the row behind each piece, given the words as if no match went on there."""
        device, size = self.device, len(self.pieces.begins)
        crossed = device.xp.empty((size, self.states), words.dtype)
        device.launch(cross_reach, crossed.size, self.held, labels, *held, tables.accepts, words, crossed)
        behind = np.zeros(size, words.dtype)
        reached = words.reshape(-1)[self.held.offsets[:-1]]
        carry_reach(self.pieces, device.download(reached), device.download(crossed), behind)
        return behind

    def find(self, beside: RowsBeside, words: Array) -> tuple[Array, Array]:
        """Return the first rows and the lengths of the matches that are taken."""
        device, xp = self.device, self.device.xp
        found = self._lengths(beside, words)
        firsts = xp.flatnonzero(found != UNMATCHED)
        lengths = found[firsts]
        if skip_to(beside.plan) == SkipTo.NEXT_ROW or not firsts.size:
            return firsts, lengths
        # behind a match without rows, the next one may begin at the next row
        last = (firsts + xp.maximum(lengths, 1) - 1).astype(np.int32)
        taken = taken_apart(device, firsts, last)
        return firsts[taken], lengths[taken]

    def _lengths(self, beside: RowsBeside, words: Array) -> Array:
        """Return the length of the match that begins at each row, or UNMATCHED."""
        device, xp, size = self.device, self.device.xp, len(self.pieces.begins)
        automaton = to_device(device, automaton_table(beside.plan))
        reach = _reach_of(words, xp)
        ends = np.empty((0, 0), np.int32)
        if is_cut(self.pieces):
            crossed = xp.empty((size, self.states), np.int32)
            device.launch(cross_row_matches, crossed.size, self.held, automaton, reach, crossed)
            ends = np.zeros(crossed.shape, np.int32)
            carry_row_matches(self.pieces, device.download(crossed), ends)
        lengths = xp.full(self.rows, UNMATCHED, np.int32)
        trail = Trail(xp.full(self.rows, -1, np.int32), xp.empty(self.rows, np.int32), device.upload(ends))
        faults, looks, left = xp.full(size, -1, np.int64), xp.empty(size, np.int64), xp.empty(size, np.int64)
        chains = Chains(faults, looks, left, xp.empty(0, np.bool_))
        device.launch(find_row_matches, size, self.held, automaton, reach, int(SkipTo.NEXT_ROW), lengths, chains, trail)
        return lengths
