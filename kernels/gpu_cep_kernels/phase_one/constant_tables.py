"""Constants that text is compared with, as kernels read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.phase_one.text import FIELDS, FREE, place_constants

# Slots for each constant: the fewest, and the most as long as the table is small enough for a cache of the second level.
_SPARSE, _SPARSEST, _CACHED = 4, 32, 1 << 13
# So many constants of one length with the same ends stand side by side before whole texts are hashed.
_ALIKE = 4


class ConstantTable(NamedTuple):
    """Distinct constants: ``text[offsets[k]:offsets[k + 1]]`` is that of number k.

    ``entries[4 * s : 4 * s + 4]`` are the first word, the last word, the length
    and the number of the constant in slot s; a free slot has an impossible
    length, and so has one more entry, whose number is the count of constants.
    A constant stands in one of `probes` slots from that of its hash on, which
    the highest bits of the hash number: shifted right by `shift`, they stand
    above two others. `longest` is the length of the longest. With `whole` the
    hash of a text depends on all of it, else on its length and ends.
    """

    offsets: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]
    entries: npt.NDArray[np.uint64]
    shift: np.uint64
    probes: int
    longest: int
    whole: bool


def constant_table(constants: Sequence[bytes]) -> ConstantTable:
    """Return the table of distinct constants: of several sizes the smallest with the fewest probes."""
    offsets = np.cumsum([0, *map(len, constants)], dtype=np.int64)
    text = np.frombuffer(bytearray().join(constants), np.uint8)
    longest = max(map(len, constants), default=0)
    alike = Counter((len(constant), constant[:8], constant[-8:]) for constant in constants)
    whole = max(alike.values(), default=0) > _ALIKE
    bits = max(1, (_SPARSE * len(constants)).bit_length())
    tables: list[ConstantTable] = []
    while not tables or (tables[-1].probes > 1 and 1 << bits <= min(_SPARSEST * len(constants), _CACHED)):
        entries = np.full(FIELDS * ((1 << bits) + 1), FREE)
        entries[-1] = len(constants)
        table = ConstantTable(offsets, text, entries, np.uint64(62 - bits), 0, longest, whole)
        tables.append(table._replace(probes=place_constants(table)))
        bits += 1
    return min(tables, key=attrgetter("probes"))
