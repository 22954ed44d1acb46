"""Hash the values that rows of partial matches hold in chosen columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel
from gpu_cep_kernels.rules.scalars import mix_hash
from gpu_cep_kernels.rules.tables import Flags, Ints, Places


class PartialMatches(NamedTuple):
    """Hold partial matches, one per row r.

    - events[place, r]: its events.
    - first[r], last[r]: the first and the last of them.
    """

    events: Places
    first: Places
    last: Places


class HashKeys(NamedTuple):
    """Say which values of a row are hashed; k is one.

    - place[k]: the place of its event in the row.
    - column[k]: its column in the bank's matrix.
    - floating[k]: whether that is the float64, not the int64, matrix.
    """

    place: Ints
    column: Ints
    floating: Flags


@kernel(writes=("buckets",))
def hash_rows(
    low: int, high: int, table: PartialMatches, keys: HashKeys, ints: Ints, float_bits: Ints, base: int, mask: int, buckets: Ints
) -> None:
    """``buckets[r]``: the hash of the values of row r, at most `mask`, a power of two less one.

    Event e stands in row ``base + e`` of the columns.
    """
    for r in range(low, high):
        found = np.uint64(0)
        for k in range(keys.place.size):
            row = base + table.events[keys.place[k], r]
            value = float_bits[keys.column[k], row] if keys.floating[k] else ints[keys.column[k], row]
            found = mix_hash(found, value)
        buckets[r] = found & np.uint64(mask)
