"""Find on a card from which states a match can still end, row by row, and where windows end; pieces of partitions side by side.

A piece is gone through as if no match went on behind it, then for each state that could map the row behind it. The host
carries what that says from piece to piece. A second pass knows what is behind its piece. Only partitions that are cut take that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.row_patterns.automaton_tables import ReachTables, reach_tables
from gpu_cep.engine.row_patterns.pieces import CutPieces
from gpu_cep.engine.row_patterns.reach import row_clock, starting_label
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.interface import Array, Device, HostArray
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.row_patterns.reach import (
    carry_earliest_ends,
    carry_reach,
    cross_reach,
    find_earliest_ends,
    limit_by_rows,
    limit_by_times,
    mark_reach,
)
from gpu_cep_kernels.row_patterns.tables import NEVER, PartitionPieces, Reach, RowAutomatonTable


@dataclass(frozen=True, slots=True)
class CardSearch:
    """What a search on a card reads: the pieces, those that are cut, both also as they are held there, the labels, and the automaton."""

    device: Device
    pieces: PartitionPieces
    held: PartitionPieces
    cut: CutPieces
    held_cut: CutPieces
    labels: Array
    automaton: RowAutomatonTable
    tables: ReachTables

    @classmethod
    def over(cls, run: RowRun, labels: Array, pieces: PartitionPieces, cut: CutPieces, device: Device) -> CardSearch:
        """Return a search over rows whose `labels` the card has."""
        given = pieces, cut, run.automaton, reach_tables(run.plan.automaton, labels.dtype)
        held, held_cut, automaton, tables = to_device(device, given)
        return cls(device, pieces, held, cut, held_cut, labels, automaton, tables)

    @property
    def states(self) -> int:
        """Return how many states the automaton has."""
        return int(self.automaton.ends.size)

    def launch(self, kernel: Kernel[Any, Any], *given: Any) -> None:
        """Run a kernel over all pieces."""
        self.device.launch(kernel, len(self.pieces.begins), self.held, *given)

    def firsts(self, values: Array) -> HostArray:
        """Return on the host what stands at the first row of each piece of a partition that is cut."""
        return self.device.download(values[self.held_cut.pieces.offsets[:-1]])

    def spread(self, values: HostArray, other: int) -> Array:
        """Return on the card `values`, which are those of the pieces of cut partitions, for all pieces; `other` for the rest."""
        if len(values) == len(self.pieces.begins):
            return self.device.upload(values)
        found = self.device.xp.full((len(self.pieces.begins), *values.shape[1:]), other, values.dtype)
        found[self.held_cut.numbers] = self.device.upload(values)
        return found


def reach_on_card(search: CardSearch, run: RowRun) -> Reach:
    """Return from which states a match can still end, in arrays on the card, and with a window in which row."""
    xp = search.device.xp
    if run.plan.bound.window is None:
        return reach_of_words(_words(search), xp)
    return Reach(xp.empty((0, 0), np.uint8), _earliest_ends(search), _limits(search, run))


def reach_of_words(words: Any, xp: Any = np) -> Reach:
    """Return what words say where there are no windows; `xp` has their arrays."""
    return Reach(words, xp.empty((0, 0), np.int32), xp.empty(0, np.int64))


def _words(search: CardSearch) -> Array:
    """Return the words of the states from which a match can end, [row, 0]."""
    words, kind = _words_apart(search), search.tables.fits.dtype
    if search.cut.numbers.size:
        behind = np.zeros(len(search.cut.numbers), kind)
        carry_reach(search.cut.pieces, search.firsts(words.reshape(-1)), _crossed(search, words), behind)
        if behind.any():
            search.launch(mark_reach, search.labels, *search.tables, search.spread(behind, 0), words)
    return words


def _words_apart(search: CardSearch) -> Array:
    """Return the words of the states from which a match can end within the row's own piece, [row, 0]."""
    xp, kind = search.device.xp, search.tables.fits.dtype
    words = xp.empty((search.labels.size, 1), kind)
    search.launch(mark_reach, search.labels, *search.tables, xp.empty(0, kind), words)
    return words


def _crossed(search: CardSearch, words: Array) -> HostArray:
    """Return what :func:`cross_reach` writes, on the host; `words` are those of :func:`_words_apart`."""
    fits, before, accepts, _ = search.tables
    crossed = search.device.xp.empty((len(search.cut.numbers), search.states), words.dtype)
    search.device.launch(cross_reach, crossed.size, search.held_cut.pieces, search.labels, fits, before, accepts, words, crossed)
    return search.device.download(crossed)


def _earliest_ends(search: CardSearch) -> Array:
    """Return the first row at which a match can end, [row, state]."""
    xp = search.device.xp
    earliest = xp.empty((search.labels.size, search.states), np.int32)
    given = search.labels, search.automaton, False
    search.launch(find_earliest_ends, *given, xp.empty((0, search.states), np.int32), earliest)
    if search.cut.numbers.size:
        behind: npt.NDArray[np.int32] = np.full((len(search.cut.numbers), search.states), NEVER, np.int32)
        carry_earliest_ends(search.cut.pieces, search.firsts(earliest), _crossed(search, _words_apart(search)), behind)
        if (behind != NEVER).any():
            search.launch(find_earliest_ends, *given, search.spread(behind, NEVER), earliest)
    return earliest


def _limits(search: CardSearch, run: RowRun) -> Array:
    """Return the last row of the window that begins with each row, as the CPU does."""
    device, rows = search.device, len(run.ordered)
    limits = device.xp.empty(rows, np.int64)
    window = run.plan.bound.window
    if isinstance(window, CountWindow):
        search.launch(limit_by_rows, min(window.events, rows), limits)
        return limits
    times, missing, length = row_clock(run)
    starting = starting_label(run.plan, search.labels.dtype)
    search.launch(limit_by_times, search.labels, starting, device.upload(times), device.upload(missing), length, limits)
    return limits
