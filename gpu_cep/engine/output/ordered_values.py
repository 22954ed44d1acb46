"""Offer values of columns in the order of events, so that results need not gather them from all rows of the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.plan.event_plan import Plan

# By column, the 64 bits of its value at each ordered event.
OrderedValues: TypeAlias = Mapping[int, Indices]


def ordered_values(plan: Plan, columns: EventColumns, ordered: OrderedEvents) -> OrderedValues:
    """Return the columns that lie in the order of events, if a result has values of matches: times, and what conditions read.

    These are columns of the host that have 64 bits in results, too, and no NULLs.
    """
    if plan.settings.output != "matches":
        return {}
    schema, length = columns.schema, len(ordered.rows)
    return {
        column: values.view(np.int64)
        for column, values in _columns(plan, ordered)
        if column < len(schema)
        and len(values) == length
        and _has_64_bits(schema.field(column).type, values)
        and columns.resident(column) is None
        and columns.null_count(column) == 0
    }


def _columns(plan: Plan, ordered: OrderedEvents) -> Iterator[tuple[int, Array]]:
    """Yield the ordered columns with their values."""
    yield plan.query.timestamp, ordered.times
    yield from zip(plan.layout.ints, ordered.bank.ints, strict=False)
    yield from zip(plan.layout.floats, ordered.bank.floats, strict=False)


def _has_64_bits(kind: pa.DataType, values: Array) -> bool:
    """Return whether values of an Arrow type lie in memory as they do in `values`, bit by bit."""
    if values.dtype.kind == "f":
        return bool(pa.types.is_float64(kind) and values.dtype.itemsize == 8)
    return bool(pa.types.is_int64(kind) or pa.types.is_timestamp(kind))
