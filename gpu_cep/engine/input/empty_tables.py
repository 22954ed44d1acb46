"""Make tables without rows."""

from __future__ import annotations

import pyarrow as pa


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return a table of `schema` without rows, also of types within others of which Arrow's ``empty_table`` makes none."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
