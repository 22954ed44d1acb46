"""Encode text of very many distinct values: Arrow's table for these fits in no cache, and each row waits for memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.buffers import TextBuffers, new_values, text_buffers
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import over_slices, slices, spread
from gpu_cep_kernels.phase_one.equal_texts import HashedRows, count_differing, count_parts, find_firsts, place_in_parts
from gpu_cep_kernels.phase_one.ordering import exclusive_offsets
from gpu_cep_kernels.phase_one.text import hash_texts

Hashes = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]

# Rows of a part, and the parts at most: the table of a part fits in a core's cache, and so does a line of memory for each part.
_PART_ROWS, _MOST_BITS = 1 << 14, 9


@record()
class _Parts:
    """Rows in parts, of which p has those from ``begins[p]`` on; all hashes of a part begin with the same `bits`."""

    rows: HashedRows
    begins: npt.NDArray[np.int64]
    bits: int


def encode_many(array: pa.Array, threads: int) -> tuple[Codes, pa.Array] | None:
    """Return the codes of plain text without NULLs, and the distinct values in the order in which they first occur.

    The result is None if two different texts have one hash.
    """
    text = text_buffers(array)
    firsts = _first_rows(_in_parts(hash_rows(text, len(array), threads), threads), threads)
    rows = np.flatnonzero(firsts == np.arange(len(firsts), dtype=np.int32))
    ranks = new_values(len(firsts), np.int32)
    ranks[rows] = np.arange(len(rows), dtype=np.int32)

    def number(span: tuple[int, int]) -> int:
        own = firsts[slice(*span)]
        np.take(ranks, own, out=own, mode="clip")
        return count_differing(text.offsets[span[0] : span[1] + 1], text.bytes, own, known.offsets, known.bytes)

    values = array.take(pa.array(rows))
    known = text_buffers(values)
    differing = spread(number, slices(len(firsts), threads), threads)
    return None if any(differing) else (firsts, values)


def hash_rows(text: TextBuffers, rows: int, threads: int) -> Hashes:
    """Return a hash of each text, which its bytes decide."""
    hashes = new_values(rows, np.uint64)
    over_slices(hash_texts, rows, threads, text.offsets, text.bytes, hashes)
    return hashes


def _in_parts(hashes: Hashes, threads: int) -> _Parts:
    """Return the rows in parts, each in ascending order."""
    bits = min(max((len(hashes) // _PART_ROWS).bit_length(), 1), _MOST_BITS)
    shift, spans = np.uint64(64 - bits), slices(len(hashes), threads)
    places, begins = np.zeros((len(spans), 1 << bits), np.int64), np.empty((1 << bits) + 1, np.int64)
    spread(lambda number: count_parts(hashes[slice(*spans[number])], shift, places[number]), range(len(spans)), threads)
    exclusive_offsets(places, np.empty(0, np.int64), begins)
    parted = HashedRows(new_values(len(hashes), np.uint64), new_values(len(hashes), np.int32))

    def place(number: int) -> None:
        low, high = spans[number]
        place_in_parts(hashes[low:high], low, shift, places[number], parted)

    spread(place, range(len(spans)), threads)
    return _Parts(parted, begins, bits)


def _first_rows(parts: _Parts, threads: int) -> Codes:
    """Return, for each row, the first row with its hash."""
    firsts = new_values(len(parts.rows.rows), np.int32)
    sizes = np.diff(parts.begins)
    most = 1 << _entry_bits(int(sizes.max()))

    def find(span: tuple[int, int]) -> None:
        hashes, rows = np.empty(most, np.uint64), np.empty(most, np.int32)
        for part in range(*span):
            bits = _entry_bits(int(sizes[part]))
            table = HashedRows(hashes[: 1 << bits], rows[: 1 << bits])
            own = slice(*parts.begins[part : part + 2])
            shift = np.uint64(64 - parts.bits - bits)
            find_firsts(parts.rows.hashes[own], parts.rows.rows[own], shift, table, firsts)

    spread(find, slices(1 << parts.bits, threads), threads)
    return firsts


def _entry_bits(rows: int) -> int:
    """Return the bits of an entry in a table for so many rows: a text that many rows have makes one part large, not all."""
    return rows.bit_length() + 1
