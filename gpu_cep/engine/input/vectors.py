"""Read fixed-size lists of numbers for corr, with the mean of each list subtracted.

corr is then an inner product. All sums run in the order of positions, one operation after the
other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.machine_values import Flags

Floats = npt.NDArray[np.float64]


@np.errstate(invalid="ignore", over="ignore")
def centre_lists(array: pa.FixedSizeListArray) -> Floats:
    """Return each list with its mean subtracted, as [row, position].

    A list that is NULL, or has a NULL, becomes zeros.
    """
    values, missing = _numbers(array)
    values -= (_sums(values) / values.shape[1])[:, None]
    values[missing] = 0.0
    return values


@np.errstate(invalid="ignore", over="ignore")
def variation(array: pa.FixedSizeListArray) -> pa.Array:
    """Return the sum of squares of each list after its mean is subtracted.

    It is NULL if the list is, if one of its numbers is, or if all its numbers are equal.
    """
    values, missing = _numbers(array)
    # the mean of equal numbers need not be that number
    constant = (values == values[:, :1]).all(axis=1)
    differences = centre_lists(array)
    return pa.array(_sums(differences * differences), mask=missing | constant)


def stack_lists(columns: Sequence[Floats], length: int) -> Floats:
    """Return columns of lists as one array [column, row, position], filled up with zeros."""
    width = max((column.shape[1] for column in columns), default=0)
    stacked = np.zeros((len(columns), length, width))
    for place, column in zip(stacked, columns, strict=True):
        place[:, : column.shape[1]] = column
    return stacked


def _numbers(array: pa.FixedSizeListArray) -> tuple[Floats, Flags]:
    """Return a copy of the numbers as [row, position], and which rows are NULL or have a NULL."""
    length = array.type.list_size
    # what stands under a NULL list counts as well here, and need not be NULL
    inner = array.values.slice(array.offset * length, len(array) * length).cast(pa.float64(), safe=False)
    values = np.array(inner.fill_null(0.0).to_numpy(zero_copy_only=False)).reshape(-1, length)
    missing = inner.is_null().to_numpy(zero_copy_only=False).reshape(-1, length).any(axis=1)
    return values, missing | array.is_null().to_numpy(zero_copy_only=False)


def _sums(values: Floats) -> Floats:
    """Return the sum of each row, from the first position to the last."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column
    return total
