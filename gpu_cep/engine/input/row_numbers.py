"""Hold row numbers as runs of consecutive ones, which become an array only on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowRuns:
    """Row numbers in runs of consecutive ones: run r holds ``begins[r]``, ``begins[r] + 1``, …

    It ends before place ``ends[r]`` of the whole sequence, and is not empty.
    NumPy can read the numbers as an array of int64.
    """

    begins: Rows
    ends: Rows

    @classmethod
    def of(cls, begins: Rows, sizes: Rows) -> RowRuns:
        """Return runs by their first numbers and sizes.

        Empty runs are dropped, and runs that continue each other are joined.
        """
        held = np.flatnonzero(sizes)
        begins, ends = begins[held], np.cumsum(sizes[held])
        starts = ends - sizes[held]
        first = np.ones(len(held), np.bool_)
        first[1:] = np.diff(begins - starts) != 0
        return cls(begins[first], ends[np.append(np.flatnonzero(first)[1:] - 1, len(held) - 1)] if len(held) else ends)

    @property
    def sizes(self) -> Rows:
        """Return how many numbers each run has."""
        return np.diff(self.ends, prepend=0)

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Rows:
        starts = self.ends - self.sizes
        made = np.repeat(self.begins - starts, self.sizes) + np.arange(len(self))
        return made if dtype is None else made.astype(dtype)

    @overload
    def __getitem__(self, rows: slice) -> RowRuns: ...

    @overload
    def __getitem__(self, rows: npt.NDArray[np.bool_] | Rows) -> Rows: ...

    @overload
    def __getitem__(self, rows: int) -> np.int64: ...

    def __getitem__(self, rows: slice | npt.NDArray[np.bool_] | Rows | int) -> RowRuns | Rows | np.int64:
        """Return the numbers at some rows: those of a slice, which has no step, as runs."""
        if isinstance(rows, slice):
            return self._between(*rows.indices(len(self))[:2])
        places = np.flatnonzero(rows) if getattr(rows, "dtype", None) == np.bool_ else np.asarray(rows)
        runs = np.searchsorted(self.ends, places, side="right")
        found: Rows = (self.begins - self.ends + self.sizes)[runs] + places
        return found

    def _between(self, low: int, high: int) -> RowRuns:
        """Return the numbers of the rows [low, high)."""
        starts = np.clip(self.ends - self.sizes, low, max(low, high))
        sizes = np.clip(self.ends, low, max(low, high)) - starts
        return RowRuns.of(self.begins + starts - (self.ends - self.sizes), sizes)


RowNumbers: TypeAlias = Rows | RowRuns


def join_numbers(parts: Sequence[RowNumbers]) -> RowNumbers:
    """Return the numbers of all parts one after the other, as runs if a part has them.

    Then each number of the others is a run.
    """
    if not any(isinstance(part, RowRuns) for part in parts):
        return np.concatenate(parts)
    runs = [part if isinstance(part, RowRuns) else RowRuns.of(part, np.ones(len(part), np.int64)) for part in parts]
    return RowRuns.of(np.concatenate([each.begins for each in runs]), np.concatenate([each.sizes for each in runs]))


def take_numbers(numbers: RowNumbers, rows: pa.Array) -> pa.Array:
    """Return the numbers of rows, or of lists of rows; NULL stays NULL."""
    if pa.types.is_list(rows.type):
        return pa.ListArray.from_arrays(rows.offsets, take_numbers(numbers, rows.values), mask=rows.is_null())
    if not isinstance(numbers, RowRuns):
        return pa.array(numbers).take(rows)
    if rows.null_count == len(rows):
        return pa.nulls(len(rows), pa.int64())
    if not rows.null_count:
        return pa.array(numbers[rows.to_numpy()])
    return pa.array(numbers[rows.fill_null(0).to_numpy()], mask=rows.is_null().to_numpy(zero_copy_only=False))
