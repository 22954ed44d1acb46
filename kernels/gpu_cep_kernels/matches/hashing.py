"""Hashes of the values that rows of partial matches hold in chosen columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel
from gpu_cep_kernels.rules.scalars import mix_hash
from gpu_cep_kernels.rules.tables import Flags, Ints, Places


class PartialMatches(NamedTuple):
    """Partial matches: row r has the events ``events[place, r]``, of which ``first[r]`` and ``last[r]`` are the first and the last."""

    events: Places
    first: Places
    last: Places


class HashKeys(NamedTuple):
    """What is hashed of a row: the values at ``place[k]`` in ``column[k]`` of the bank's int64 or, if ``floating[k]``, float64 columns."""

    place: Ints
    column: Ints
    floating: Flags


@kernel(writes=("buckets",))
def hash_rows(
    low: int, high: int, table: PartialMatches, keys: HashKeys, ints: Ints, float_bits: Ints, base: int, mask: int, buckets: Ints
) -> None:
    """``buckets[r]``, at most `mask`: the hash of the values of row r; event e stands in row ``base + e`` of the columns."""
    for r in range(low, high):
        found = np.uint64(0)
        for k in range(keys.place.size):
            row = base + table.events[keys.place[k], r]
            value = float_bits[keys.column[k], row] if keys.floating[k] else ints[keys.column[k], row]
            found = mix_hash(found, value)
        buckets[r] = found & np.uint64(mask)
