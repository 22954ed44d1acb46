"""Say which columns of Parquet files cuDF reads as Arrow does: flat ones of numbers, times and plain text, in the usual encodings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from gpu_cep.engine.input.encodings import is_text
from gpu_cep.engine.input.row_groups import stored_type

if TYPE_CHECKING:
    from pyarrow import dataset, parquet

# How it is told that cuDF reads columns.
BY_CUDF = "cuDF reads"
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
_DICTIONARIES = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED"}) | _DICTIONARIES
# Types that lie on a device as they are in Arrow.
_TESTS = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_timestamp, pa.types.is_string,
    pa.types.is_large_string,
)  # fmt: skip


class ColumnJudgement(NamedTuple):
    """Say why Arrow must read a column of a file (None: cuDF may), and what must be the same in all files that cuDF reads together."""

    reason: str | None
    description: tuple[object, ...] = ()


def judge_columns(fragment: dataset.ParquetFileFragment, columns: Sequence[str], schema: pa.Schema) -> dict[str, ColumnJudgement]:
    """Return for each column whether cuDF gives the same values and NULLs of a file as Arrow does in the types of `schema`.

    The fragment has its footer.
    """
    reasons = {name: _reason_against(fragment, name, schema.field(name).type) for name in columns}
    return {name: ColumnJudgement(reason, () if reason else _description(fragment, name)) for name, reason in reasons.items()}


def unite_reasons(judged: Sequence[Mapping[str, ColumnJudgement]], columns: Sequence[str]) -> dict[str, str | None]:
    """Return for each column why Arrow must read it of some files, each of which has been judged; None if cuDF reads it."""
    return {name: _united([own[name] for own in judged]) for name in columns}


def tell_readers(by_cudf: Collection[str], reasons: Mapping[str, str | None]) -> str:
    """Return who reads which columns, in words; `by_cudf` are those that cuDF reads."""
    others = [f"{name} ({reason or 'there is no row group to read'})" for name, reason in reasons.items() if name not in by_cudf]
    read = [f"{BY_CUDF} {', '.join(by_cudf)} to the card"] if by_cudf else []
    return "; ".join([*read, *([f"Arrow reads {', '.join(others)}"] if others else [])])


def _united(judged: Sequence[ColumnJudgement]) -> str | None:
    reason = next((each.reason for each in judged if each.reason is not None), None)
    unlike = len({each.description for each in judged}) > 1
    return "files describe it unlike each other" if reason is None and unlike else reason


def _reason_against(fragment: dataset.ParquetFileFragment, name: str, kind: pa.DataType) -> str | None:
    """Return why Arrow must read a column of a file in the type `kind`; None if cuDF may."""
    if "." in name:
        return "cuDF takes the dot in its name for that of a field"
    if not any(test(kind) for test in _TESTS):
        return f"cuDF has no such type: {kind}"
    return _reason_in_file(fragment, name, kind)


def _reason_in_file(fragment: dataset.ParquetFileFragment, name: str, kind: pa.DataType) -> str | None:
    """Return why Arrow must read a column of a file."""
    footer, own = fragment.metadata, fragment.physical_schema
    place = _place(fragment, name)
    if place is None:
        return "a file lacks it"
    if own.field(name).type != kind:
        return f"it is {own.field(name).type} in a file, and {kind} in all together"
    if not _is_stored_as(footer.schema.column(place), kind):
        return f"a file stores {kind} as {footer.schema.column(place).physical_type}"
    return next((reason for group in fragment.row_groups if (reason := _odd_chunk(footer.row_group(group.id).column(place)))), None)


def _place(fragment: dataset.ParquetFileFragment, name: str) -> int | None:
    """Return the place of a flat column in a file; None if the file lacks it."""
    schema = fragment.metadata.schema
    return next((number for number in range(len(schema)) if schema.column(number).path == name), None)


def _description(fragment: dataset.ParquetFileFragment, name: str) -> tuple[object, ...]:
    """Return what cuDF wants to be the same of a column in all files that it reads together."""
    place, metadata = _place(fragment, name), fragment.physical_schema.field(name).metadata or {}
    column = fragment.metadata.schema.column(place)
    return column.physical_type, column.converted_type, metadata.get(b"PARQUET:field_id")


def _is_stored_as(column: parquet.ColumnSchema, kind: pa.DataType) -> bool:
    """Return whether a file stores a column in the type that it has, but for the name of a time zone."""
    if column.physical_type == "BOOLEAN":
        return bool(pa.types.is_boolean(kind))
    if column.physical_type == "BYTE_ARRAY":
        return column.logical_type.type == "STRING" and is_text(kind)
    stored = stored_type(column)
    if stored is None or not pa.types.is_timestamp(stored):
        return bool(stored == kind)
    return bool(pa.types.is_timestamp(kind)) and stored.unit == kind.unit and (stored.tz is None) == (kind.tz is None)


def _odd_chunk(chunk: parquet.ColumnChunkMetaData) -> str | None:
    """Return what is not usual in how a row group holds a column; None if nothing is."""
    if chunk.compression not in _CODECS:
        return f"it is compressed by {chunk.compression}"
    odd = next((encoding for encoding in chunk.encodings if encoding not in _ENCODINGS), None)
    if odd is not None:
        return f"it is encoded by {odd}"
    # footers do not say how long it is outside of dictionaries, and so not whether it fits the card
    in_dictionaries = chunk.physical_type == "BYTE_ARRAY" and not _DICTIONARIES.isdisjoint(chunk.encodings)
    return "it is text in dictionaries, which cuDF would write out" if in_dictionaries else None
