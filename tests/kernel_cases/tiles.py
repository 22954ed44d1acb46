"""Cases of the kernels that pass over tiles of events: labels, compaction, order, and what windows need."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep.engine.phase_one.device.tiles import firsts_behind, numbers_before, parts_of
from gpu_cep_kernels.labels_decide import direct
from gpu_cep_kernels.phase_one import label_tiles, placed_events, window_tiles
from gpu_cep_kernels.phase_one.tiles import GROUP, TILE
from gpu_cep_kernels.rules.scalars import COMPARISONS
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, flags, floats, integers, label_words, places_of, streams

_NO_RANKS = np.empty(0, np.int64)
_VARIABLES = 3


def _tiles(size: int) -> int:
    return -(-size // TILE)


def _groups(size: int) -> int:
    return -(-_tiles(size) // GROUP)


def _labels(size: int, random: Random, word: Any, words: int) -> Array:
    return np.stack([label_words(size, random, _VARIABLES, word) for _ in range(words)])


def _keys(size: int, random: Random, key: Any) -> Array:
    return integers(size, random).astype(key) if key else np.empty(0, np.int32)


def _tests(size: int, random: Random, word: Any, number: int, code: Any, kind: Any, known: bool) -> label_tiles.LabelTests:
    """Tests of codes of a type, and of a column of a `kind` (None: there are none)."""
    codes, table = np.empty(0, np.int32), np.empty(0, word)
    if code is not None:
        codes, table = random.integers(0, 5, size).astype(code), label_words(5, random, 3, word)
    column, comparisons = np.empty(0, np.int64), np.empty(0, np.int64)
    if kind is not None:
        column = (floats if np.dtype(kind).kind == "f" else integers)(size, random).astype(kind)
        comparisons = np.array([COMPARISONS[name] for name in ("ge", "ne", "lt")])
    constants = np.array([-1, 0, 1][: len(comparisons)], np.float64 if column.dtype.kind == "f" else np.int64)
    present = np.empty(0, np.uint8) if known else flags(size, random, 0.75).view(np.uint8)
    others = np.array([6, 5, 3][: len(comparisons)], word)
    return label_tiles.LabelTests(number, word(7), codes, table, column, present, comparisons, constants, others)


def _labelling(
    size: int,
    random: Random,
    slots: int,
    word: Any,
    words: int = 1,
    *,
    code: Any = np.uint8,
    kind: Any = None,
    known: bool = True,
    pack: Any = np.uint64,
) -> Call:
    tests = _tests(size, random, word, words - 1, code, kind, known)
    packed = random.integers(0, 1 << 31, (words, -(-size * np.dtype(word).itemsize // np.dtype(pack).itemsize)), np.uint64).astype(pack)
    return Call(packed.shape[1], (size, tests, packed))


def _kept(size: int, random: Random, slots: int, word: Any, words: int = 1, *, keeps_all: bool = False) -> Call:
    packs, labels = np.zeros(_tiles(size), np.uint32).view(np.uint8), _labels(size, random, word, words)
    packed = random.integers(0, 1 << 31, (words, -(-size * labels.itemsize // 8)), np.uint64)
    packed.view(word)[:, :size] = labels
    return Call(len(packs), (keeps_all, labels, packed, packs))


def _kept_bits(labels: Array, keeps_all: bool) -> Array:
    """Which events are kept, a word for each tile."""
    flags_of = np.zeros(TILE * _tiles(labels.shape[1]), np.bool_)
    flags_of[: labels.shape[1]] = labels.any(axis=0) | keeps_all
    return np.packbits(flags_of, bitorder="little").view(np.uint32)


def _spanning(size: int, random: Random, slots: int, *, key: Any, keeps_all: bool = False) -> Call:
    bits = _kept_bits(_labels(size, random, np.uint8, 1), keeps_all)
    lanes = TILE * _groups(size)
    return Call(lanes, (bits, _keys(size, random, key), np.zeros((3, lanes), np.int64)))


def _folding(size: int, random: Random, slots: int, *, key: Any) -> Call:
    # so many tiles that there are several groups
    size *= TILE
    call = _spanning(size, random, slots, key=key or np.int64)
    bits, keys, spans = call.arguments
    label_tiles.span_lanes(0, call.size, bits, keys, spans)
    rows, groups = (4, spans) if key else (1, spans[:, :0])
    return Call(_tiles(size), (bits, groups, np.zeros(_tiles(size), np.int32), np.zeros((rows, _groups(size)), np.int64)))


def _compaction(
    size: int, random: Random, slots: int, word: Any, words: int = 1, *, keeps_all: bool = False, time: Any = np.int64, key: Any = None
) -> Call:
    labels, keys = _labels(size, random, word, words), _keys(size, random, key)
    kept = labels.any(axis=0) | keeps_all
    before = places_of(np.add.reduceat(kept, range(0, size, TILE)) if size else np.empty(0, np.int64))
    carried = before[: GROUP * _groups(size) : GROUP]
    inner = (before[:-1] - np.repeat(carried, GROUP)[: _tiles(size)]).astype(np.int32)
    places = label_tiles.TilePlaces(_kept_bits(labels, keeps_all), inner, carried)
    total = np.count_nonzero(kept)
    found = label_tiles.KeptColumns(
        np.zeros(total, np.int32), np.zeros((words, total), word), np.zeros(total, time), np.zeros(total if key else 0, keys.dtype)
    )
    times = integers(size, random) if time is np.int64 else floats(size, random)
    return Call(size, (7, labels, times, keys, places, found))


def _shifting(size: int, random: Random, slots: int, key: Any, code: Any) -> Call:
    return Call(size, (random.integers(-4, 60, size).astype(key), -4, np.zeros(size, code)))


def _codes_of(offsets: Array, code: Any) -> Array:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)).astype(code)


def _placed(size: int, random: Random, code: Any, time: Any, word: Any, words: int, moved: bool) -> placed_events.PlacedEvents:
    """Events of streams in order; if `moved`, some are not."""
    events = streams(size, random, time=time)
    codes = np.empty(0, np.int32) if code is None else _codes_of(events.offsets, code)
    order = np.arange(size)
    out_of_order = np.flatnonzero(flags(size, random, 0.1)) if moved else order[:0]
    order[out_of_order] = random.permutation(out_of_order)
    labels = _labels(size, random, word, words)
    return placed_events.PlacedEvents(codes[order] if len(codes) else codes, events.times[order], order.astype(np.int32), labels)


def _faults(size: int, random: Random, slots: int, *, code: Any, time: Any, word: Any, words: int = 1, ranked: bool, moved: bool) -> Call:
    events = _placed(size, random, code, time, word, words, moved)
    return Call(-(-size // placed_events.QUAD), (events, random.integers(0, 3, size) if ranked else _NO_RANKS, np.zeros(4, np.uint8)))


def _gathering(size: int, random: Random, slots: int, code: Any, word: Any, words: int = 1) -> Call:
    events = _placed(size, random, code, np.int64, word, words, True)
    places = np.flatnonzero(flags(size, random))
    empty = (np.zeros((*column.shape[:-1], len(places) if column.size else 0), column.dtype) for column in events)
    return Call(len(places), (places, events, placed_events.PlacedEvents(*empty)))


def _packing(size: int, random: Random, slots: int, code: Any, word: Any, words: int = 1) -> Call:
    events = _placed(size, random, code, np.int64, word, words, True)
    columns = placed_events.FITTING + words * (np.dtype(word).itemsize > 2 or words > 1 or code is np.int32)
    return Call(size, (events._replace(times=events.times.view(np.uint64)), np.zeros((size, columns), np.uint64)))


def _gathering_packed(size: int, random: Random, slots: int, code: Any, word: Any, words: int = 1) -> Call:
    events, packed = _packing(size, random, slots, code, word, words).arguments
    placed_events.pack_events(0, size, events, packed)
    return Call(size, (random.permutation(size), packed, placed_events.PlacedEvents(*map(np.zeros_like, events))))


def _batch(size: int, random: Random, code: Any, time: Any, word: Any, words: int, tied: bool) -> window_tiles.BatchColumns:
    streams_of, times, _, labels = _placed(size, random, code, time, word, words, False)
    wanted = np.array([3] * words, word)
    return window_tiles.BatchColumns(streams_of, times if tied else times[:0], labels, wanted, size - size // 4)


def _bits(size: int, words: int) -> Array:
    variables = _VARIABLES if words == 1 else 64 + _VARIABLES
    return np.zeros((variables - window_tiles.BEGIN, _tiles(size)), np.uint32)


def _marking(size: int, random: Random, slots: int, *, code: Any, time: Any, word: Any, words: int = 1, tied: bool) -> Call:
    packs = _bits(size, words).view(np.uint8)
    return Call(packs.shape[1], (_batch(size, random, code, time, word, words, tied), packs))


def _folding_bits(size: int, random: Random, slots: int) -> Call:
    size *= TILE
    bits, groups = _marked_bits(size, _batch(size, random, np.uint16, np.int64, np.uint8, 1, True))
    table = np.zeros((len(groups), _tiles(size)), np.uint64)
    return Call(table.shape[1], (bits, table, groups))


def _marked_bits(size: int, batch: window_tiles.BatchColumns) -> tuple[Array, Array]:
    """The bits of a batch, and room for its groups."""
    bits = _bits(size, len(batch.labels))
    packs = bits.view(np.uint8)
    window_tiles.mark_packs(0, packs.shape[1], batch, packs)
    return bits, np.zeros((len(bits) + 1, _groups(size)), np.int32)


def _filling(size: int, random: Random, slots: int, *, code: Any, time: Any, word: Any, words: int = 1, tied: bool) -> Call:
    bits, groups = _marked_bits(size, _batch(size, random, code, time, word, words, tied))
    table = np.zeros((len(groups), _tiles(size)), np.uint64)
    window_tiles.fold_bits(0, table.shape[1], bits, table, groups)
    before = [numbers_before(own) for own in groups[window_tiles.STREAMS :]]
    carried = np.concatenate([firsts_behind(groups[: window_tiles.STREAMS]), np.array(before, np.int32)])
    numbers = groups[window_tiles.STREAMS :].sum(axis=1)
    found = window_tiles.WindowColumns(
        np.zeros(size, np.int32), np.zeros(size + 1 if tied else 0, np.int32),
        np.zeros((len(bits) + window_tiles.BEGIN, size + 2), np.int32), np.zeros(numbers[1], np.int64),
        np.zeros(numbers[0], np.int32), np.zeros(numbers[0], np.int32),
    )  # fmt: skip
    return Call((len(table) - 1) * parts_of(size), (table, carried, found))


def _totals(size: int, random: Random, slots: int) -> Call:
    starts, held = np.sort(random.permutation(3 * size)[:size]), np.cumsum(flags(size, random, 0.3), dtype=np.int32)
    first_starts = np.concatenate([[0], np.sort(random.integers(0, size + 1, size // 8))]).astype(np.int32)
    return Call(len(first_starts), (first_starts, starts, held, np.zeros_like(first_starts), np.zeros_like(first_starts)))


_BATCHES: Variants = {
    "uint16": {"code": np.uint16, "time": np.int64, "word": np.uint8, "tied": True},
    "int32": {"code": np.int32, "time": np.float64, "word": np.uint64, "words": 2, "tied": True},
    "one-stream": {"code": None, "time": np.int64, "word": np.uint16, "tied": False},
}

_PACKED: Variants = {
    "uint16": {"code": np.uint16, "word": np.uint8},
    "int32": {"code": np.int32, "word": np.uint8},
    "one-stream": {"code": None, "word": np.uint64, "words": 2},
}

TILE_CASES: tuple[KernelCase, ...] = (
    *cases(
        label_tiles.judge_events,
        _labelling,
        {
            "codes": {"word": np.uint8},
            "int64": {"word": np.uint16, "code": None, "kind": np.int64, "known": False},
            "float64": {"word": np.uint64, "words": 2, "code": np.int32, "kind": np.float64},
            "nothing": {"word": np.uint32, "code": None},
        },
        ("tests.codes", "tests.column", "tests.present"),
    ),
    *cases(
        label_tiles.judge_further,
        _labelling,
        {
            "codes": {"word": np.uint8},
            "codes-uint16": {"word": np.uint16, "code": np.int32},
            "int64": {"word": np.uint8, "code": None, "kind": np.int64, "pack": np.uint32},
            "float64": {"word": np.uint64, "words": 2, "code": None, "kind": np.float64, "known": False},
        },
        ("tests.codes", "tests.column", "packed"),
    ),
    *cases(
        label_tiles.mark_kept,
        _kept,
        {"uint8": {"word": np.uint8}, "uint64": {"word": np.uint64, "words": 2}, "uint16": {"word": np.uint16}},
        ("packed",),
    ),
    *cases(label_tiles.mark_kept, _kept, {"all": {"word": np.uint16, "keeps_all": True}}),
    *cases(
        label_tiles.span_lanes,
        _spanning,
        {"int64": {"key": np.int64}, "int32": {"key": np.int32}, "all": {"key": np.int64, "keeps_all": True}},
        ("bits", "keys"),
    ),
    *cases(label_tiles.fold_kept, _folding, {"keys": {"key": np.int64}, "no-keys": {"key": None}}),
    *cases(
        label_tiles.compact_events,
        _compaction,
        {
            "uint8": {"word": np.uint8, "key": np.int32},
            "uint64": {"word": np.uint64, "words": 2, "time": np.float64},
            "all": {"word": np.uint8, "keeps_all": True, "key": np.int64},
        },
        ("labels", "times", "keys"),
    ),
    *cases(
        label_tiles.shift_keys,
        _shifting,
        {"int64": {"key": np.int64, "code": np.uint16}, "int32": {"key": np.int32, "code": np.int32}},
        ("keys",),
    ),
    *cases(
        placed_events.find_faults,
        _faults,
        {
            "uint16": {"code": np.uint16, "time": np.int64, "word": np.uint8, "ranked": False, "moved": True},
            "in-order": {"code": np.int32, "time": np.float64, "word": np.uint64, "words": 2, "ranked": True, "moved": False},
            "one-stream": {"code": None, "time": np.int64, "word": np.uint16, "ranked": False, "moved": False},
        },
        ("events.streams", "events.times", "events.labels"),
    ),
    *cases(
        placed_events.gather_events,
        _gathering,
        {"uint16": {"code": np.uint16, "word": np.uint8}, "one-stream": {"code": None, "word": np.uint64, "words": 2}},
        ("places",),
    ),
    *cases(placed_events.pack_events, _packing, _PACKED, ("events.streams", "events.times", "events.rows", "events.labels")),
    *cases(placed_events.gather_packed, _gathering_packed, _PACKED, ("places", "packed")),
    *cases(window_tiles.mark_packs, _marking, _BATCHES, ("batch.streams", "batch.times", "batch.labels")),
    *cases(window_tiles.fold_bits, _folding_bits, {"": {}}),
    *cases(window_tiles.fill_windows, _filling, _BATCHES, ("table",)),
    *cases(direct.total_streams, _totals, {"": {}}),
)
