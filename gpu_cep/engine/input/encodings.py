"""Decode columns whose encoding neither Arrow's functions nor the kernels read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.errors import EventError
from gpu_cep.identity import while_alive

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

_WIDE_CODES = pa.int32()
# Rows of a chunk on average from which the codes of each are looked through by themselves.
_LONG = 1 << 15
_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def decode_table(table: pa.Table) -> pa.Table:
    """Return `table` without views, without run-end encoding, and with dictionaries of text only, none of whose values is NULL.

    Tables of polars have views.

    Raises
    ------
    EventError
        A dictionary lacks a value that a code stands for, as of a damaged file.
    """
    holds_null = inspect_dictionaries(table)
    if has_plain_types(table.schema) and not holds_null:
        return table
    for number, field in enumerate(table.schema):
        given = table.column(number)
        column = _decode_column(given)
        if column is not given:
            table = table.set_column(number, field.with_type(column.type), column)
    return table


def _decode_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column as :func:`decode_table` does; the same one if that changes nothing."""
    plain = plain_type(column.type)
    if plain != column.type:
        column = pa.chunked_array([_decode(chunk).cast(plain) for chunk in column.chunks], plain)
    # Arrow joins no dictionaries of which one has NULL for a value
    return column.cast(_without_dictionaries(plain)).cast(plain) if hold_nulls(column) else column


def hold_nulls(column: pa.ChunkedArray) -> bool:
    """Return whether NULL is among the values of the dictionaries of text of a column, also of those inside of lists and structs."""
    # the type is asked once, since there may be many chunks
    if pa.types.is_dictionary(column.type):
        return is_text(column.type.value_type) and any(chunk.dictionary.null_count for chunk in column.chunks)
    return any(map(_holds_null, column.chunks))


def _holds_null(array: pa.Array) -> bool:
    """Return whether NULL is among the values of a dictionary of text, also of one inside of lists and structs."""
    if pa.types.is_dictionary(array.type):
        return is_text(array.type.value_type) and bool(array.dictionary.null_count)
    if pa.types.is_struct(array.type):
        return any(_holds_null(array.field(number)) for number in range(array.type.num_fields))
    if pa.types.is_map(array.type):
        return _holds_null(array.keys) or _holds_null(array.items)
    return _is_list(array.type) and _holds_null(array.values)


def _without_dictionaries(arrow: pa.DataType) -> pa.DataType:
    """Return the type that values have without dictionaries, also inside of lists and structs."""
    if pa.types.is_dictionary(arrow):
        return arrow.value_type
    if pa.types.is_map(arrow):
        return pa.map_(*map(_without_dictionaries, (arrow.key_type, arrow.item_type)))
    return _with_fields(arrow, lambda field: field.with_type(_without_dictionaries(field.type)))


def has_plain_types(schema: pa.Schema) -> bool:
    """Return whether :func:`decode_table` only looks through dictionaries."""
    return all(map(_is_plain, schema.types))


@while_alive
def inspect_dictionaries(table: pa.Table) -> bool:
    """Return whether NULL is among the values of a dictionary of text; a table is looked through once.

    Raises
    ------
    EventError
        A dictionary lacks a value that a code stands for. Nothing that reads codes tests them again.
    """
    encoded = [number for number, kind in enumerate(table.schema.types) if kind.id == _DICTIONARY]
    for number in encoded:
        check_codes(table.column(number), table.schema.field(number).name)
    return any(hold_nulls(table.column(number)) for number in encoded)


@while_alive
def columns_short_of_codes(table: pa.Table) -> list[int]:
    """Return the numbers of the columns of text whose batches have more values in their dictionaries than there are codes."""
    encoded = [number for number, kind in enumerate(table.schema.types) if kind.id == _DICTIONARY]
    return [number for number in encoded if _is_short_of_codes(table.column(number))]


