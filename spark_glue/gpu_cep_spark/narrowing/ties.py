"""Choose the columns that order events of equal time: rows of a DataFrame have no position."""

from __future__ import annotations

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.coercion import MAX_DIGITS
from gpu_cep.analysis.types import DataType, Kind


def tie_breakers(query: BoundQuery, read: tuple[int, ...]) -> tuple[int, ...]:
    """Return the columns that order a stream's events of equal time alike under any partitioning.

    These are `order_by`, then all other columns that are `read` and have an order.
    """
    settled = {query.timestamp, *query.partition_by, *query.order_by}
    rest = tuple(column for column in read if column not in settled and has_order(query.schema.attributes[column].type))
    return query.order_by + rest


def has_order(data_type: DataType) -> bool:
    """Return whether values of a type can be ordered."""
    return data_type.kind not in (Kind.OTHER, Kind.NULL) and data_type.precision <= MAX_DIGITS
