"""Build the hash table of constants that text is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.phase_one.text import FIELDS, FREE, place_constants

# Slots per constant: at least _SPARSE. To spare probes up to _SPARSEST, but then _CACHED in all, to fit the second-level cache.
_SPARSE, _SPARSEST, _CACHED = 4, 32, 1 << 13
# Whole texts are hashed if more constants than this have one length and the same ends.
_ALIKE = 4


class ConstantTable(NamedTuple):
    """Hold distinct constants in a hash table with open addressing; k is the number of one, s a slot.

    - text[offsets[k]:offsets[k + 1]]: the bytes of constant k.
    - entries[4 * s : 4 * s + 4]: the first word, the last word, the length and the
      number of the constant in slot s. A free slot has an impossible length. One
      entry more stands for no constant: its number is the count of constants.
    - shift: a hash shifted right by this, with the two lowest bits cleared, is
      where in `entries` a search begins.
    - probes: how many slots a search looks at, from there on.
    - longest: the length of the longest constant.
    - whole: whether a hash depends on the whole text, or on its length and ends only.
    """

    offsets: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]
    entries: npt.NDArray[np.uint64]
    shift: np.uint64
    probes: int
    longest: int
    whole: bool


def constant_table(constants: Sequence[bytes]) -> ConstantTable:
    """Return the hash table of distinct constants: of several sizes the smallest with the fewest probes."""
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
