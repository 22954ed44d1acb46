"""Spark schemas as the Arrow schemas in which the worker sees the same columns, and back."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType


def arrow_schema(schema: StructType, zone: str) -> pa.Schema:
    """The Arrow schema of a DataFrame's batches; `zone` is the session's time zone, which Spark gives to all timestamps."""
    return pa.schema(_fields(schema, zone))


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of result batches of an Arrow schema."""
    return from_arrow_schema(schema)


def _fields(struct: StructType, zone: str) -> list[pa.Field]:
    return [pa.field(field.name, _arrow_type(field.dataType, zone), nullable=field.nullable) for field in struct.fields]


def _arrow_type(data_type: DataType, zone: str) -> pa.DataType:
    match data_type:
        case TimestampType():
            return pa.timestamp("us", tz=zone)
        case StructType():
            return pa.struct(_fields(data_type, zone))
        case ArrayType():
            return pa.list_(pa.field("element", _arrow_type(data_type.elementType, zone), nullable=data_type.containsNull))
        case MapType():
            values = pa.field("value", _arrow_type(data_type.valueType, zone), nullable=data_type.valueContainsNull)
            return pa.map_(pa.field("key", _arrow_type(data_type.keyType, zone), nullable=False), values)
        case _:
            return to_arrow_type(data_type)
