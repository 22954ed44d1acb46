"""Turn the columns of ORDER BY into numbers that ascend as the clause says, NULLs and descending columns included."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.row_patterns.bound import SortColumn
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.stream_keys import text_ranks
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array

_LIMITS = np.iinfo(np.int64)
_SIGN = np.int64(63)


def sort_codes(columns: EventColumns, key: SortColumn) -> Array:
    """Return an int64 or float64 for each row; rows that ORDER BY puts earlier have lesser ones, and equal rows equal ones.

    NaN is greater than all numbers, and the zeros are equal.
    """
    nulls = columns.null_mask(key.column)
    values = _ranks(columns, key.column) if columns.type(key.column).kind is Kind.STRING else columns.key_values(key.column)
    if values.dtype.kind == "f" and nulls is None and not key.descending and not np.isnan(values).any():
        return values.astype(np.float64, copy=False)
    codes = _bits(values) if values.dtype.kind == "f" else values.astype(np.int64, copy=False)
    codes = ~codes if key.descending else codes
    return codes if nulls is None else _with_nulls(codes, nulls, key.nulls_first)


def _ranks(columns: EventColumns, column: int) -> Indices:
    text = columns.texts.codes(column)
    ranks: Indices = text_ranks(text.values)[text.codes].astype(np.int64)
    return ranks


def _bits(values: Array) -> Indices:
    """Return integers in the order of floats."""
    bits = np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.int64)
    ordered: Indices = bits ^ ((bits >> _SIGN) & _LIMITS.max)
    return ordered


def _with_nulls(codes: Indices, nulls: npt.NDArray[np.bool_], first: bool) -> Indices:
    """Return codes with those of NULLs before or behind all others."""
    present = codes[~nulls]
    stand_in = _LIMITS.min if first else _LIMITS.max
    if len(present) and stand_in in (present.min(), present.max()):
        _, ranks = np.unique(codes, return_inverse=True)
        codes, stand_in = ranks.astype(np.int64), -1 if first else len(codes)
    return np.where(nulls, np.int64(stand_in), codes)
