"""What gives the rows of a DataFrame, which have no position, one order under any partitioning."""

from __future__ import annotations

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.coercion import MAX_DIGITS
from gpu_cep.analysis.types import DataType, Kind


def tie_breakers(query: BoundQuery, read: tuple[int, ...]) -> tuple[int, ...]:
    """The columns that give the events of a stream one order under any partitioning: `order_by`, then the others that are read."""
    settled = {query.timestamp, *query.partition_by, *query.order_by}
    rest = tuple(column for column in read if column not in settled and _has_order(query.schema.attributes[column].type))
    return query.order_by + rest


def _has_order(data_type: DataType) -> bool:
    return data_type.kind not in (Kind.OTHER, Kind.NULL) and data_type.precision <= MAX_DIGITS
