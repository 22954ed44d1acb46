"""Cases of the kernels over windows: their ends, summary statistics, the chained condition, and what is read off it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_cep_kernels.labels_decide import direct
from gpu_cep_kernels.phase_one import branch_labels, window_conditions, windows
from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.rules.tables import PatternTable
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, Streams, ends_of, flags, label_words, places_of, start_events, streams
from tests.kernel_cases.tables import pattern_table

# a and b+ in any order, then c
_PATTERN = pattern_table((2, 1), ((1, 1), (1, None), (1, 1)))
_MINIMAL = 0b011
_EXCLUSIVE = pattern_table((1, 1, 1), ((1, 1), (1, None), (1, 1)))

_CLOCKS: Variants = {"uint64": {}, "float64": {"time": np.float64}}
_TIES: Variants = {"tied": {}, "untied": {"tied": False}}


def _window_ends(size: int, random: Random, slots: int, **given: Any) -> Call:
    events = streams(size, random, **given)
    starts = start_events(events.labels, _MINIMAL)
    inside = starts + random.integers(0, ends_of(events, starts) - starts)
    outputs = np.zeros(len(starts), np.int32)
    return Call(len(starts), (starts, inside, events.limits, outputs))


def _crowded(size: int, random: Random, slots: int, **given: Any) -> Call:
    return Call(size, (3, streams(size, random, **given).limits, np.zeros(size, np.bool_)))


def _renumbered(size: int, random: Random, slots: int, word: Any, words: int) -> Call:
    labels = np.stack([label_words(size, random, 8 * np.dtype(word).itemsize, word) for _ in range(words)])
    variables = np.array([0, 2, 64 * words - 58, 1], np.uint64)
    return Call(size, (variables, labels, np.zeros((1, size), np.uint8)))


def _prefix_counts(size: int, random: Random, slots: int, word: Any) -> Call:
    return Call(1, (label_words(size, random, 3, word), 3, np.zeros((3, size + 1), np.int32)))


def _overlap(size: int, random: Random, slots: int, word: Any, exclusive: bool) -> Call:
    return Call(1, (label_words(size, random, 3, word, exclusive),))


def _starts(size: int, random: Random, slots: int, word: Any) -> Call:
    return Call(1, (label_words(size, random, 3, word), np.zeros(size + SPARE, np.int64)))


def _judgement(size: int, random: Random, slots: int, **given: Any) -> Call:
    events = streams(size, random, **given)
    starts = start_events(events.labels, _MINIMAL)
    arguments = starts, ends_of(events, starts), events.next_events, _PATTERN, 3, events.counts
    return Call(len(starts), (*arguments, np.zeros(len(starts), np.bool_)))


def _chain_arguments(events: Streams, starts: Array, pattern: PatternTable, exact: bool) -> tuple[Any, ...]:
    earliest, holds = np.zeros((4, len(starts)), np.int32), np.zeros(len(starts), np.bool_)
    return starts, events.limits, events.next_events, pattern, exact, earliest, holds


def _chain(size: int, random: Random, slots: int, exact: bool = False, **given: Any) -> Call:
    events = streams(size, random, exclusive=exact, **given)
    starts = start_events(events.labels, _MINIMAL)
    return Call(len(starts), _chain_arguments(events, starts, _PATTERN, exact))


def _keeping(size: int, random: Random, slots: int) -> Call:
    earliest = random.integers(0, 99, (3, size)).astype(np.int32)
    return Call(1, (flags(size, random), np.arange(size) * 2, earliest, np.zeros(size + 1, np.int64)))


@dataclass(frozen=True, slots=True)
class _Chained:
    """The windows of exclusive labels that have a match, and the earliest event of each variable in them."""

    events: Streams
    starts: Array
    earliest: Array


def _chained(size: int, random: Random, **given: Any) -> _Chained:
    events = streams(size, random, exclusive=True, **given)
    starts = start_events(events.labels, 1)
    arguments = _chain_arguments(events, starts, _EXCLUSIVE, True)
    window_conditions.chain_windows(0, len(starts), *arguments)
    *_, earliest, holds = arguments
    return _Chained(events, starts[holds], np.ascontiguousarray(earliest[:3, holds]))


def _counting_arguments(found: _Chained) -> tuple[Any, ...]:
    events = found.events
    counts = np.zeros((len(found.starts), 3), np.int32)
    return found.starts, events.limits, _EXCLUSIVE, events.occurrence, found.earliest, counts


def _binding_counts(size: int, random: Random, slots: int, **given: Any) -> Call:
    found = _chained(size, random, **given)
    return Call(len(found.starts), _counting_arguments(found))


def _bound_events(size: int, random: Random, slots: int, **given: Any) -> Call:
    found = _chained(size, random, **given)
    arguments = _counting_arguments(found)
    direct.count_bindings(0, len(found.starts), *arguments)
    offsets = places_of(arguments[-1].sum(axis=1))
    outputs = np.zeros(int(offsets[-1]), np.int64)
    return Call(len(found.starts), (100, offsets, arguments[-1], found.events.occurrence, found.earliest, outputs))


def _bound_singles(size: int, random: Random, slots: int) -> Call:
    earliest = random.integers(0, 1_000, (3, size)).astype(np.int32)
    return Call(size, (100, earliest, np.zeros((size, 3), np.int64)))


_WORDS: Variants = {"uint8": {"word": np.uint8}, "uint64": {"word": np.uint64}}

WINDOW_CASES: tuple[KernelCase, ...] = (
    *cases(windows.window_ends, _window_ends, _CLOCKS, ("starts", "inside", "limits.clock", "limits.stream_end")),
    *cases(windows.mark_crowded, _crowded, _CLOCKS),
    *cases(
        branch_labels.renumber_labels,
        _renumbered,
        {"uint8": {"word": np.uint8, "words": 1}, "uint64": {"word": np.uint64, "words": 2}},
        ("labels",),
    ),
    *cases(window_conditions.prefix_counts, _prefix_counts, _WORDS),
    *cases(
        window_conditions.labels_overlap,
        _overlap,
        {"uint8": {"word": np.uint8, "exclusive": True}, "uint64": {"word": np.uint64, "exclusive": False}},
    ),
    *cases(window_conditions.select_starts, _starts, _WORDS),
    *cases(window_conditions.judge_windows, _judgement, _TIES, ("starts", "ends", "next_events.occurrence", "counts")),
    *cases(
        window_conditions.chain_windows,
        _chain,
        {**_CLOCKS, "untied": {"tied": False}, "exact": {"exact": True}, "exact-float64": {"exact": True, "time": np.float64}},
        ("starts", "limits.clock", "limits.stream_end", "next_events.occurrence"),
    ),
    *cases(window_conditions.keep_windows, _keeping, {"": {}}),
    *cases(direct.count_bindings, _binding_counts, _CLOCKS, ("starts", "earliest")),
    *cases(direct.bind_events, _bound_events, {"": {}}, ("offsets", "counts", "earliest")),
    *cases(direct.bind_singles, _bound_singles, {"": {}}),
)
