"""Write property bit masks: one label word per event, with bit v set where it satisfies all properties of variable v.

A pattern with more variables than a word has bits has several words of labels.
The kernels here, and all that read labels, take one word at a time. Each kernel
clears the bits that one table of properties denies. The caller runs them chunk
by chunk, so that a chunk's labels stay in cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.phase_one.kept_rows import keep_rows
from gpu_cep_kernels.rules.scalars import EQ, GE, GT, LE, LT, NE, compare


@kernel(writes=("labels",))
def mask_by_code(low: int, high: int, codes: Any, table: Any, labels: Any) -> None:
    """Judge properties of a coded column: ``labels[e] &= table[codes[e]]``; the table holds a label word for each code."""
    for e in range(low, high):
        labels[e] &= table[codes[e]]


@kernel(writes=("labels",))
def mask_by_packed_code(low: int, high: int, codes: Any, entries: Any, bits: int, labels: Any) -> None:
    """Do as :func:`mask_by_code`, with a table packed into one uint64: the entry of code c begins at bit ``c * bits``.

    No label has a bit beyond the first `bits`. Nothing is looked up, so the loop is
    vectorised.
    """
    for e in range(low, high):
        labels[e] &= entries >> np.uint64(codes[e] * bits)


@rule
def _mask_where(comparison: int, low: int, high: int, column: Any, constant: Any, others: Any, labels: Any) -> None:
    """Judge one property by one comparison: where it fails, only the bits of `others` stay.

    Each label is written, so nothing branches on values, and the loop is vectorised.
    """
    for e in range(low, high):
        labels[e] = labels[e] if compare(comparison, column[e], constant) else labels[e] & others


@kernel(writes=("labels",))
def mask_by_comparison(low: int, high: int, column: Any, comparison: int, constant: Any, others: Any, labels: Any) -> None:
    """Judge the property ``column φ constant``: where it fails, only the bits of `others` may stay."""
    # a loop for each comparison, so that none tests which one it is for every event
    if comparison == EQ:
        _mask_where(EQ, low, high, column, constant, others, labels)
    elif comparison == NE:
        _mask_where(NE, low, high, column, constant, others, labels)
    elif comparison == LT:
        _mask_where(LT, low, high, column, constant, others, labels)
    elif comparison == LE:
        _mask_where(LE, low, high, column, constant, others, labels)
    elif comparison == GT:
        _mask_where(GT, low, high, column, constant, others, labels)
    else:
        _mask_where(GE, low, high, column, constant, others, labels)


@kernel(writes=("labels",))
def mask_by_truth(low: int, high: int, truth: Any, others: Any, labels: Any) -> None:
    """Apply a property that was decided before: where `truth` (uint8) is 0, only the bits of `others` may stay."""
    for e in range(low, high):
        labels[e] = labels[e] & others if truth[e] == 0 else labels[e]


@sequential(writes=("rows", "kept"))
def compact(low: int, marks: Any, labels: Any, keeps_all: bool, rows: Any, kept: Any) -> int:
    """Write the row numbers and labels of a block's events whose mark is not 0, or of all if `keeps_all`; return how many.

    `rows` needs spare slots as :func:`keep_rows` says.
    """
    count = keep_rows(low, marks, keeps_all, rows)
    for k in range(count):
        kept[k] = labels[rows[k] - low]
    return count
