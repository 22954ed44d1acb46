"""Find on a card the matches that labels decide: where the one ends that begins at each row, then which of them are taken.

Partitions are cut into pieces of a few rows. Without windows a thread goes through a piece of a cut one for each state that may stand
at its border, and the host carries from piece to piece where matches end. Then each piece is gone through by itself. So a match
takes no longer the more pieces it has, and no thread makes more steps than a piece has rows, times its states.
In windows it depends on the first row where a match ends, and a variable to skip to on the whole match. There a thread follows the
match of one row, for a few steps at first. Those that are longer are followed once more, for so many steps at most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.phase_one.chosen_engine import telling_why
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory, memory_of
from gpu_cep.engine.phase_one.device.disjoint_matches import taken_apart
from gpu_cep.engine.phase_one.device.in_pieces import in_smaller_pieces
from gpu_cep.engine.phase_one.engine_choice import require_device
from gpu_cep.engine.row_patterns.automaton_tables import bytes_of_word
from gpu_cep.engine.row_patterns.device_labels import labels_on_card
from gpu_cep.engine.row_patterns.device_reach import CardSearch, reach_of_words, reach_on_card
from gpu_cep.engine.row_patterns.found import Lengths
from gpu_cep.engine.row_patterns.neighbour_columns import Labels, NeighbourColumns
from gpu_cep.engine.row_patterns.pieces import CutPieces, cut_pieces, short_pieces
from gpu_cep.engine.row_patterns.reach import find_reach
from gpu_cep.engine.row_patterns.skipping import skip_to
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.device.interface import Array, Device, HostArray
from gpu_cep_kernels.device.primitives import any_set
from gpu_cep_kernels.row_patterns.matches import (
    Chains,
    Trail,
    carry_row_matches,
    cross_row_matches,
    find_limited_matches,
    find_row_matches,
)
from gpu_cep_kernels.row_patterns.tables import UNENDED, UNMATCHED, PartitionPieces, Reach, SkipTo

# Rows of a piece.
_ROWS = 256
# The most rows of a match that a thread follows at first, and once more. Where the CPU makes about one step per row, the card makes
# twice the first number at most: it has far more threads, but not so many that any number pays.
_FEW_STEPS, _MOST_STEPS = 1 << 6, 1 << 10
# Where the search goes on behind most rows of a match, so that the CPU follows few matches; else it may follow that of every row.
_FEW_FOLLOWED = (SkipTo.PAST_LAST_ROW, SkipTo.LAST)
# Rows that int32 can number.
_MOST_ROWS = 1 << 31
# Bytes per row beside its label and word: its match's length, its state and where that leads; of a match its first row, its length,
# and scratch. Where matches are taken apart also its last row, hops over blocks of six sizes, and what is taken.
_ROW, _APART = 4 + 2 * 4 + 8 + 4 + 8, 4 + 6 * 4 + 8 + 4
# Bytes per row where there are windows: its time, whether it has none, and the end of its window; and of each state the earliest end.
_WINDOW, _EARLIEST = 8 + 1 + 8, 4
# Bytes per piece: its borders, and what is known of its search; of one of a cut partition, also its number and what leads to its borders.
_PIECE, _BORDER = 3 * 8 + 3 * 8, 4 * 8 + 3 * 8
# Bytes per state at a border: the end to which it leads.
_STATE = 4


class FoundRows(NamedTuple):
    """Hold the first row and the length of each match that is taken; `find_reach` says from which states a match can end, on the host."""

    firsts: Indices
    lengths: Lengths
    find_reach: Callable[[], Reach]


class LeftRows(NamedTuple):
    """Hold the labels of rows whose matches a card does not find, on the host; None where it did not label them."""

    labels: Labels | None


def find_on_device(neighbours: NeighbourColumns, profile: Profile) -> FoundRows | LeftRows:
    """Label rows, one at least, and find their matches.

    They are left where the card has no room for that, or threads are to follow matches that are too long, or have no row to skip to.

    Raises
    ------
    EventError
        A condition cannot be computed for some row.
    EngineUnavailable
        The card cannot be used, its memory does not suffice to label the rows, or CUDA failed.
    """
    with telling_why():
        device = require_device()
        memory = memory_of(device, neighbours.run.plan.labels)
        return in_smaller_pieces(device, memory, lambda memory: _find(neighbours, device, memory, profile))


def _find(neighbours: NeighbourColumns, device: Device, memory: DeviceMemory, profile: Profile) -> FoundRows | LeftRows:
    """Return the matches, if `memory` holds what finding them takes."""
    plan, ordered = neighbours.run.plan, neighbours.run.ordered
    pieces = short_pieces(ordered.offsets, _ROWS)
    cut = cut_pieces(pieces)
    if len(ordered) >= _MOST_ROWS or not memory.holds(_bytes_of_search(plan, pieces, cut), len(ordered)):
        return LeftRows(None)
    with profile.stage("labels"):
        search = CardSearch.over(neighbours.run, labels_on_card(neighbours, device, memory), pieces, cut, device)
    with profile.stage("reach"):
        reach = reach_on_card(search, neighbours.run)
    with profile.stage("matching"):
        to = skip_to(plan)
        followed = bool(reach.limits.size) or to in (SkipTo.FIRST, SkipTo.LAST)
        found = _followed(search, reach, to) if followed else _read_off(search, reach)
        if found is None:
            return LeftRows(device.download(search.labels))
        firsts, lengths, last = found
        if to != SkipTo.NEXT_ROW and firsts.size:
            taken = taken_apart(device, firsts, last.astype(np.int32))
            firsts, lengths = firsts[taken], lengths[taken]
        return FoundRows(device.download(firsts), device.download(lengths), _reach_finder(search, reach, neighbours))


def _bytes_of_search(plan: RowPlan, pieces: PartitionPieces, cut: CutPieces) -> int:
    """Return the bytes that a search takes beside the labels of the rows."""
    rows, states = int(pieces.offsets[-1]), len(plan.automaton.variable)
    word = bytes_of_word(states)
    row = _ROW + word + (0 if skip_to(plan) == SkipTo.NEXT_ROW else _APART)
    row += 0 if plan.bound.window is None else _WINDOW + states * _EARLIEST
    # what is known of cut pieces is spread over all
    piece = _PIECE + (states * _STATE if cut.numbers.size else 0)
    return rows * row + len(pieces.begins) * piece + len(cut.numbers) * (_BORDER + states * (word + _STATE))


def _reach_finder(search: CardSearch, reach: Reach, neighbours: NeighbourColumns) -> Callable[[], Reach]:
    """Return a function that returns the reach on the host.

    That of windows has a number for each row and state: in place of them labels come back, from which the host finds it if it is asked for.
    """
    download = search.device.download
    if not reach.limits.size:
        return partial(reach_of_words, download(reach.words))
    return partial(find_reach, neighbours.run, neighbours.pieces, download(search.labels))


def _followed(search: CardSearch, reach: Reach, to: int) -> tuple[Array, Array, Array] | None:
    """Return of the matches that begin at each row the first rows, the lengths, and the rows behind which the search goes on (`to`).

    None: a thread does not come to the end of one, the search would not go on behind it, or the CPU makes far fewer steps.
    """
    device, xp, rows = search.device, search.device.xp, search.labels.size
    lengths, targets = xp.empty(rows, np.int32), xp.empty(rows, np.int32)

    def follow(starts: Array, size: int, most_steps: int) -> None:
        given = search.held, search.automaton, reach, to, most_steps
        device.launch(find_limited_matches, size, starts, *given, lengths, targets)

    follow(xp.empty(0, np.int64), rows, _FEW_STEPS)
    longer = xp.flatnonzero(lengths == UNENDED)
    if longer.size:
        if to in _FEW_FOLLOWED and longer.size * _MOST_STEPS > rows * _FEW_STEPS:
            return None
        follow(longer, longer.size, _MOST_STEPS)
        if any_set(lengths[longer] == UNENDED):
            return None
    firsts = xp.flatnonzero(lengths != UNMATCHED)
    targets = targets[firsts]
    return None if any_set(targets <= firsts) else (firsts, lengths[firsts], targets - 1)


def _read_off(search: CardSearch, reach: Reach) -> tuple[Array, Array, Array]:
    """Return the first row, the length and the row behind which the search goes on of each match, where there are no windows.

    That is a match's last row.
    """
    xp, found = search.device.xp, _lengths(search, reach)
    firsts = xp.flatnonzero(found != UNMATCHED)
    lengths = found[firsts]
    # behind a match without rows, the next one may begin at the next row
    return firsts, lengths, firsts + xp.maximum(lengths, 1) - 1


def _lengths(search: CardSearch, reach: Reach) -> Array:
    """Return the length of the match that begins at each row, or UNMATCHED, where there are no windows."""
    xp, size, rows = search.device.xp, len(search.pieces.begins), search.labels.size
    ends = search.spread(_ends_behind(search, reach), 0) if search.cut.numbers.size else xp.empty((0, 0), np.int32)
    lengths = xp.full(rows, UNMATCHED, np.int32)
    trail = Trail(xp.full(rows, -1, np.int32), xp.empty(rows, np.int32), ends)
    faults, looks, left = xp.full(size, -1, np.int64), xp.empty(size, np.int64), xp.empty(size, np.int64)
    chains = Chains(faults, looks, left, xp.empty(0, np.bool_))
    search.launch(find_row_matches, search.automaton, reach, int(SkipTo.NEXT_ROW), lengths, chains, trail)
    return lengths


def _ends_behind(search: CardSearch, reach: Reach) -> HostArray:
    """Return what :func:`carry_row_matches` writes of the pieces of cut partitions."""
    crossed = search.device.xp.empty((len(search.cut.numbers), search.states), np.int32)
    search.device.launch(cross_row_matches, crossed.size, search.held_cut.pieces, search.automaton, reach, crossed)
    ends = np.zeros(crossed.shape, np.int32)
    carry_row_matches(search.cut.pieces, search.device.download(crossed), ends)
    return ends
