"""Cases of the kernels that label rows for SQL's row patterns, and find matches that labels decide."""

from __future__ import annotations

import numpy as np

from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram
from gpu_cep_kernels.row_patterns import labels, matches
from gpu_cep_kernels.row_patterns.tables import Reach, SkipTo
from gpu_cep_kernels.rules.tables import Registers
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, column_bank, flags, label_words
from tests.kernel_cases.row_reach import AUTOMATON, borders_of, cut_partitions, partitions, reach_of
from tests.kernel_cases.tables import program_registers, program_table

# Behind each state the first one whose bit is set in the word; ACCEPT where none is set.
_CHOICES = np.array([[next((q for q in range(3) if word >> q & 1), -1) for word in range(256)]] * 5, np.int32)
# The value of a row and that of the first row of the match, which is not greater; fewer than three rows of B are mapped.
PROGRAM = program_table((("load_int", 0, 0, 0), ("load_int", 1, 0, 1), ("le_int", 2, 0, 1)))
# Where the search goes on behind a match.
NAMED_SKIPS = {to.name.lower(): to for to in SkipTo}
SKIPS: Variants = {name: {"to": to} for name, to in NAMED_SKIPS.items()}


def _limited_finding(size: int, random: Random, slots: int, to: SkipTo, windows: bool = False) -> Call:
    """With windows, the matches of some rows."""
    pieces, known = reach_of(size, random, windows)
    found, starts = np.zeros((2, size), np.int32), np.arange(size)[:: -2 if windows else 1][: size * windows].copy()
    return Call(len(starts) if windows else size, (starts, pieces, AUTOMATON, known, int(to), 2, *found))


def _finding(size: int, random: Random, slots: int, to: SkipTo, windows: bool = False, choices: bool = False) -> Call:
    pieces, known = reach_of(size, random, windows)
    shared, count = size if to == SkipTo.NEXT_ROW and not windows else 0, len(pieces.begins)
    automaton = AUTOMATON._replace(choices=_CHOICES) if choices else AUTOMATON
    chains = matches.Chains(np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(size, np.bool_))
    crossed = np.full((count, 3) if shared else (0, 0), -1, np.int32)
    trail = matches.Trail(np.full(shared, -1, np.int32), np.zeros(shared, np.int32), crossed)
    return Call(count, (pieces, automaton, known, int(to), np.full(size, -1, np.int32), chains, trail))


def _match_crossing(size: int, random: Random, slots: int) -> Call:
    pieces, known = reach_of(size, random, windows=False)
    crossed = np.zeros((len(pieces.begins), 3), np.int32)
    return Call(crossed.size, (pieces, AUTOMATON, known, crossed))


def _match_carrying(size: int, random: Random, slots: int) -> Call:
    call = _match_crossing(size, random, slots)
    matches.cross_row_matches(0, call.size, *call.arguments)
    pieces, *_, crossed = call.arguments
    return Call(1, (pieces, crossed, np.full_like(crossed, -1)))


def _match_mending(size: int, random: Random, slots: int, to: SkipTo) -> Call:
    call = _finding(size, random, slots, to)
    matches.find_row_matches(0, call.size, *call.arguments)
    return Call(1, call.arguments)


def _found(size: int, random: Random) -> tuple[Array, Array, Array, Reach]:
    """The first rows, the beginnings of their partitions and the places of matches."""
    call = _match_mending(size, random, 1, SkipTo.PAST_LAST_ROW)
    matches.mend_row_matches(*call.arguments)
    pieces, _, known, _, lengths, *_ = call.arguments
    firsts = np.flatnonzero(lengths >= 0)
    begins = pieces.begins[np.searchsorted(pieces.offsets, firsts, "right") - 1]
    return firsts, begins, np.concatenate([[0], np.cumsum(lengths[firsts])]).astype(np.int64), known


def _sharing(size: int, random: Random, slots: int) -> Call:
    call = _match_mending(size, random, 1, SkipTo.NEXT_ROW)
    matches.mend_row_matches(*call.arguments)
    pieces, automaton, known, _, lengths, *_ = call.arguments
    offsets = borders_of(pieces)
    members, trail = np.array([True, False, True]), np.full(size, -1, np.int32)
    return Call(len(offsets) - 1, (offsets, lengths, automaton, known, members, trail, np.full(size, -1), np.full(size, -1)))


def _following(size: int, random: Random, slots: int) -> Call:
    return Call(1, (np.arange(size) + random.integers(1, 5, size), flags(size, random, 0.1)))


def _mapping(size: int, random: Random, slots: int) -> Call:
    firsts, begins, places, known = _found(size, random)
    limits = np.full(len(firsts), size)
    return Call(len(firsts), (firsts, begins, places, AUTOMATON, known, limits, np.zeros(places[-1], np.int32)))


def _seeking(size: int, random: Random, slots: int, step: int) -> Call:
    firsts, _, places, _ = _found(size, random)
    states = random.integers(0, 3, places[-1]).astype(np.int32)
    return Call(len(firsts), (firsts, places, states, np.array([True, False, True]), step, 1, np.zeros(len(firsts), np.int64)))


def _beside(size: int, random: Random, slots: int) -> Call:
    pieces = cut_partitions(size, random)
    registers = program_registers(PROGRAM, slots)
    rows = np.zeros((2, slots), np.int64)
    own = Registers(rows, rows, registers.ints, registers.floats, registers.nulls)
    condition = NeighbourProgram(PROGRAM, 2, np.array([0, -1]))
    bank = column_bank(size + 1, random)
    given = label_words(size, random, 3, np.uint8)
    return Call(len(pieces.begins), (condition, pieces, bank, own, np.uint8(5), given, np.zeros(size, np.bool_)))


def _borders(size: int, random: Random, slots: int, back: int) -> Call:
    offsets = partitions(size, random)
    return Call(len(offsets) - 1, (offsets, back, np.uint8(5), np.full(size, np.uint8(7))))


ROW_MATCH_CASES: tuple[KernelCase, ...] = (
    *cases(labels.mask_by_rows_beside, _beside, {"": {}}),
    *cases(labels.mask_borders, _borders, {"before": {"back": 2}, "behind": {"back": -2}}),
    *cases(
        matches.find_row_matches,
        _finding,
        {**SKIPS, "windows": {"to": SkipTo.NEXT_ROW, "windows": True}, "choices": {"to": SkipTo.LAST, "choices": True}},
    ),
    *cases(matches.cross_row_matches, _match_crossing, {"": {}}),
    *cases(matches.find_limited_matches, _limited_finding, {**SKIPS, "windows": {"to": SkipTo.PAST_LAST_ROW, "windows": True}}),
    *cases(matches.carry_row_matches, _match_carrying, {"": {}}),
    *cases(matches.mend_row_matches, _match_mending, SKIPS),
    *cases(matches.find_shared_rows, _sharing, {"": {}}),
    *cases(matches.follow_targets, _following, {"": {}}),
    *cases(matches.map_rows, _mapping, {"": {}}),
    *cases(matches.find_mapped_rows, _seeking, {"first": {"step": 1}, "last": {"step": -1}}),
)
