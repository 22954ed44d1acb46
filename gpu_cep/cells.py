"""Arrow values → what JSON and pages can show, exactly: times and decimals as text, durations as ticks of their unit."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa

_AS_TEXT = (pa.types.is_temporal, pa.types.is_decimal)


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as objects that JSON can hold: what is no finite number is NaN, Infinity or -Infinity as text."""
    schema = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in table.schema])
    return [{name: _finite(value) for name, value in row.items()} for row in table.cast(schema).to_pylist()]


def cell_text(value: Any) -> str:
    """A value of :func:`plain_rows` as one line of text; NULL is empty."""
    match value:
        case None:
            return ""
        case str():
            return value
    return json.dumps(value, ensure_ascii=False)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_duration(kind):
        return pa.int64()
    if any(test(kind) for test in _AS_TEXT):
        return pa.string()
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.large_list(_plain_type(kind.value_type))
    return kind


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list():
            return [_finite(each) for each in value]
        case bytes():
            return value.hex()
    return value
