"""Compute by parallel primitives of an array module what the CPU does in one sequential pass.

`xp` is cupy, or numpy in its place. Arrays are its own, and not empty, since
CuPy cannot scan empty arrays. Where a sequential kernel gives the same result,
it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np

from gpu_cep_kernels.rules.scalars import LABEL_BITS

Array = Any  # of the array module


def label_flags(labels: Array, variable: int) -> Array:
    """Return 1 where an event's label has the variable's bit, else 0; the type is that of a label word."""
    word = labels.dtype.type
    return (labels[variable // LABEL_BITS] >> word(variable % LABEL_BITS)) & word(1)


def merged_words(labels: Array) -> Array:
    """Return a word per event that is 0 where its label has no bit; a single word is returned as it is."""
    return reduce(or_, labels)


def marked_events(labels: Array, variables: int) -> Array:
    """Return a word per event that is 0 where its label has none of the bits in `variables`, a mask."""
    word, most = labels.dtype.type, (1 << 8 * labels.dtype.itemsize) - 1
    wanted = [word(variables >> LABEL_BITS * k & most) for k in range(len(labels))]
    return merged_words([own & bits for own, bits in zip(labels, wanted, strict=True)])


def prefix_counts(xp: Any, labels: Array, variables: int) -> Array:
    """Return what :func:`gpu_cep_kernels.phase_one.window_conditions.prefix_counts` writes: int32 [variable, event + 1]."""
    counts = xp.zeros((variables, labels.shape[1] + 1), xp.int32)
    for v in range(variables):
        xp.cumsum(label_flags(labels, v), dtype=xp.int32, out=counts[v, 1:])
    return counts


def stream_numbers(xp: Any, borders: Array, size: int) -> Array:
    """Return as int32 the stream of each event; streams but the first begin at the events `borders`."""
    flags = xp.zeros(size, xp.int32)
    flags[borders] = 1
    return xp.cumsum(flags, dtype=xp.int32)


def words_overlap(labels: Array) -> bool:
    """Return whether some event's label has bits in two words."""
    return len(labels) > 1 and any_set((labels != 0).sum(axis=0) > 1)


def any_set(flags: Array) -> bool:
    """Return whether one of the flags (bool, or words with any bit set), which may be empty, is set.

    It is computed as their greatest byte. CuPy comes with that reduction compiled;
    it would compile ``any`` on the machine, twice for each order of size.
    """
    return bool(flags.size) and bool(flags.view(np.uint8).max())


def sum_as(kind: Any, values: Array) -> Array:
    """Return the sum of all values as a number of `kind`, an array of no dimension.

    They are converted first. CuPy comes with sums of one type compiled; one that converts on the way
    it would compile on the machine, in two parts that take more than a second each.
    """
    return values.astype(kind, copy=False).sum()


def covered_events(xp: Any, starts: Array, ends: Array, size: int) -> Array:
    """Return whether each event falls into a window [starts[w], ends[w]); both ascend."""
    flags = xp.zeros(size, xp.int32)
    flags[starts] = 1
    begun = xp.cumsum(flags, dtype=xp.int32)
    reach = xp.append(xp.zeros(1, ends.dtype), ends)
    return xp.arange(size, dtype=ends.dtype) < reach[begun]


def first_without(xp: Any, words: Array, bit: Any, until: Array) -> None:
    """Write what :func:`gpu_cep_kernels.labels_decide.runs.find_repeats` does."""
    size = words.size
    lacking = (words & bit) == 0
    ends = xp.append(xp.flatnonzero(lacking), xp.full(1, size, xp.int64))
    until[:size] = ends[xp.cumsum(lacking, dtype=xp.int64) - lacking]
    until[size:] = size


def entering_events(xp: Any, enters: Array, masks: Iterable[Any], own: int) -> Array:
    """Return the events that :func:`gpu_cep_kernels.labels_decide.runs.select_entering` writes."""
    masks = list(masks)
    size = min(own, enters.size - len(masks) + 1)
    if size <= 0:
        return xp.empty(0, xp.int64)
    return xp.flatnonzero(reduce(and_, ((enters[k : k + size] & mask) != 0 for k, mask in enumerate(masks))))


def events_in_ranges(xp: Any, first: Array, last: Array, size: int) -> Array:
    """Return whether each of `size` events lies in one of the ranges from ``first[m]`` to ``last[m]``, of which there is one at least."""
    begun, ended = xp.bincount(first, minlength=size + 1), xp.bincount(last + last.dtype.type(1), minlength=size + 1)
    return xp.cumsum(begun - ended, dtype=xp.int64)[:size] > 0


def paired_borders(xp: Any, streams: Array, opened: Array, closed: Array, names: int) -> tuple[Array, Array, list[int]]:
    """Return `opening`, `closing` and how many runs each name has.

    The first two are as :func:`gpu_cep_kernels.intervals.situations.pair_borders`
    writes them, with the borders in order of stream.
    """
    if not streams.size:
        return xp.empty(0, xp.int64), xp.empty(0, xp.int64), [0] * names
    order = stable_order(xp, [streams])
    opening = [order[_bearing(xp, opened[order], v)] for v in range(names)]
    closing = [order[_bearing(xp, closed[order], v)] for v in range(names)]
    return xp.concatenate(opening), xp.concatenate(closing), [int(own.size) for own in opening]


def _bearing(xp: Any, labels: Array, variable: int) -> Array:
    """Return the indices of the labels with the variable's bit; labels are one word each."""
    return xp.flatnonzero(label_flags(labels[None], variable))


def stable_order(xp: Any, keys: Sequence[Array]) -> Array:
    """Return the order by the first key, among equals by the second and so on, and then by place."""
    order = xp.argsort(keys[-1], kind="stable")
    for key in reversed(keys[:-1]):
        order = order[xp.argsort(key[order], kind="stable")]
    return order


def dense_codes(xp: Any, values: Array) -> tuple[Array, int]:
    """Return for each value an int64 code, and how many codes there are; codes ascend with the values."""
    distinct, codes = xp.unique(values, return_inverse=True)
    return codes.astype(xp.int64), int(distinct.size)
