"""Cases of the kernels over text: constants in a table, rows that equal one of them or none, hashes of rows, and equal rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.phase_one import equal_texts, text
from gpu_cep_kernels.phase_one.constant_tables import ConstantTable, constant_table
from gpu_cep_kernels.phase_one.equal_texts import HashedRows
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, places_of

_SHORT = (b"", b"x", b"xy", b"Quote", b"x\0", b"eightest", "Zürich".encode())
_LONG = (b"ApplicationSent", b"sixteen bytes :)", b"sixteen bytes ;)")
# of one length, with the same ends
_ALIKE = tuple(b"https://example.com/%d/index.html" % number for number in range(1000, 1008))
_TEXTS = {"short": _SHORT, "long": _SHORT + _LONG, "whole": _SHORT + _LONG + _ALIKE}

_KINDS = {"short": np.int32, "whole": np.int64}

_LAYOUTS: Variants = {
    "short": {"kind": np.int32, "texts": "short", "nulls": False},
    "short-large": {"kind": np.int64, "texts": "short", "nulls": True},
    "long": {"kind": np.int32, "texts": "long", "nulls": True},
    "whole": {"kind": np.int64, "texts": "whole", "nulls": True},
}


def _table(random: Random, texts: str) -> ConstantTable:
    """Half of the texts, but all of those that are alike."""
    drawn = [_TEXTS[texts][place] for place in random.permutation(len(_TEXTS[texts]))[::2]]
    return constant_table(list(dict.fromkeys([*drawn, *(_ALIKE if texts == "whole" else ())])))


def _bytes(content: bytes) -> Array:
    return np.frombuffer(bytearray(content), np.uint8)


def _rows(size: int, random: Random, slots: int, kind: Any, texts: str, nulls: bool) -> Call:
    chosen = [_TEXTS[texts][place] for place in random.integers(0, len(_TEXTS[texts]), size)]
    offsets = places_of(np.array([len(own) for own in chosen], np.int64)).astype(kind)
    # the bit of row 0 is the second
    validity = random.bytes(size // 8 + 1) if nulls else b""
    return Call(size, (offsets, _bytes(b"".join(chosen)), _bytes(validity), 1, _table(random, texts), np.zeros(size, np.int32)))


def _placing(size: int, random: Random, slots: int, texts: str) -> Call:
    table = _table(random, texts)
    return Call(1, (table._replace(entries=np.full_like(table.entries, 2**64 - 1), probes=0),))


def _hashed(size: int, random: Random, slots: int, kind: Any, texts: str) -> Call:
    offsets, content, *_ = _rows(size, random, slots, kind, texts, nulls=False).arguments
    return Call(size, (offsets, content, np.zeros(size, np.uint64)))


def _drawn_hashes(size: int, random: Random) -> Array:
    """Some hashes again and again, in four parts, of which some are full of hashes that begin alike."""
    few = random.integers(0, 2**62, size // 3 + 1, np.uint64) * random.choice(np.array([1, 4], np.uint64), size // 3 + 1)
    return random.choice(few, size)


_SHIFT = np.uint64(62)


def _counted_parts(size: int, random: Random, slots: int) -> Call:
    return Call(1, (_drawn_hashes(size, random), _SHIFT, random.integers(0, 9, 4)))


def _no_rows(size: int) -> HashedRows:
    return HashedRows(np.zeros(size, np.uint64), np.zeros(size, np.int32))


def _placed_in_parts(size: int, random: Random, slots: int) -> Call:
    hashes = _drawn_hashes(size, random)
    counts = np.bincount((hashes >> _SHIFT).astype(np.int64), minlength=4)
    return Call(1, (hashes, 7, _SHIFT, places_of(counts)[:-1], _no_rows(size)))


def _firsts(size: int, random: Random, slots: int) -> Call:
    hashes, rows = _drawn_hashes(size, random), np.flatnonzero(random.random(2 * size) < 0.5).astype(np.int32)[:size]
    bits = size.bit_length()
    return Call(1, (hashes[: len(rows)], rows, np.uint64(62 - bits), _no_rows(1 << bits), np.zeros(2 * size, np.int32)))


def _compared(size: int, random: Random, slots: int, kind: Any, texts: str) -> Call:
    """Rows that have the texts of their values, but now and then one that has another."""
    values = _TEXTS[texts]
    codes = random.integers(0, len(values), size)
    chosen = [values[code] for code in codes]
    if size and random.random() < 0.5:
        chosen[random.integers(size)] = values[random.integers(len(values))]
    bounds, value_bounds = (places_of(np.array([len(each) for each in own], np.int64)).astype(kind) for own in (chosen, values))
    return Call(1, (bounds, _bytes(b"".join(chosen)), codes.astype(np.int32), value_bounds, _bytes(b"".join(values))))


TEXT_CASES: tuple[KernelCase, ...] = (
    *cases(text.find_constants, _rows, _LAYOUTS),
    *cases(text.hash_texts, _hashed, {texts: {"kind": kind, "texts": texts} for texts, kind in _KINDS.items()}),
    *cases(equal_texts.count_parts, _counted_parts, {"": {}}),
    *cases(equal_texts.place_in_parts, _placed_in_parts, {"": {}}),
    *cases(equal_texts.find_firsts, _firsts, {"": {}}),
    *cases(equal_texts.count_differing, _compared, {texts: {"kind": kind, "texts": texts} for texts, kind in _KINDS.items()}),
    *cases(text.place_constants, _placing, {texts: {"texts": texts} for texts in _TEXTS}),
)
