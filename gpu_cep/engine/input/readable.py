"""Make values of events readable for messages and pictures: text of any bytes, times of any year, any time zone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gpu_cep.errors import EventError


def is_text_or_view(kind: pa.DataType) -> bool:
    """Return whether a type is text, whatever its layout, but for dictionaries."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def readable_texts(values: pa.Array) -> pa.Array:
    """Return an array of text with � in the place of bytes that are no UTF-8."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        held = values.cast(pa.large_binary()).to_pylist()
        return pa.array([None if each is None else each.decode(errors="replace") for each in held], values.type)
    return values


def readable_value(value: pa.Scalar) -> object:
    """Return a value as Python holds it, or as text if Python cannot hold it."""
    if isinstance(value, pa.DictionaryScalar):
        return readable_value(value.value)
    if is_text_or_view(value.type):
        return readable_texts(pa.array([value], value.type))[0].as_py()
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        # a year beyond 9999, or an unknown zone
        return _moment(value)


def _moment(value: pa.Scalar) -> str:
    """Return a date, or a time in UTC, as text."""
    unit = {pa.date32(): "D", pa.date64(): "ms"}.get(value.type) or value.type.unit
    zoned = pa.types.is_timestamp(value.type) and value.type.tz is not None
    return str(np.array(value.value, f"datetime64[{unit}]")).replace("T", " ") + "Z" * zoned


def check_zones(schema: pa.Schema) -> None:
    """Raise EventError if a column has times of a zone that is unknown here, so that no clock can be read there."""
    for field in schema:
        unknown = next((zone for zone in _zones(field.type) if not _is_known(zone)), None)
        if unknown is not None:
            raise EventError(
                f"column {field.name!r} has times of zone {unknown!r}, which is unknown here; "
                f"cast it to a zone of the tz database: pyarrow.timestamp('us', 'UTC')"
            )


def _zones(kind: pa.DataType) -> Iterator[str]:
    """Yield the time zones in a type."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        yield kind.tz
    elif pa.types.is_dictionary(kind):
        yield from _zones(kind.value_type)
    elif pa.types.is_nested(kind):
        for number in range(kind.num_fields):
            yield from _zones(kind.field(number).type)


def _is_known(zone: str) -> bool:
    try:
        pa.array([0], pa.timestamp("s", zone)).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
