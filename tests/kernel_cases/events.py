"""Cases of the kernels over events: property masks, compaction, streams and their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.phase_one import distinct, input_buffers, label_masks, ordering, rare_events, windows
from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.rules.scalars import COMPARISONS
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, event_times, flags, floats, integers, label_words, places_of, stream_offsets, streams

_NO_RANKS = np.empty(0, np.int64)
_WORDS: Variants = {word.__name__: {"word": word} for word in (np.uint8, np.uint16, np.uint32, np.uint64)}
_KINDS: Variants = {"int64": {"kind": np.int64}, "float64": {"kind": np.float64}}
# Clocks of reach: times of ascending rows, seen as the kernels see them, and how far is reached back and on.
_LENGTHS: Variants = {
    "uint64": {"kind": np.int64, "before": 9, "after": 0},
    "float64": {"kind": np.float64, "before": 4.5, "after": 2.5},
}
_RANKED: Variants = {
    "int64": {"kind": np.int64, "ranked": False},
    "int64-ranked": {"kind": np.int64, "ranked": True},
    "float64": {"kind": np.float64, "ranked": False},
}


def _columns(size: int, random: Random, kind: Any) -> Array:
    values = floats(size, random) if np.dtype(kind).kind == "f" else integers(size, random)
    with np.errstate(over="ignore"):
        return values.astype(kind)


def _codes(size: int, random: Random, slots: int, word: Any, code: Any = np.int32) -> Call:
    table = label_words(5, random, 3, word)
    return Call(size, (random.integers(0, 5, size).astype(code), table, np.full(size, word(7))))


def _packed_codes(size: int, random: Random, slots: int, word: Any) -> Call:
    entries = np.uint64(sum(entry << 3 * code for code, entry in enumerate(label_words(5, random, 3, word).tolist())))
    return Call(size, (random.integers(0, 5, size).astype(np.int32), entries, 3, np.full(size, word(7))))


def _comparison(size: int, random: Random, slots: int, word: Any, kind: Any, comparison: str) -> Call:
    column = _columns(size, random, kind)
    constant = np.float64(0.25) if column.dtype.kind == "f" else np.int64(1)
    return Call(size, (column, COMPARISONS[comparison], constant, word(5), np.full(size, word(7))))


def _truth(size: int, random: Random, slots: int, word: Any) -> Call:
    return Call(size, (flags(size, random).view(np.uint8), word(5), np.full(size, word(7))))


def _compaction(size: int, random: Random, slots: int, word: Any, keeps_all: bool) -> Call:
    marks, labels = label_words(size, random, 3, word), label_words(size, random, 3, word)
    return Call(1, (7, marks, labels, keeps_all, np.zeros(size + SPARE, np.int32), np.zeros(size, word)))


def _marking(size: int, random: Random, slots: int, kind: Any) -> Call:
    events = streams(size, random, time=kind)
    arguments = 0, events.offsets, 0, len(events.offsets) - 1, events.times
    return Call(1, (*arguments, np.zeros(size, np.int32), np.zeros(size + 1, np.int32)))


def _occurrences(size: int, random: Random, slots: int, word: Any) -> Call:
    return Call(1, (label_words(size, random, 3, word), 3, np.zeros((3, size + 2), np.int32)))


def _kept_rows(size: int, random: Random) -> Array:
    return np.flatnonzero(flags(size, random, 0.75)).astype(np.int32)


def _histogram(size: int, random: Random, slots: int) -> Call:
    rows, keys = _kept_rows(size, random), random.integers(0, 5, size).astype(np.int32)
    return Call(1, (rows + 7, 7, keys, np.zeros(5, np.int32), np.zeros(len(rows), np.int32)))


def _first_places(size: int, random: Random, slots: int, ordered: bool) -> Call:
    counts = random.integers(0, 4, (3, size)).astype(np.int32)
    return Call(1, (counts, random.permutation(size) if ordered else _NO_RANKS, np.zeros(size + 1, np.int64)))


def _placing(size: int, random: Random, slots: int) -> Call:
    streams = random.integers(0, 5, size).astype(np.int32)
    return Call(1, (places_of(np.bincount(streams, minlength=5))[:-1].astype(np.int32), streams))


def _gathering(size: int, random: Random, slots: int, kind: Any) -> Call:
    rows = _kept_rows(size, random)
    return Call(len(rows), (rows + 7, 7, _columns(size, random, kind), np.zeros(len(rows), kind)))


def _gathering_there(size: int, random: Random, slots: int, kind: Any) -> Call:
    rows = _kept_rows(size, random)
    return Call(len(rows), (rows, size // 3, _columns(size // 2, random, kind), np.zeros(len(rows), kind)))


def _scattering(size: int, random: Random, slots: int, kind: Any) -> Call:
    rows = _kept_rows(size, random)
    destinations = random.permutation(len(rows)).astype(np.int32)
    return Call(len(rows), (rows + 7, 7, destinations, _columns(size, random, kind), np.zeros(len(rows), kind)))


def _scattering_times(size: int, random: Random, slots: int, kind: Any) -> Call:
    return Call(1, _scattering(size, random, slots, kind).arguments)


def _putting(size: int, random: Random, slots: int, kind: Any) -> Call:
    return Call(size, (random.permutation(size).astype(np.int32), random.integers(0, 100, size).astype(kind), np.zeros(size, kind)))


def _unordered(size: int, random: Random, kind: Any, ranked: bool) -> tuple[Array, Array, Array]:
    """Offsets, times and ranks of streams of which some are out of order."""
    offsets = stream_offsets(size, random)
    times = event_times(offsets, random, kind)
    moved = np.flatnonzero(flags(size, random, 0.2))
    times[moved] = times[random.permutation(moved)]
    return offsets, times, random.integers(0, 3, size) if ranked else _NO_RANKS


def _disordered_streams(size: int, random: Random, slots: int, kind: Any, ranked: bool) -> Call:
    offsets, times, ranks = _unordered(size, random, kind, ranked)
    return Call(len(offsets) - 1, (offsets, times, ranks, np.zeros(len(offsets) - 1, np.bool_)))


def _sorting(size: int, random: Random, slots: int, kind: Any, ranked: bool) -> Call:
    offsets, times, ranks = _unordered(size, random, kind, ranked)
    return Call(len(offsets) - 1, (offsets, times, ranks, np.zeros(size, np.int64), np.zeros(size, np.int64)))


def _bits(size: int, random: Random, slots: int, repeated: bool) -> Call:
    rows = random.integers(0, size + 1, size) if repeated else random.permutation(size + 5)[:size]
    return Call(1, (rows.astype(np.int32), np.zeros((size + 5) // 64 + 1, np.uint64)))


def _marked(size: int, random: Random, slots: int) -> Call:
    rows, marks = _bits(size, random, slots, repeated=True).arguments
    distinct.mark_distinct(rows, marks)
    return Call(1, (marks, np.zeros(len(marks), np.int64)))


def _ranked(size: int, random: Random, repeated: bool) -> tuple[Array, Array, Array]:
    """Values, their bits, and how many are set before each word of these."""
    values, marks = _bits(size, random, 1, repeated).arguments
    distinct.mark_distinct(values, marks)
    before = np.zeros(len(marks), np.int64)
    distinct.count_marked(marks, before)
    return values, marks, before


def _distinct(size: int, random: Random, slots: int) -> Call:
    return Call(size, (*_ranked(size, random, repeated=False), np.zeros(size, np.int64)))


def _numbering(size: int, random: Random, slots: int) -> Call:
    return Call(size, (*_ranked(size, random, repeated=True), np.zeros(size, np.int32)))


def _stream_numbers(size: int, random: Random, slots: int) -> Call:
    events = np.sort(random.integers(0, size, size // 2)) if size else np.empty(0, np.int64)
    return Call(1, (events, stream_offsets(size, random), np.zeros(len(events), np.int64)))


def _clock(size: int, random: Random, kind: Any) -> Array:
    times = event_times(places_of(np.array([size])), random, kind)
    return times.view(np.uint64) if kind is np.int64 else times


def _finding_spans(size: int, random: Random, slots: int, kind: Any, before: float, after: float) -> Call:
    clock, rows = _clock(size, random, kind), np.flatnonzero(flags(size, random, 0.25))
    first, last = np.maximum(rows - 5, 0), np.minimum(rows + 5, size)
    reach = rare_events.Nearness(clock, clock.dtype.type(before), clock.dtype.type(after))
    return Call(len(rows), (rows, first, last, reach, np.zeros_like(rows), np.zeros_like(rows)))


def _spans(size: int, random: Random, slots: int, word: Any, keeps_all: bool) -> Call:
    borders = np.flatnonzero(flags(size + 1, random, 0.3))
    begins, ends = borders[: len(borders) // 2 * 2 : 2], borders[1::2]
    return Call(1, (begins.copy(), ends.copy(), label_words(size, random, 3, word), keeps_all, np.zeros(size + SPARE, np.int32)))


def _label_counts(size: int, random: Random, slots: int, word: Any) -> Call:
    return Call(1, (label_words(size, random, 3, word), np.zeros(3, np.int64)))


def _buffers(size: int, random: Random, slots: int, word: Any) -> Call:
    labels = label_words(size, random, 3, word)
    first = places_of(np.array([np.count_nonzero(labels & word(1 << v)) for v in range(3)]))
    return Call(1, (labels, first, np.zeros(int(first[-1]) + 1, np.int32)))


EVENT_CASES: tuple[KernelCase, ...] = (
    *cases(label_masks.mask_by_code, _codes, {**_WORDS, "narrow": {"word": np.uint8, "code": np.uint8}}),
    *cases(label_masks.mask_by_packed_code, _packed_codes, _WORDS),
    *cases(
        label_masks.mask_by_comparison,
        _comparison,
        {
            "int64": {"word": np.uint8, "kind": np.int64, "comparison": "le"},
            "float64": {"word": np.uint8, "kind": np.float64, "comparison": "ge"},
            "int32": {"word": np.uint16, "kind": np.int32, "comparison": "eq"},
            "float32": {"word": np.uint32, "kind": np.float32, "comparison": "ne"},
            "words": {"word": np.uint64, "kind": np.float64, "comparison": "lt"},
            "greater": {"word": np.uint64, "kind": np.int64, "comparison": "gt"},
        },
    ),
    *cases(label_masks.mask_by_truth, _truth, _WORDS),
    *cases(
        label_masks.compact,
        _compaction,
        {
            "uint8": {"word": np.uint8, "keeps_all": False},
            "uint64": {"word": np.uint64, "keeps_all": False},
            "all": {"word": np.uint64, "keeps_all": True},
        },
    ),
    *cases(rare_events.find_spans, _finding_spans, _LENGTHS),
    *cases(
        rare_events.keep_spans,
        _spans,
        {
            "uint8": {"word": np.uint8, "keeps_all": False},
            "uint64": {"word": np.uint64, "keeps_all": False},
            "all": {"word": np.uint8, "keeps_all": True},
        },
    ),
    *cases(windows.mark_streams, _marking, _KINDS),
    *cases(windows.next_occurrences, _occurrences, _WORDS),
    *cases(ordering.histogram, _histogram, {"": {}}),
    *cases(ordering.exclusive_offsets, _first_places, {"": {"ordered": False}, "ordered": {"ordered": True}}),
    *cases(ordering.find_destinations, _placing, {"": {}}),
    *cases(ordering.scatter_times, _scattering_times, _KINDS),
    *cases(ordering.put, _putting, {"int32": {"kind": np.int32}, "uint8": {"kind": np.uint8}}),
    *cases(ordering.gather, _gathering, _KINDS),
    *cases(ordering.gather_there, _gathering_there, _KINDS),
    *cases(ordering.scatter, _scattering, _KINDS),
    *cases(ordering.mark_disordered_streams, _disordered_streams, _RANKED),
    *cases(ordering.sort_streams, _sorting, _RANKED),
    *cases(ordering.streams_of, _stream_numbers, {"": {}}),
    *cases(distinct.mark_distinct, _bits, {"distinct": {"repeated": False}, "repeated": {"repeated": True}}),
    *cases(distinct.count_marked, _marked, {"": {}}),
    *cases(distinct.number_distinct, _numbering, {"": {}}),
    *cases(distinct.order_distinct, _distinct, {"": {}}),
    *cases(input_buffers.count_labels, _label_counts, _WORDS),
    *cases(input_buffers.fill_buffers, _buffers, _WORDS),
)
