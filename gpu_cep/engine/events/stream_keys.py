"""Stream keys: one small integer per event for the values of its key columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.event_columns import Array, EventColumns, dense_rank
from gpu_cep.engine.lowering.text_predicates import Values

# A direct code (value − smallest) may take this many times as many streams as there are events.
SPARSE = 4
_ROOM = 1 << 16
# Up to so many keys are ranked before their streams are laid out; of more, only those with matches are, at the end.
RANKED = 1 << 16

Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StreamKeys:
    """``codes[row]`` in ``[0, count)`` (some may be unused); None where all events are one stream.

    ``ranks[code]`` ascends with the keys, NULL first and NaN last; None where it is not known.
    """

    codes: Array | None
    count: int
    ranks: Ranks | None

    @property
    def order(self) -> Ranks:
        """The codes in the order of their keys; empty where they are in that order, or it is not known."""
        if self.ranks is None or bool((np.diff(self.ranks) > 0).all()):
            return np.empty(0, np.int64)
        return np.argsort(self.ranks, kind="stable")


def encode_keys(columns: EventColumns, keys: tuple[int, ...]) -> StreamKeys:
    """Codes for the combination of the key columns; NULLs are one key value, and so are NaNs."""
    encoded = StreamKeys(None, 1, np.zeros(1, np.int64))
    for column in keys:
        encoded = _combine(encoded, _encode_column(columns, column), len(columns))
    return encoded


def _encode_column(columns: EventColumns, column: int) -> StreamKeys:
    if columns.type(column).kind is Kind.STRING:
        text = columns.text(column)
        count = len(text.values) + 1
        # the last code is NULL's
        return StreamKeys(text.codes, count, text_ranks(text.values) if count <= RANKED else None)
    values = columns.key_values(column)
    if values.dtype.kind == "f" or not len(values):
        return _by_dictionary(columns, column)
    low, high = int(values.min()), int(values.max())
    if high - low >= SPARSE * len(values) + _ROOM:
        return _by_dictionary(columns, column)
    codes, count = _shifted(values, low), high - low + 1
    nulls = columns.null_mask(column)
    if nulls is not None:
        codes, count = codes + np.int32(1), count + 1
        codes[nulls] = 0
    return StreamKeys(codes, count, np.arange(count))


def text_ranks(values: Values) -> Ranks:
    """The rank of each of a dictionary's values and, last, of NULL, which comes first."""
    return np.append(dense_rank(values) + 1, 0)


def _shifted(values: Array, low: int) -> npt.NDArray[np.int32]:
    if low == 0 and values.dtype == np.int32:
        return values
    shifted: npt.NDArray[np.int32] = (values - values.dtype.type(low)).astype(np.int32)
    return shifted


def _by_dictionary(columns: EventColumns, column: int) -> StreamKeys:
    codes, values = columns.distinct_codes(column)
    return StreamKeys(codes, len(values), dense_rank(values) if len(values) <= RANKED else None)


def _combine(left: StreamKeys, right: StreamKeys, length: int) -> StreamKeys:
    if left.codes is None or right.codes is None:
        return right if left.codes is None else left
    count = left.count * right.count
    codes = left.codes.astype(np.int64) * right.count + right.codes
    if count < SPARSE * length + _ROOM:
        return StreamKeys(codes.astype(np.int32), count, _combined_ranks(left, right, np.arange(count)))
    distinct, dense = np.unique(codes, return_inverse=True)
    return StreamKeys(dense.astype(np.int32), len(distinct), _combined_ranks(left, right, distinct))


def _combined_ranks(left: StreamKeys, right: StreamKeys, codes: Ranks) -> Ranks | None:
    if left.ranks is None or right.ranks is None:
        return None
    first, second = np.divmod(codes, right.count)
    ranks: Ranks = left.ranks[first] * (int(right.ranks.max(initial=0)) + 1) + right.ranks[second]
    return ranks
