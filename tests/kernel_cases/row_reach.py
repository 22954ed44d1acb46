"""Cases of the kernels that find where matches of SQL's row patterns can end."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.row_patterns import reach
from gpu_cep_kernels.row_patterns.tables import PartitionPieces, Reach, RowAutomatonTable
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, event_times, label_words, stream_offsets

# A+ (B | C)*? $?, whose states are numbered in order; a match may end behind A.
AUTOMATON = RowAutomatonTable(
    variable=np.array([0, 1, 2], np.uint16),
    move_first=np.array([0, 2, 5, 8, 9, 11]),
    moves=np.array([0, -1, 1, 2, -1, 2, 1, -1, 0, 0, 1], np.int32),
    ends=np.array([True, True, False]),
    target=np.array([False, True, True]),
    choices=np.empty((0, 0), np.int32),
)
_WORDS: Variants = {"uint8": {"word": np.uint8}, "uint64": {"word": np.uint64}}
NOTHING = np.empty((0, 0), np.int32)


def partitions(size: int, random: Random) -> Array:
    return np.unique(stream_offsets(size, random))


def cut_partitions(size: int, random: Random) -> PartitionPieces:
    """Partitions, of which some are cut."""
    offsets = partitions(size, random)
    found = np.union1d(offsets, random.integers(0, size + 1, 3))
    owners = np.searchsorted(offsets, found[:-1], "right") - 1
    return PartitionPieces(found, offsets[owners], offsets[owners + 1])


def borders_of(pieces: PartitionPieces) -> Array:
    """The borders of the partitions."""
    return np.union1d(pieces.offsets[:1], pieces.ends)


def _tables(random: Random, word: Any, bytes_of_labels: int) -> tuple[Array, Array, Any, Any]:
    kind = np.uint8 if word is np.uint8 else np.uint64
    return random.integers(0, 8, (bytes_of_labels, 256)).astype(kind), random.integers(0, 8, (1, 256)).astype(kind), kind(3), kind(5)


def _reaching(size: int, random: Random, slots: int, word: Any, followed: bool = False) -> Call:
    pieces, given = cut_partitions(size, random), label_words(size, random, 3, word)
    tables = _tables(random, word, given.dtype.itemsize)
    behind = np.where(pieces.offsets[1:] < pieces.ends, random.integers(0, 8, len(pieces.begins)), 0)[: len(pieces.begins) * followed]
    return Call(len(pieces.begins), (pieces, given, *tables, behind.astype(tables[0].dtype), np.zeros((size, 1), tables[0].dtype)))


def _mending(size: int, random: Random, slots: int, word: Any) -> Call:
    call = _reaching(size, random, slots, word)
    reach.mark_reach(0, call.size, *call.arguments)
    *given, _, _, words = call.arguments
    return Call(1, (*given, words))


def _reach_crossing(size: int, random: Random, slots: int, word: Any) -> Call:
    pieces, given, fits, before, accepts, words = _mending(size, random, slots, word).arguments
    return Call(3 * len(pieces.begins), (pieces, given, fits, before, accepts, words, np.zeros((len(pieces.begins), 3), words.dtype)))


def _reach_carrying(size: int, random: Random, slots: int, word: Any) -> Call:
    pieces = cut_partitions(size, random)
    words = random.integers(0, 8, (len(pieces.begins), 3)).astype(word)
    return Call(1, (pieces, words[:, 0].copy(), words, np.zeros(len(words), word)))


def _wide_reaching(size: int, random: Random, slots: int, word: Any) -> Call:
    pieces, given = cut_partitions(size, random), label_words(size, random, 3, word)
    fits, before = random.integers(0, 9, (3, 2), np.uint64), random.integers(0, 9, (128, 2), np.uint64)
    accepts, ends = np.array([1, 2], np.uint64), np.array([2, 1], np.uint64)
    return Call(len(pieces.begins), (pieces, given, fits, before, accepts, ends, np.zeros((size, 2), np.uint64)))


def _wide_mending(size: int, random: Random, slots: int, word: Any) -> Call:
    call = _wide_reaching(size, random, slots, word)
    reach.mark_wide_reach(0, call.size, *call.arguments)
    *given, _, words = call.arguments
    return Call(1, (*given, words, np.zeros(2, np.uint64)))


def _labelled(size: int, random: Random) -> tuple[PartitionPieces, Array, Array]:
    pieces, given = cut_partitions(size, random), label_words(size, random, 3, np.uint8)
    earliest = np.zeros((size, 3), np.int32)
    reach.find_earliest_ends(0, len(pieces.begins), pieces, given, AUTOMATON, False, earliest[:0], earliest)
    return pieces, given, earliest


def _ending(size: int, random: Random, slots: int, opened: bool = False, followed: bool = False) -> Call:
    pieces, given, earliest = _labelled(size, random)
    behind = np.where(random.random((len(pieces.begins), 3)) < 0.5, pieces.offsets[1:, None], 2**31 - 1).astype(np.int32)
    return Call(len(pieces.begins), (pieces, given, AUTOMATON, opened, behind[: size * followed], np.zeros_like(earliest)))


def _end_carrying(size: int, random: Random, slots: int) -> Call:
    pieces, _, earliest = _labelled(size, random)
    crossed, firsts = random.integers(0, 8, (len(pieces.begins), 3)).astype(np.uint8), earliest[pieces.offsets[:-1]]
    return Call(1, (pieces, firsts, crossed, np.full_like(firsts, 2**31 - 1)))


def _end_mending(size: int, random: Random, slots: int) -> Call:
    pieces, given, earliest = _labelled(size, random)
    return Call(1, (pieces, given, AUTOMATON, earliest))


def _times_limited(size: int, random: Random, slots: int, time: Any, missing: bool) -> Call:
    pieces = cut_partitions(size, random)
    offsets = borders_of(pieces)
    times = event_times(offsets, random, time)
    clock = times.view(np.uint64) ^ np.uint64(1 << 63) if time is np.int64 else times
    absent = np.zeros(size if missing else 0, np.bool_)
    absent[offsets[1:-1][: len(absent)] - 1] = True
    given = label_words(size, random, 3, np.uint8)
    return Call(len(pieces.begins), (pieces, given, np.uint8(5), clock, absent, clock.dtype.type(3), np.zeros(size, np.int64)))


def _rows_limited(size: int, random: Random, slots: int) -> Call:
    pieces = cut_partitions(size, random)
    return Call(len(pieces.begins), (pieces, 3, np.zeros(size, np.int64)))


def reach_of(size: int, random: Random, windows: bool) -> tuple[PartitionPieces, Reach]:
    pieces, given, earliest = _labelled(size, random)
    reach.mend_earliest_ends(pieces, given, AUTOMATON, earliest)
    if not windows:
        words = (earliest < np.iinfo(np.int32).max) @ np.array([1, 2, 4])
        return pieces, Reach(words.astype(np.uint8).reshape(-1, 1), NOTHING, np.empty(0, np.int64))
    limits = np.zeros(size, np.int64)
    reach.limit_by_rows(0, len(pieces.begins), pieces, 3, limits)
    return pieces, Reach(np.empty((0, 0), np.uint8), earliest, limits)


ROW_REACH_CASES: tuple[KernelCase, ...] = (
    *cases(reach.mark_reach, _reaching, {**_WORDS, "followed": {"word": np.uint8, "followed": True}}),
    *cases(reach.cross_reach, _reach_crossing, _WORDS),
    *cases(reach.carry_reach, _reach_carrying, _WORDS),
    *cases(reach.mark_wide_reach, _wide_reaching, _WORDS),
    *cases(reach.mend_reach, _mending, _WORDS),
    *cases(reach.mend_wide_reach, _wide_mending, _WORDS),
    *cases(reach.find_earliest_ends, _ending, {"": {}, "opened": {"opened": True}, "followed": {"followed": True}}),
    *cases(reach.carry_earliest_ends, _end_carrying, {"": {}}),
    *cases(reach.mend_earliest_ends, _end_mending, {"": {}}),
    *cases(
        reach.limit_by_times,
        _times_limited,
        {"uint64": {"time": np.int64, "missing": False}, "float64": {"time": np.float64, "missing": True}},
    ),
    *cases(reach.limit_by_rows, _rows_limited, {"": {}}),
)
