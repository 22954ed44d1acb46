"""Hashes of the values of rows: equal values are hashed alike, whatever their bits, and different ones apart."""

from __future__ import annotations

import numpy as np

from gpu_cep_kernels.matches.hashing import HashKeys, PartialMatches, hash_rows

EVERY_BIT = 2**63 - 1


def hashed(rows: list[list[float]]) -> list[int]:
    """The hash of each row of floats, with all bits but one."""
    values = np.array(rows).T.copy()
    width, size = values.shape
    events = np.tile(np.arange(size, dtype=np.int32), (width, 1))
    keys = HashKeys(np.arange(width), np.arange(width), np.ones(width, np.bool_))
    table, bits, buckets = PartialMatches(events, events[0], events[0]), values.view(np.int64), np.zeros(size, np.int64)
    hash_rows(0, size, table, keys, bits, bits, 0, EVERY_BIT, buckets)
    return buckets.tolist()


def test_zeros_of_both_signs_are_hashed_alike() -> None:
    for one, other in (([0.0], [-0.0]), ([1.5, 0.0], [1.5, -0.0]), ([0.0, 1.5], [-0.0, 1.5])):
        assert len(set(hashed([one, other]))) == 1


def test_others_are_hashed_apart() -> None:
    values = [0.0, 1.0, -1.0, 0.5, 5e-324, 1e308]
    rows = [[one, other] for one in values for other in values]
    assert len(set(hashed(rows))) == len(rows)
