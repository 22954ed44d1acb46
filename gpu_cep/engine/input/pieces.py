"""Hold a column as the arrays of its chunks, so that what reads some of its rows needs no copy of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.machine_values import Array
from gpu_cep.records import record

# Rows per piece on average below which a copy of the column costs less than a call of a kernel for each piece.
FEWEST_ROWS = 1 << 15


@record(slots=False)
class Pieces:
    """A column, piece by piece: ``arrays[p]`` has the rows from ``begins[p]`` to before ``begins[p + 1]``.

    There is one piece at least, and if there are several, none is empty. All have one dtype.
    """

    arrays: tuple[Array, ...]
    begins: tuple[int, ...]

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> Pieces:
        """Return the column whose rows are those of the arrays, one after the other."""
        held = arrays if len(arrays) == 1 else [array for array in arrays if len(array)] or arrays[:1]
        if len(held) == 1:
            return cls((held[0],), (0, len(held[0])))
        return cls(tuple(held), tuple(accumulate(map(len, held), initial=0)))

    def __len__(self) -> int:
        return self.begins[-1]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Return the type of the values."""
        return self.arrays[0].dtype

    def astype(self, kind: npt.DTypeLike) -> Pieces:
        """Return the column with values of another type; it is not copied if it has them already."""
        return self if self.dtype == kind else Pieces(tuple(array.astype(kind) for array in self.arrays), self.begins)

    @cached_property
    def whole(self) -> Array:
        """Return the column as one array; it is a copy if there are several pieces."""
        return self.arrays[0] if len(self.arrays) == 1 else np.concatenate(self.arrays)

    def cut(self, rows: Array) -> Iterator[tuple[slice, int, Array]]:
        """Yield, for each piece with some of the ascending `rows`, which of them, the piece's first row, and the piece."""
        if len(self.arrays) == 1:
            yield slice(0, len(rows)), 0, self.arrays[0]
            return
        # in the type of the rows, which would be copied else
        places = np.searchsorted(rows, np.array(self.begins, rows.dtype)).tolist()
        for piece, (array, begin) in enumerate(zip(self.arrays, self.begins, strict=False)):
            if places[piece] < places[piece + 1]:
                yield slice(places[piece], places[piece + 1]), begin, array

    def at(self, rows: Array) -> Array:
        """Return the values at the ascending `rows`."""
        if len(self.arrays) == 1:
            return self.arrays[0][rows]
        return np.concatenate([self.arrays[0][:0], *(piece[rows[own] - begin] for own, begin, piece in self.cut(rows))])

    def at_any(self, rows: Array) -> Array:
        """Return the values at `rows` in any order; pieces are not joined for these."""
        order, values = np.argsort(rows), np.empty(len(rows), self.dtype)
        values[order] = self.at(rows[order])
        return values

    def between(self, low: int, high: int) -> Array:
        """Return the values of the rows [low, high); a copy if they are in several pieces."""
        parts = self.parts(low, high)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else self.arrays[0][:0]

    def parts(self, low: int, high: int) -> list[Array]:
        """Return the values of the rows [low, high), one array for each piece with some of them."""
        first = bisect_right(self.begins, low) - 1
        parts = []
        while low < high:
            begin, end = self.begins[first], min(high, self.begins[first + 1])
            parts.append(self.arrays[first][low - begin : end - begin])
            low, first = end, first + 1
        return parts
