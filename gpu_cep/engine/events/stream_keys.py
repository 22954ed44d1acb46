"""Encode stream keys: one small integer per event for the values of its key columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.matches import Indices, Rows
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.event_columns import FEW_OF_MANY, EventColumns
from gpu_cep.engine.input.few_texts import FewTexts
from gpu_cep.engine.input.machine_values import Array, dense_rank, distinct_codes
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.input.text_codes import ascends
from gpu_cep.engine.lowering.text_predicates import Values
from gpu_cep.records import record
from gpu_cep_kernels.phase_one.distinct import count_marked, mark_distinct, number_distinct

# A direct code (value − smallest) may take this many times as many streams as there are events.
SPARSE = 4
_ROOM = 1 << 16
# Pairs are numbered by a bit for each that there may be, up to so many bits for each event; beyond, they are sorted.
_BITS = 64
# Up to so many keys are sorted before streams are formed; if there are more, only those with matches are, at the end.
RANKED = 1 << 16
# Of more than a few keys only those are, which have so many events each on average: sorting fewer matches costs less than ranking.
_EVENTS_OF_RANKED, _FEW = 64, 1 << 10


@record()
class StreamKeys:
    """The stream of each row, as a code.

    ``codes[row]`` is in ``[0, count)``; some codes may be unused. `codes` is None if all events are
    one stream, and so are `pieces`, the same codes as the column came. ``ranks[code]`` ascends with the
    keys, NULL first and NaN last. `ranks` is None if the order is not known. `ascends`: whether codes are
    known to ascend with the keys.
    """

    pieces: Pieces | None
    count: int
    ranks: Indices | None
    ascends: bool = False

    @property
    def codes(self) -> Array | None:
        """Return the code of each row."""
        return None if self.pieces is None else self.pieces.whole

    @property
    def order(self) -> Indices:
        """Return the codes in the order of their keys.

        The result is empty if codes ascend with the keys, or if the order is not known.
        """
        if self.ranks is None or self.ascends:
            return np.empty(0, np.int64)
        return self.ranks.argsort(kind="stable")


def encode_keys(columns: EventColumns, keys: tuple[int, ...]) -> StreamKeys:
    """Return a stream code for each combination of values in the key columns.

    NULLs are one key value, and so are NaNs.
    """
    return columns.once("stream keys", keys, lambda: _encode_columns(columns, keys))


def encode_keys_of_rows(columns: EventColumns, keys: tuple[int, ...], parts: Sequence[Rows]) -> StreamKeys:
    """Return stream codes for the rows of all `parts`, which ascend; those of other rows are arbitrary.

    Only a single key of text with many distinct values is encoded at these rows alone, if they are few.
    """
    unread = columns.texts.many_unread(keys[0]) if _are_few_texts(columns, keys, parts) else None
    if unread is None:
        return encode_keys(columns, keys)
    rows = np.concatenate(parts)
    found = columns.texts.at(unread, rows)
    codes = new_values(len(columns), np.int32)
    codes[rows] = found.codes
    return _of_texts(Pieces.of([codes]), found.values, len(columns), None)


def _are_few_texts(columns: EventColumns, keys: tuple[int, ...], parts: Sequence[Rows]) -> bool:
    """Return whether the key is a single column of text, and the parts have few of all rows."""
    return len(keys) == 1 and columns.type(keys[0]).kind is Kind.STRING and sum(map(len, parts)) * FEW_OF_MANY <= len(columns)


def _encode_columns(columns: EventColumns, keys: tuple[int, ...]) -> StreamKeys:
    if not keys:
        return StreamKeys(None, 1, np.zeros(1, np.int64), ascends=True)
    encoded = _encode_column(columns, keys[0])
    for column in keys[1:]:
        encoded = _combine(encoded, _encode_column(columns, column), len(columns))
    return encoded


def _encode_column(columns: EventColumns, column: int) -> StreamKeys:
    """Return codes for one key column."""
    if columns.type(column).kind is Kind.STRING:
        codes, distinct = columns.texts.code_pieces(column)
        return _of_texts(codes, distinct, len(columns), columns.texts.few_texts(column, distinct))
    values = columns.key_values(column)
    if values.dtype.kind == "f" or not len(values):
        return _by_dictionary(columns, column)
    low, high = int(values.min()), int(values.max())
    if high - low >= SPARSE * len(values) + _ROOM:
        return _by_dictionary(columns, column)
    codes, count = shift_codes(np, values, low, high, columns.null_mask(column))
    return StreamKeys(Pieces.of([codes]), count, np.arange(count), ascends=True)


def _of_texts(codes: Pieces, distinct: Values, events: int, few: FewTexts | None) -> StreamKeys:
    """Return codes of text, of which the last one is NULL's, as stream codes of so many events; `few` as for :func:`ascends`."""
    count = len(distinct) + 1
    ranked = _are_ranked(count, events) or ascends(distinct, few)
    return StreamKeys(codes, count, text_ranks(distinct, few) if ranked else None)


