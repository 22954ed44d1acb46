"""Sort the values of each binding, for the aggregates of RETURN that need them in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices, Rows


class SortedValues(NamedTuple):
    """Hold the values of each match that are not NULL, in ascending order; NaN comes last.

    The values of match m are ``values[offsets[m]:offsets[m + 1]]``.
    """

    values: npt.NDArray[Any]
    offsets: Indices


def sort_values(values: npt.NDArray[Any], nulls: npt.NDArray[np.bool_], offsets: Rows) -> SortedValues:
    """Return the sorted values of each match, from the values bound in one match after the other."""
    match = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[~nulls]
    present = values[~nulls]
    before = np.concatenate([[0], np.cumsum(~nulls)])
    return SortedValues(present[np.lexsort((present, match))], before[offsets])


def medians(given: SortedValues) -> npt.NDArray[np.float64]:
    """Return the middle value of each match as a float: of two middle ones their mean, NaN if one value is NaN.

    Where a match has no value, the result means nothing.
    """
    if not len(given.values):
        return np.zeros(len(given.offsets) - 1)
    first, last = given.offsets[:-1], given.offsets[1:] - 1
    values = given.values.astype(np.float64)
    low, high, greatest = (values[np.minimum(place, len(values) - 1)] for place in ((first + last) // 2, (first + last + 1) // 2, last))
    with np.errstate(all="ignore"):
        mean = (low + high) / 2
    # the sum of one value with itself may be infinite
    middle = np.where((last - first) % 2 == 0, low, mean)
    return np.where(np.isnan(greatest), greatest, middle)


def count_distinct(given: SortedValues) -> Indices:
    """Return the number of different values of each match; all NaN count as one."""
    values = given.values
    new = np.ones(len(values), np.int64)
    new[1:] = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    new[given.offsets[:-1][given.offsets[:-1] < len(values)]] = 1
    before = np.concatenate([[0], np.cumsum(new)])
    return np.diff(before[given.offsets])
