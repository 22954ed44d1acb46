"""Read the timestamp column as numbers, and raise an error if one is NULL or NaN."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.input.event_columns import Array, EventColumns
from gpu_cep.errors import EventError


def load_times(columns: EventColumns, column: int) -> Array:
    """Return the timestamp column as int64 or float64.

    Raises
    ------
    EventError
        A timestamp is NULL or NaN.
    """
    refuse_missing(columns, column, "NULL", columns.arrow(column).null_count)
    values = columns.values(column)
    if values.dtype.kind == "i":
        return values.astype(np.int64, copy=False)
    refuse_missing(columns, column, "NaN", int(np.isnan(values).sum()))
    return values.astype(np.float64, copy=False)


def refuse_missing(columns: EventColumns, column: int, what: str, count: int) -> None:
    """Raise EventError if `count`, the number of timestamps that are `what` (NULL or NaN), is not 0."""
    if count:
        raise EventError(f"timestamp column {columns.name(column)!r} holds {count:,} {what}{'s' if count > 1 else ''}")
