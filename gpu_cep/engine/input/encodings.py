"""Decode columns whose encoding neither Arrow's functions nor the kernels read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

# Types that are read as they are, and those of text, by their numbers.
_TEXTS = frozenset(kind.id for kind in (pa.string(), pa.large_string()))
_PLAIN = _TEXTS | frozenset(
    kind.id
    for kind in (
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us"),
    )
)  # fmt: skip
_DICTIONARY = pa.dictionary(pa.int32(), pa.string()).id

_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def decode_table(table: pa.Table) -> pa.Table:
    """Return `table` without views, without run-end encoding, and with dictionaries of text only.

    Tables of polars have views.
    """
    if all(map(_is_plain, table.schema.types)):
        return table
    for number, field in enumerate(table.schema):
        plain = plain_type(field.type)
        if plain != field.type:
            chunks = [_decode(chunk).cast(plain) for chunk in table.column(number).chunks]
            table = table.set_column(number, field.with_type(plain), pa.chunked_array(chunks, plain))
    return table


def _is_plain(arrow: pa.DataType) -> bool:
    """Return whether a type is known to be read as it is, which most are: to make its plain type takes far longer."""
    return arrow.id in _PLAIN or (arrow.id == _DICTIONARY and arrow.value_type.id in _TEXTS)


def decode_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of what :func:`decode_table` returns."""
    decoded: pa.Schema = decode_table(schema.empty_table()).schema
    return decoded


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type to which a column of type `arrow` is decoded."""
    if pa.types.is_dictionary(arrow):
        values = plain_type(arrow.value_type)
        return pa.dictionary(arrow.index_type, values, arrow.ordered) if _is_text(values) else values
    if pa.types.is_run_end_encoded(arrow):
        return plain_type(arrow.value_type)
    return _viewless_type(arrow)


def is_copied(arrow: pa.DataType) -> bool:
    """Return whether Arrow can gather rows of a column of this type."""
    if pa.types.is_primitive(arrow) or _is_text(arrow):
        return True
    if pa.types.is_struct(arrow):
        return all(is_copied(field.type) for field in arrow)
    if pa.types.is_list(arrow):
        return is_copied(arrow.value_type)
    # asked last: it takes far longer than the tests of the usual types
    try:
        pa.nulls(1, arrow).take(pa.array([0]))
    except pa.ArrowNotImplementedError:
        return False
    return True


def _is_text(arrow: pa.DataType) -> bool:
    """Return whether the type is text, other than views."""
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))


def _viewless_type(arrow: pa.DataType) -> pa.DataType:
    """Return `arrow` with large strings and binaries in place of views, also in lists and structs."""
    if pa.types.is_list(arrow):
        return pa.list_(_viewless_field(arrow.value_field))
    if pa.types.is_large_list(arrow):
        return pa.large_list(_viewless_field(arrow.value_field))
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(_viewless_field(arrow.value_field), arrow.list_size)
    if pa.types.is_struct(arrow):
        return pa.struct([_viewless_field(field) for field in arrow])
    # extension types need not be hashable
    return arrow if isinstance(arrow, pa.BaseExtensionType) else _VIEWS.get(arrow, arrow)


def _viewless_field(field: pa.Field) -> pa.Field:
    """Return the field with its type without views."""
    return field.with_type(_viewless_type(field.type))


def _decode(array: pa.Array) -> pa.Array:
    """Return `array` without run-end encoding, and with a dictionary only if it is of text.

    Views that are not encoded in such a way stay.
    """
    if pa.types.is_dictionary(array.type):
        values = _drop_views(_decode(array.dictionary))
        text = _is_text(values.type)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=array.type.ordered) if text else values.take(array.indices)
    if pa.types.is_run_end_encoded(array.type):
        # run ends and values know nothing of the array's offset
        places = np.searchsorted(array.run_ends.to_numpy(), np.arange(array.offset, array.offset + len(array)), side="right")
        return _drop_views(_decode(array.values)).take(pa.array(places))
    return array


def _drop_views(array: pa.Array) -> pa.Array:
    """Return `array` with large strings and binaries in place of views."""
    return array.cast(_viewless_type(array.type))