def _is_short_of_codes(column: pa.ChunkedArray) -> bool:
    most = _codes(column.type.index_type)
    if column.type.index_type.bit_width >= _WIDE_CODES.bit_width or sum(len(chunk.dictionary) for chunk in column.chunks) <= most:
        return False
    return len(pa.chunked_array([chunk.dictionary for chunk in column.chunks]).unique()) > most


def _codes(kind: pa.DataType) -> int:
    """Return how many codes from 0 on an integer type has."""
    return int(np.iinfo(kind.to_pandas_dtype()).max) + 1


def widen_codes(table: pa.Table) -> pa.Table:
    """Return a table in which each column of text has a code for every value that its batches have.

    Each batch may have a dictionary of its own, and results join them.
    """
    for number in columns_short_of_codes(table):
        field = table.schema.field(number).with_type(with_wide_codes(table.schema.field(number).type))
        table = table.set_column(number, field, table.column(number).cast(field.type))
    return table


def with_wide_codes(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column with codes for any number of values, if it is a dictionary; otherwise the type itself."""
    narrow = pa.types.is_dictionary(kind) and kind.index_type.bit_width < _WIDE_CODES.bit_width
    return pa.dictionary(_WIDE_CODES, kind.value_type, kind.ordered) if narrow else kind


def widen_table(table: pa.Table) -> pa.Table:
    """Return a table whose dictionaries have codes for any number of values, as :func:`widen_schema` says."""
    for number, field in enumerate(table.schema):
        kind = with_wide_codes(field.type)
        # a cast of all columns would refuse NULLs where a field says that it has none
        if kind != field.type:
            table = table.set_column(number, field.with_type(kind), table.column(number).cast(kind))
    return table


def widen_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose dictionaries have codes for any number of values: those of many reads or pushes are joined."""
    return pa.schema([field.with_type(with_wide_codes(field.type)) for field in schema], schema.metadata)


def check_codes(column: pa.ChunkedArray, name: str) -> None:
    """Raise EventError if a code of a column is that of no value."""
    chunks = [chunk for chunk in _chunks_to_check(column) if len(chunk) > chunk.null_count]
    for chunk, greatest in zip(chunks, _greatest_codes([chunk.indices for chunk in chunks]), strict=True):
        values = len(chunk.dictionary)
        if greatest >= values:
            raise EventError(f"column {name!r} is damaged: one of its codes is that of none of the {values:,} values in its dictionary")


def _chunks_to_check(column: pa.ChunkedArray) -> list[pa.DictionaryArray]:
    """Return the chunks of a column, without those whose dictionaries have a value for each code of any chunk."""
    chunks: list[pa.DictionaryArray] = column.chunks
    if len(chunks) < 2:
        return chunks
    # one pass over all chunks takes half the time of one for each
    codes = pc.min_max(pa.chunked_array([chunk.indices for chunk in chunks]))
    least, greatest = codes["min"].as_py(), codes["max"].as_py()
    if least is None or least < 0:
        return chunks
    return [chunk for chunk in chunks if len(chunk.dictionary) <= greatest]


def _greatest_codes(indices: Sequence[pa.Array]) -> list[int]:
    """Return the greatest code of each array, none of which is empty; one below 0 counts as one greater than any, and NULL as 0."""
    if sum(map(len, indices)) >= len(indices) * _LONG:
        return [int(_unsigned(codes).max()) for codes in indices]
    # a copy of short arrays takes less time than a call for each
    begins = [0, *accumulate(map(len, indices[:-1]))]
    return list(map(int, np.maximum.reduceat(_unsigned(pa.concat_arrays(indices)), begins)))


def _unsigned(codes: pa.Array) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return codes as integers without a sign, NULL as 0."""
    present = codes.fill_null(0) if codes.null_count else codes
    found: npt.NDArray[np.unsignedinteger[Any]] = present.to_numpy().view(_UNSIGNED[codes.type.bit_width])
    return found


def _is_plain(arrow: pa.DataType) -> bool:
    """Return whether a type is known to be read as it is, which most are: to make its plain type takes far longer."""
    return arrow.id in _PLAIN or (arrow.id == _DICTIONARY and arrow.value_type.id in _TEXTS)


def decode_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of what :func:`decode_table` returns."""
    decoded: pa.Schema = decode_table(no_rows(schema)).schema
    return decoded


def unite_schemas(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns of all schemas, each of the type in which its types meet; text that not all have as dictionaries is plain.

    Raises
    ------
    pyarrow.ArrowInvalid, pyarrow.ArrowTypeError
        The types of a column do not meet.
    """
    return pa.unify_schemas(with_plain_texts(schemas), promote_options="permissive")


def with_plain_texts(schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
    """Return the schemas with plain text where one has a column as a dictionary of text, and another as something else."""
    kinds: dict[str, set[pa.DataType | None]] = {}
    for field in (field for schema in schemas for field in schema):
        kinds.setdefault(field.name, set()).add(field.type.value_type if _is_encoded_text(field.type) else None)
    unlike = {name for name, found in kinds.items() if len(found) > 1}

    def plain(field: pa.Field) -> pa.Field:
        return field.with_type(field.type.value_type) if field.name in unlike and _is_encoded_text(field.type) else field

    return [pa.schema(map(plain, schema), schema.metadata) for schema in schemas]


def _is_encoded_text(arrow: pa.DataType) -> bool:
    return pa.types.is_dictionary(arrow) and is_text(arrow.value_type)


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type to which a column of type `arrow` is decoded."""
    if pa.types.is_dictionary(arrow):
        values = plain_type(arrow.value_type)
        return pa.dictionary(arrow.index_type, values, arrow.ordered) if is_text(values) else values
    if pa.types.is_run_end_encoded(arrow):
        return plain_type(arrow.value_type)
    return _viewless_type(arrow)


def is_copied(arrow: pa.DataType) -> bool:
    """Return whether Arrow can gather rows of a column of this type."""
    if pa.types.is_primitive(arrow) or is_text(arrow):
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


def is_text(arrow: pa.DataType) -> bool:
    """Return whether the type is text, other than views and dictionaries."""
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))


