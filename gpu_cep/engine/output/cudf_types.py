"""Bring results into types that cuDF takes from Arrow."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.errors import Diagnostic, UnsupportedError

_TAKEN: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_date, pa.types.is_timestamp, pa.types.is_duration, pa.types.is_decimal128, pa.types.is_null,
)  # fmt: skip


def in_types_of_cudf(table: pa.Table) -> pa.Table:
    """Return a result whose types cuDF takes: a column of codes has one dictionary, and lists and structs have texts for codes.

    Raises
    ------
    UnsupportedError
        cuDF has no type for a column.
    """
    plain = [_decoded(kind) for kind in table.schema.types]
    refused = [f"{name!r} ({kind})" for name, kind in zip(table.schema.names, plain, strict=True) if not _is_taken(kind)]
    if refused:
        hint = "leave it out (RETURN, columns=), or let result= be 'arrow'"
        raise UnsupportedError([Diagnostic(f"result='cudf': cuDF has no type for column {', '.join(refused)}", hint=hint)])
    columns = [_with_one_dictionary(column) if _is_coded(column.type) else column for column in table.columns]
    pairs = zip(columns, plain, strict=True)
    return pa.table([each if _is_coded(each.type) or each.type == kind else each.cast(kind) for each, kind in pairs], table.schema.names)


def _is_coded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _decoded(kind: pa.DataType) -> pa.DataType:
    """Return a type with texts in place of codes, those of its parts, too."""
    if _is_coded(kind):
        return _decoded(kind.value_type)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_decoded(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_decoded(part.type)) for part in kind])
    return kind


def _is_taken(kind: pa.DataType) -> bool:
    """Return whether cuDF has a type for values of this type."""
    if pa.types.is_list(kind):
        return _is_taken(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_taken(part.type) for part in kind)
    return any(taken(kind) for taken in _TAKEN)


def _with_one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of codes in one chunk, whose dictionary has each text once: cuDF reads all chunks by one such dictionary."""
    joined = column.combine_chunks()
    values = joined.dictionary
    if values.null_count or len(pc.unique(values)) < len(values):
        joined = joined.dictionary_decode().dictionary_encode()
    return pa.chunked_array([joined])
