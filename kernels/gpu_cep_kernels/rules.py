"""The scalar rules: each piece of per-value semantics, once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.jit import rule

EQ, NE, LT, LE, GT, GE = range(6)
COMPARISONS = {"eq": EQ, "ne": NE, "lt": LT, "le": LE, "gt": GT, "ge": GE}

UNBOUNDED = np.iinfo(np.int64).max


@rule
def compare(comparison: int, left: Any, right: Any) -> bool:
    """``left φ right`` for two values of one type; NaN compares as in IEEE 754."""
    if comparison == EQ:
        return left == right  # type: ignore[no-any-return]
    if comparison == NE:
        return left != right  # type: ignore[no-any-return]
    if comparison == LT:
        return left < right  # type: ignore[no-any-return]
    if comparison == LE:
        return left <= right  # type: ignore[no-any-return]
    if comparison == GT:
        return left > right  # type: ignore[no-any-return]
    return left >= right  # type: ignore[no-any-return]


@rule
def bit(variable: int) -> np.uint64:
    """The label bit of a variable."""
    return np.uint64(1) << np.uint64(variable)


@rule
def following(after: Any, event: int) -> int:
    """The first event that `event` is before.

    `after` holds it for each event where ties are strict and do occur; it is
    empty where the next event in the stream will do.
    """
    return int(after[event]) if after.size else event + 1


@rule
def within(first: Any, last: Any, length: Any) -> bool:
    """The time window test, for float64 or for integer times seen as uint64, whose difference cannot overflow as first ≤ last."""
    return last - first <= length  # type: ignore[no-any-return]
