"""State the rules for single values, each once: comparing, hashing, integer arithmetic, label bits, windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule

EQ, NE, LT, LE, GT, GE = range(6)
COMPARISONS = {"eq": EQ, "ne": NE, "lt": LT, "le": LE, "gt": GT, "ge": GE}

# An odd number whose bits look random: the golden ratio as a fraction of 64 bits.
SPREAD = np.uint64(0x9E3779B97F4A7C15)

# Bits of the widest label word: in labels [word, event], word k has the bits of the variables from LABEL_BITS * k on.
LABEL_BITS = 64

UNBOUNDED = np.iinfo(np.int64).max
MINIMUM_INT = np.iinfo(np.int64).min


@rule
def compare(comparison: int, left: Any, right: Any) -> bool:
    """Return whether ``left φ right``, for two values of one type; NaN compares as in IEEE 754."""
    if comparison == EQ:
        return left == right
    if comparison == NE:
        return left != right
    if comparison == LT:
        return left < right
    if comparison == LE:
        return left <= right
    if comparison == GT:
        return left > right
    return left >= right


@rule
def mix_hash(before: np.uint64, bits: int) -> np.uint64:
    """Mix one more value, given by its bits, into the hash `before`.

    Equal values have equal hashes: the bits of −0.0, which are those of the
    least int64, count as zero.
    """
    mixed = (before ^ (np.uint64(0) if bits == MINIMUM_INT else np.uint64(bits))) * SPREAD
    return mixed ^ (mixed >> np.uint64(32))


@rule
def mirror_comparison(comparison: int) -> int:
    """Return the comparison that holds for swapped operands: ψ with ``right ψ left`` = ``left φ right``."""
    if comparison == LT:
        return GT
    if comparison == LE:
        return GE
    if comparison == GT:
        return LT
    return LE if comparison == GE else comparison


# unsigned arithmetic, since numba lets LLVM assume that signed numbers never overflow, and drop a test for it


@rule
def add_ints(left: int, right: int) -> tuple[int, bool]:
    """Return ``left + right`` in 64 bits, and whether it overflowed."""
    total = np.int64(np.uint64(left) + np.uint64(right))
    return total, ((left ^ total) & (right ^ total)) < 0  # type: ignore[return-value]


@rule
def subtract_ints(left: int, right: int) -> tuple[int, bool]:
    """Return ``left - right`` in 64 bits, and whether it overflowed."""
    difference = np.int64(np.uint64(left) - np.uint64(right))
    return difference, ((left ^ right) & (left ^ difference)) < 0  # type: ignore[return-value]


@rule
def multiply_ints(left: int, right: int) -> tuple[int, bool]:
    """Return ``left * right`` in 64 bits, and whether it overflowed."""
    product = np.int64(np.uint64(left) * np.uint64(right))
    overflowed = (left == -1 and right == MINIMUM_INT) or (left != 0 and left != -1 and product // left != right)
    return product, overflowed  # type: ignore[return-value]


@rule
def bit(variable: int) -> np.uint64:
    """Return the label word in which only the bit of `variable` is set."""
    return np.uint64(1) << np.uint64(variable)


@rule
def count_bits(word: Any) -> int:
    """Return how many bits of a 64-bit word are set."""
    pairs = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    fours = (pairs & np.uint64(0x3333333333333333)) + ((pairs >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bytewise = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bytewise * np.uint64(0x0101010101010101)) >> np.uint64(56))


@rule
def lowest_bit(word: Any) -> int:
    """Return the number of the lowest bit of a uint64 that is set, from 0; 64 if none is."""
    return count_bits((word - np.uint64(1)) & ~word)


@rule
def is_labelled(event: int, variable: int, labels: Any) -> bool:
    """Return whether the event satisfies the properties of a variable."""
    return (labels[variable // LABEL_BITS, event] & bit(variable % LABEL_BITS)) != 0


@rule
def within(first: Any, last: Any, length: Any) -> bool:
    """Return whether two times, ``first <= last``, are at most `length` apart.

    Times are float64, or integers seen as uint64, whose difference cannot overflow.
    The first test is for two infinities, whose difference is NaN.
    """
    return (last == first) | (last - first <= length)
