"""Declare the columns of the table that a row pattern returns."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.analysis.row_patterns.bound import BoundRowPattern, MeasureColumn
from gpu_cep.engine.input.arrow_arrays import arrow_type


def row_pattern_schema(bound: BoundRowPattern, schema: pa.Schema) -> pa.Schema:
    """Return the columns of a row pattern's result over rows of `schema`: keys, measures and, with ALL ROWS, the other columns."""
    keys = [schema.field(column) for column in bound.key_columns]
    measures = [pa.field(measure.name, measure_type(measure, schema)) for measure in bound.measures]
    return pa.schema([*keys, *measures, *(schema.field(column) for column in bound.returned_columns)])


def measure_type(measure: MeasureColumn, schema: pa.Schema) -> pa.DataType:
    """Return the Arrow type of a measure: that of the column whose values it returns, else that of its data type."""
    if measure.column is None:
        return arrow_type(measure.type)
    kept = schema.field(measure.column).type
    return kept.value_type if pa.types.is_dictionary(kept) else kept