def text_ranks(values: Values, few: FewTexts | None = None) -> Indices:
    """Return the rank of each of a dictionary's values and, last, of NULL, which comes first; `few` as for :func:`ascends`."""
    ranks = np.arange(1, len(values) + 2)
    if not ascends(values, few):
        ranks[:-1] = dense_rank(values) + 1
    ranks[-1] = 0
    return ranks


def shift_codes(xp: Any, values: Any, low: int, high: int, nulls: Any) -> tuple[Any, int]:
    """Return int32 codes for integers from `low` to `high`, in their order, and the number of codes.

    `nulls` says where NULLs are (None: nowhere); these have the code 0. Arrays are of the module
    `xp`.
    """
    count = high - low + 1
    if nulls is None and low == 0 and values.dtype == xp.int32:
        return values, count
    codes = (values - values.dtype.type(low)).astype(xp.int32)
    return (codes, count) if nulls is None else (xp.where(nulls, xp.int32(0), codes + xp.int32(1)), count + 1)


def _by_dictionary(columns: EventColumns, column: int) -> StreamKeys:
    """Return codes for the distinct values of a column; NULL is one value, and so is NaN."""
    codes, values = distinct_codes(columns.key_values(column), columns.null_mask(column))
    ranked = _are_ranked(len(values), len(columns))
    return StreamKeys(Pieces.of([codes]), len(values), dense_rank(values) if ranked else None)


def _are_ranked(keys: int, events: int) -> bool:
    """Return whether so many keys of so many events are ranked before streams are formed."""
    return keys <= min(RANKED, max(_FEW, events // _EVENTS_OF_RANKED))


def _combine(left: StreamKeys, right: StreamKeys, length: int) -> StreamKeys:
    """Return codes for the pairs of two columns."""
    assert left.codes is not None, "a column's keys have codes"
    assert right.codes is not None, "a column's keys have codes"
    largest = SPARSE * length + _ROOM
    if largest <= left.count * right.count < _BITS * length:
        pairs = left.codes.astype(np.int64) * right.count + right.codes
        codes, marks, count = _number_pairs(pairs, left.count * right.count)
        ascends = left.ascends and right.ascends
        ranks = np.arange(count) if ascends else _combined_ranks(left, right, _marked(marks))
        return StreamKeys(Pieces.of([codes]), count, ranks, ascends)
    codes, count, distinct = combine_codes(np, left.codes, right.codes, left.count, right.count, largest)
    ranks = _combined_ranks(left, right, np.arange(count) if distinct is None else distinct)
    return StreamKeys(Pieces.of([codes.astype(np.int32)]), count, ranks, left.ascends and right.ascends)


def _number_pairs(pairs: Indices, most: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64], int]:
    """Return a code for each of some pairs, a bit for each pair that occurs, and how many do; codes ascend with the pairs.

    Pairs are below `most`.
    """
    words = most // 64 + 1
    marks, before, codes = np.zeros(words, np.uint64), np.empty(words, np.int64), np.empty(len(pairs), np.int32)
    mark_distinct(pairs, marks)
    count = count_marked(marks, before)
    number_distinct(0, len(pairs), pairs, marks, before, codes)
    return codes, marks, count


def _marked(marks: npt.NDArray[np.uint64]) -> Indices:
    """Return the numbers of the bits that are set, ascending."""
    return np.flatnonzero(np.unpackbits(marks.view(np.uint8), bitorder="little"))


def combine_codes(xp: Any, left: Any, right: Any, left_count: int, right_count: int, largest: int) -> tuple[Any, int, Any]:
    """Return a code for each pair of codes, in the order of pairs, and the number of codes.

    ``left * right_count + right`` is the number of a pair. If there are fewer than `largest`
    numbers, codes are these numbers, and the third result is None. Else the pairs that occur are
    numbered. The third result is then the pair of each code. Arrays are of the module `xp`.
    """
    pairs, count = left.astype(xp.int64) * right_count + right, left_count * right_count
    if count < largest:
        return pairs, count, None
    distinct, codes = xp.unique(pairs, return_inverse=True)
    return codes, len(distinct), distinct


def _combined_ranks(left: StreamKeys, right: StreamKeys, codes: Indices) -> Indices | None:
    """Return the rank of each pair; None if that of a column is not known."""
    if left.ranks is None or right.ranks is None:
        return None
    first, second = np.divmod(codes, right.count)
    ranks: Indices = left.ranks[first] * (int(right.ranks.max(initial=0)) + 1) + right.ranks[second]
    return ranks
