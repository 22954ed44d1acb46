"""Answer MATCH_RECOGNIZE by ``algorithm="brute_force"``: the oracle finds the rows of the result, which become a table."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from gpu_cep.analysis.computed_columns import ComputedExpression
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.analysis.types import TICKS_PER_SECOND, DataType, Kind
from gpu_cep.engine.brute_force.events import called_scalars
from gpu_cep.engine.lowering.programs import WIDER_IN_ROWS
from gpu_cep.engine.output.row_patterns import measure_type, row_pattern_schema
from gpu_cep.errors import EventError
from gpu_cep.oracle.row_patterns.answers import answer

_NANOSECONDS = TICKS_PER_SECOND["ns"]
_DAY = 86_400 * _NANOSECONDS


def enumerate_row_matches(bound: BoundRowPattern, options: Options, table: pa.Table) -> pa.Table:
    """Return the rows of a row pattern: its keys, its measures and, with ALL ROWS, the other columns.

    Raises
    ------
    UnsupportedError
        A partition has too many rows; the message names the limit.
    EventError
        AFTER MATCH SKIP TO leads to the first row of a match, or to a variable that has none. Or a measure has no place
        in its type.
    """
    computed = [each.expression for each in bound.computed if isinstance(each, ComputedExpression)]
    expressions = (*(each.expression for each in bound.measures), *(condition for _, condition in bound.conditions), *computed)
    functions = called_scalars(expressions, options.functions)
    # the bound tree has the clauses that keywords supply
    found = answer(bound.query, table, time_unit=options.time_unit, functions=functions)
    rows = table.take(pa.array([row.number for row in found], pa.int64()))
    columns = [rows.column(column) for column in bound.key_columns]
    for number, measure in enumerate(bound.measures):
        values = [None if row.measures is None else row.measures[number] for row in found]
        kind = measure_type(measure, table.schema)
        try:
            columns.append(_array(values, measure.type, kind))
        except OverflowError as fault:
            raise EventError(f"integer overflow in measure {measure.name!r}; {WIDER_IN_ROWS}") from fault
    columns += [rows.column(column) for column in bound.returned_columns]
    return pa.table(columns, schema=row_pattern_schema(bound, table.schema))


def _array(values: Sequence[Any], type: DataType, kind: pa.DataType) -> pa.Array:
    """Return the oracle's values, whose times and durations are nanoseconds, as an array of an Arrow type."""
    match type.kind:
        case Kind.DATE:
            days = pa.array([None if value is None else value // _DAY for value in values], pa.int32())
            return days.view(pa.date32()).cast(kind)
        case Kind.TIMESTAMP | Kind.DURATION:
            length = _NANOSECONDS // TICKS_PER_SECOND[type.unit]
            return pa.array([None if value is None else int(value // length) for value in values], pa.int64()).view(kind)
        case Kind.FLOAT:
            return pa.array([None if value is None else float(value) for value in values], pa.float64()).cast(kind)
        case Kind.DECIMAL:
            # the oracle rounds decimals to floats, which are whole
            return pa.array([None if value is None else Decimal(value) for value in values], kind)
    return pa.array(values, kind)
