"""Judge the row groups of a Parquet file by their statistics: which may have an event that counts, and whether values are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_cep.engine.input.encodings import widen_schema

if TYPE_CHECKING:
    from pyarrow import dataset, parquet


def kept_groups_of(
    fragment: dataset.ParquetFileFragment, condition: dataset.Expression, schema: pa.Schema, columns: Sequence[str]
) -> list[int] | None:
    """Return the row groups for which statistics do not rule out the condition; None for all.

    All of a file are read if Arrow casts some of its columns, which may be an error; one to wider codes is none.
    """
    return None if is_cast(fragment, schema, columns) else not_ruled_out(fragment, condition, schema)


def is_cast(fragment: dataset.ParquetFileFragment, schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Return whether Arrow casts some of the columns of a file to the types of `schema`."""
    own = widen_schema(fragment.physical_schema)
    return any(name in own.names and own.field(name).type != schema.field(name).type for name in columns)


def not_ruled_out(fragment: dataset.ParquetFileFragment, condition: dataset.Expression, schema: pa.Schema) -> list[int]:
    """Return the row groups of a fragment for which statistics do not rule out the condition."""
    return [group.id for part in fragment.split_by_row_group(condition, schema=schema) for group in part.row_groups]


def is_never_null(fragment: dataset.ParquetFileFragment, column: str) -> bool:
    """Return whether statistics say that no value of a column is NULL or NaN in any row group."""
    metadata = fragment.metadata
    place = next((number for number in range(metadata.num_columns) if metadata.schema.column(number).path == column), None)
    if place is None or metadata.schema.column(place).physical_type in ("FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY"):
        # statistics do not count NaN
        return False
    return all(_is_complete(metadata.row_group(group.id).column(place).statistics) for group in fragment.row_groups)


def _is_complete(known: parquet.Statistics | None) -> bool:
    """Return whether statistics say that no value is NULL."""
    return known is not None and bool(known.has_null_count) and known.null_count == 0
