"""Divide streams into buckets by a hash of their keys, for tasks that all read the same files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.key_hashes import hash_blocks
from gpu_cep.engine.input.event_columns import EventColumns

# The upper half of a hash is the better mixed one.
_UPPER = np.uint64(32)


class KeyBucket(NamedTuple):
    """The streams of part `number` if the range of hashes is cut into `of` equal ones."""

    number: int
    of: int


def rows_of_bucket(columns: EventColumns, keys: Sequence[int], bucket: KeyBucket) -> npt.NDArray[np.bool_]:
    """Return the rows whose streams, identified by the values of `keys`, are in a bucket: the same in every process."""
    found = np.empty(len(columns), np.bool_)
    for low, hashes in hash_blocks(columns, tuple(keys)):
        hashes >>= _UPPER
        # a product and a shift take far less than a division
        hashes *= np.uint64(bucket.of)
        hashes >>= _UPPER
        np.equal(hashes, bucket.number, out=found[low : low + len(hashes)])
    return found