def holds_text(arrow: pa.DataType) -> bool:
    """Return whether a column of this type holds text, encoded as a dictionary or not."""
    return is_text(arrow.value_type if pa.types.is_dictionary(arrow) else arrow)


def _viewless_type(arrow: pa.DataType) -> pa.DataType:
    """Return `arrow` with large strings and binaries in place of views, also in lists and structs."""
    nested = _with_fields(arrow, lambda field: field.with_type(_viewless_type(field.type)))
    # extension types need not be hashable
    return nested if isinstance(arrow, pa.BaseExtensionType) else _VIEWS.get(nested, nested)


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow))


def _with_fields(arrow: pa.DataType, changed: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return a list or a struct of changed fields, and other types as they are."""
    if pa.types.is_list(arrow):
        return pa.list_(changed(arrow.value_field))
    if pa.types.is_large_list(arrow):
        return pa.large_list(changed(arrow.value_field))
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(changed(arrow.value_field), arrow.list_size)
    return pa.struct([changed(field) for field in arrow]) if pa.types.is_struct(arrow) else arrow


def _decode(array: pa.Array) -> pa.Array:
    """Return `array` without run-end encoding, and with a dictionary only if it is of text.

    Views that are not encoded in such a way stay.
    """
    if pa.types.is_dictionary(array.type):
        values = _drop_views(_decode(array.dictionary))
        text = is_text(values.type)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=array.type.ordered) if text else values.take(array.indices)
    if pa.types.is_run_end_encoded(array.type):
        # run ends and values know nothing of the array's offset
        places = np.searchsorted(array.run_ends.to_numpy(), np.arange(array.offset, array.offset + len(array)), side="right")
        return _drop_views(_decode(array.values)).take(pa.array(places))
    return array


def _drop_views(array: pa.Array) -> pa.Array:
    """Return `array` with large strings and binaries in place of views."""
    return array.cast(_viewless_type(array.type))
