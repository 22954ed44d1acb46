"""Encode text that many plans read as dictionaries, where it has few distinct values."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.encodings import is_text
from gpu_cep.plan.event_plan import Plan

# How often plans read all of a column, on average, from which it is encoded, which takes as long as to look for constants as often.
_READ = 4
# Rows from which encoding is worth a thought; the samples, the rows of each, and the most distinct values for each row of these.
_ROWS = 1 << 16
_SAMPLES, _SAMPLE_ROWS, _DISTINCT = 16, 1 << 10, 0.25


def compact_texts(table: pa.Table, plans: Iterable[tuple[Plan, int]]) -> pa.Table:
    """Return the table with dictionaries in place of text that plans often read and that often has the same values.

    Each plan comes with how many rows it reads.
    """
    if table.num_rows < _ROWS:
        return table
    counts: dict[int, int] = {}
    for plan, rows in plans:
        for column in _texts_read(plan):
            counts[column] = counts.get(column, 0) + rows
    for column, count in counts.items():
        if count >= _READ * table.num_rows and is_text(table.schema.field(column).type) and _has_few_values(table.column(column)):
            encoded = table.column(column).dictionary_encode()
            table = table.set_column(column, table.schema.field(column).with_type(encoded.type), encoded)
    return table


def _texts_read(plan: Plan) -> set[int]:
    """Return the columns of text that phase 1 or conditions read."""
    attributes = plan.query.schema.attributes
    read = {*plan.bulk_columns, *plan.layout.columns}
    return {column for column in read if column < len(attributes) and attributes[column].type.kind is Kind.STRING}


def _has_few_values(values: pa.ChunkedArray) -> bool:
    """Return whether a sample of a column has few distinct values."""
    begins = range(0, len(values), max(1, len(values) // _SAMPLES))
    sample = pa.chunked_array([chunk for begin in begins for chunk in values.slice(begin, _SAMPLE_ROWS).chunks], values.type)
    return bool(len(pc.unique(sample)) <= _DISTINCT * len(sample))
