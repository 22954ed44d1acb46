"""Judge whether Arrow reads a Parquet file's columns as Spark does, by the types and the writer that its footer names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

if TYPE_CHECKING:
    from pyarrow import parquet

_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"
# A default value of a column that files may lack.
_DEFAULT = "EXISTS_DEFAULT"
_INTEGERS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_INTEGRAL = {"INT32": 32, "INT64": 64}
_UNITS = ("milliseconds", "microseconds")
_OTHER_CALENDAR = "an old release of Spark wrote it, whose dates Spark converts to today's calendar"


def reason_against(footer: parquet.FileMetaData, read: StructType, folders: frozenset[str]) -> str | None:
    """Return why Spark may read other values from a file than Arrow does; None if it reads the same.

    Parameters
    ----------
    footer
        The footer of the file.
    read
        The columns that are read, with Spark's types.
    folders
        Those of them whose values the names of folders hold.
    """
    return next(_reasons(footer, read, folders), None)


def _reasons(footer: parquet.FileMetaData, read: StructType, folders: frozenset[str]) -> Iterator[str]:
    columns = [footer.schema.column(place) for place in range(len(footer.schema))]
    roots: dict[str, list[Any]] = {}
    for column in columns:
        # a column of a struct has the path of the struct before its name
        root = column.path if column.path == column.name else column.path.partition(".")[0]
        roots.setdefault(root.lower(), []).append(column)
    for field in read.fields:
        found = roots.get(field.name.lower(), [])
        reason = _in_folder(found) if field.name in folders else _of_column(found, field)
        if reason is not None:
            yield f"column {field.name!r} {reason}"
    dated = any(isinstance(field.dataType, DateType | TimestampType) for field in read.fields if field.name not in folders)
    if dated and _has_other_calendar(footer.metadata or {}):
        yield _OTHER_CALENDAR


def _in_folder(found: list[Any]) -> str | None:
    return "stands in the file as well as in the name of its folder" if found else None


def _of_column(found: list[Any], field: StructField) -> str | None:
    if not found:
        return "has a default value, and the file lacks it" if _DEFAULT in field.metadata else None
    if len(found) > 1 or found[0].max_repetition_level or found[0].path != found[0].name:
        return "has parts, or stands in the file several times"
    if found[0].path != field.name:
        return f"is called {found[0].path!r} in the file"
    told = json.loads(found[0].logical_type.to_json())
    if not _fits(found[0], told, field.dataType):
        kind = found[0].physical_type if told["Type"] == "None" else f"{found[0].physical_type} ({told['Type']})"
        return f"is {kind} in the file, which Spark makes {field.dataType.simpleString()} by rules of its own"
    return None


def _fits(column: Any, told: dict[str, Any], kind: DataType) -> bool:
    """Return whether Spark and Arrow read the same values of a type from a column, of which `told` is the logical type."""
    physical, logical = str(column.physical_type), str(told["Type"])
    match kind:
        case BooleanType():
            return physical == "BOOLEAN"
        case FloatType() | DoubleType():
            return logical == "None" and physical == ("FLOAT" if isinstance(kind, FloatType) else "DOUBLE")
        case StringType() | CharType() | VarcharType():
            return physical == "BYTE_ARRAY" and logical == "String"
        case BinaryType():
            return physical == "BYTE_ARRAY" and logical == "None"
        case DateType():
            return logical == "Date"
        case TimestampType() | TimestampNTZType():
            fits = logical == "Timestamp" and told["timeUnit"] in _UNITS
            return fits and bool(told["isAdjustedToUTC"]) == isinstance(kind, TimestampType)
        case DecimalType():
            return logical == "Decimal" and bool((told["precision"], told["scale"]) == (kind.precision, kind.scale))
    width = _INTEGERS.get(type(kind))
    if width is None:
        return False
    stored = _INTEGRAL.get(physical) if logical == "None" else told["bitWidth"] if logical == "Int" and told["isSigned"] else None
    # a column that has become wider since
    return stored == width or (stored, width) == (32, 64)


def _has_other_calendar(told: dict[bytes, bytes]) -> bool:
    """Return whether an old release of Spark wrote the file, or one that was told to write as those did."""
    if _LEGACY in told:
        return True
    release = re.match(rb"(\d+)", told.get(_VERSION, b"9"))
    return release is None or int(release[1]) < 3
