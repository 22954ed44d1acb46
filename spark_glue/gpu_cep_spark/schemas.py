"""Convert Spark schemas to the Arrow schemas that workers see, and back.

Spark's arrays have any length. An array column whose metadata give a length becomes a fixed-size
list. ``df.withMetadata("history", {"gpu_cep.length": 20})`` gives it.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    CharType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampType,
    VarcharType,
    YearMonthIntervalType,
)

from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError

LENGTH = "gpu_cep.length"
# Stands for intervals of months, which Spark does not send to Python.
_NOT_SENT = pa.month_day_nano_interval()


def arrow_schema(schema: StructType, zone: str) -> pa.Schema:
    """Return the Arrow schema of a DataFrame; `zone` is the session's time zone, that of all timestamps.

    Raises
    ------
    PatternError
        The metadata of a column give a length that it cannot have.
    """
    return pa.schema([_fix_length(field, arrow) for field, arrow in zip(schema.fields, _fields(schema, zone), strict=True)])


def refuse_unsent(schema: pa.Schema) -> None:
    """Raise UnsupportedError that names the columns of `schema` which Spark does not send to Python."""
    names = [field.name for field in schema if _is_unsent(field.type)]
    if names:
        hint = "leave them out by RETURN, by columns=, or by drop() of the DataFrame"
        told = "holds an interval of months, which Spark does not send to Python"
        raise UnsupportedError([Diagnostic(f"column {name!r} {told}", hint=hint) for name in names])


def _is_unsent(kind: pa.DataType) -> bool:
    return bool(kind == _NOT_SENT or any(_is_unsent(kind.field(place).type) for place in range(kind.num_fields)))


def batch_schema(schema: StructType, zone: str) -> pa.Schema:
    """Return the Arrow schema in which Spark takes batches of `schema`; fixed-size lists are lists there."""
    return pa.schema(_fields(schema, zone))


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema of results that have an Arrow schema."""
    lengths = [{LENGTH: arrow.list_size} if pa.types.is_fixed_size_list(arrow) else None for arrow in schema.types]
    plain = from_arrow_schema(schema).fields
    return StructType([StructField(f.name, f.dataType, f.nullable, length) for f, length in zip(plain, lengths, strict=True)])


def _fix_length(field: StructField, arrow: pa.Field) -> pa.Field:
    """Return the field as a fixed-size list if its metadata give a length, else as it is."""
    length = field.metadata.get(LENGTH)
    if length is None:
        return arrow
    if not isinstance(field.dataType, ArrayType) or not isinstance(length, int) or length < 1:
        raise PatternError(f"column {field.name!r} of type {field.dataType.simpleString()} has no length {length!r}, as its metadata say")
    return arrow.with_type(pa.list_(arrow.type.value_field, length))


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
        case CharType() | VarcharType():
            return pa.string()
        case YearMonthIntervalType() | CalendarIntervalType():
            return _NOT_SENT
        case _:
            return to_arrow_type(data_type)
