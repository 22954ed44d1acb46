"""Compute the columns that are expressions of one event: the interpreter runs over all events once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import ComputedExpression
from gpu_cep.engine.input.arrow_arrays import arrow_array
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import AS_GIVEN, Origin
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.lowering.programs import assemble, evaluate, failure, load_bank, tabulator
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.programs import compile_program, leaves
from gpu_cep.plan.properties import place_leaves


def event_columns(
    plan: Plan, table: pa.Table | ResidentTable | PickedRows, origin: Origin = AS_GIVEN, shared: EventColumns | None = None
) -> EventColumns:
    """Return the columns of the events in `table` that the plan's query reads, computed ones included.

    The events without a timestamp are left out if the query says so. `origin` is the input of which
    the table is a part. `shared` are the columns of the same table that other queries read, too.

    Raises
    ------
    EventError
        An integer overflowed in an expression, or the caller's function raised an exception.
    """
    timed, kept = timed_events(plan.query, table)
    columns = EventColumns(timed, plan.query, plan.dictionaries, origin.numbers_of(kept), origin.schema, shared if kept is None else None)
    for column, computed in enumerate(plan.query.computed, len(plan.query.schema.attributes)):
        if isinstance(computed, ComputedExpression):
            columns.put(column, expression_values(computed, columns))
    return columns


def expression_values(computed: ComputedExpression, columns: EventColumns) -> pa.Array:
    """Return the values of the expression for all events; the columns that it reads are there.

    Raises
    ------
    EventError
        An integer overflowed, or the caller's function raised an exception.
    """
    layout, slots = place_leaves(leaves(computed.expression))
    program = compile_program(computed.expression, slots.__getitem__)
    table, _ = assemble([program], tabulator(columns))
    values, nulls, failed = evaluate(program, table, load_bank(columns, layout, np.arange(len(columns))))
    if failed >= 0:
        raise EventError(f"{failure(program)} in {computed.text} at input row {columns.number_of(failed)}")
    return arrow_array(values, nulls, computed.type)
