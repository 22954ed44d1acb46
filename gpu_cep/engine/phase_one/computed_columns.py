"""Compute the columns that are expressions of one event, or counts of events: the interpreter runs over all events once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound_expressions import Bound
from gpu_cep.analysis.computed_columns import ComputedCount, ComputedExpression
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.arrow_arrays import arrow_array
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import AS_GIVEN, Origin
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.lowering.programs import WIDER, assemble, evaluate, failure, load_bank, tabulator
from gpu_cep.engine.phase_one.order_events import order_in_streams, sort_by_stream
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.properties import compile_over_event


def event_columns(
    plan: Plan, table: pa.Table | ResidentTable | PickedRows, origin: Origin = AS_GIVEN, shared: EventColumns | None = None,
    threads: int = 1,
) -> EventColumns:  # fmt: skip
    """Return the columns of the events in `table` that the plan's query reads, computed ones included.

    The events without a timestamp are left out if the query says so. `origin` is the input of which
    the table is a part. `shared` are the columns of the same table that other queries read, too.
    At most `threads` threads encode a column of text.

    Raises
    ------
    EventError
        An integer overflowed in an expression, or the caller's function raised an exception.
    """
    timed, kept = timed_events(plan.query, table)
    shared = shared if kept is None else None
    columns = EventColumns(timed, plan.query, plan.dictionaries, origin.numbers_of(kept), origin.schema, shared, threads=threads)
    for column, computed in enumerate(plan.query.computed, len(plan.query.schema.attributes)):
        if isinstance(computed, ComputedExpression):
            columns.put(column, expression_values(computed, columns))
        elif isinstance(computed, ComputedCount):
            columns.put(column, running_counts(plan, computed, columns))
    return columns


def expression_values(computed: ComputedExpression, columns: EventColumns) -> pa.Array:
    """Return the values of the expression for all events; the columns that it reads are there.

    Raises
    ------
    EventError
        An integer overflowed, or the caller's function raised an exception.
    """
    values, nulls = _values(computed.expression, computed.text, columns)
    return arrow_array(values, nulls, computed.type)


def running_counts(plan: Plan, computed: ComputedCount, columns: EventColumns) -> pa.Array:
    """Return for each event how many events of its stream satisfy a condition, itself and those before it.

    Counts go on from stream to stream: those of one stream are compared with each other only.
    Raises as :func:`expression_values`.
    """
    values, nulls = _values(computed.condition, computed.text, columns)
    satisfied = values.astype(np.bool_) & ~nulls
    counts = np.zeros(len(columns), np.int64)
    if satisfied.any():
        rows = _rows_in_order(plan, computed.keys, columns)
        counts[rows] = np.cumsum(satisfied[rows])
    return pa.array(counts)


def _rows_in_order(plan: Plan, keys: tuple[int, ...], columns: EventColumns) -> Indices:
    """Return the rows stream after stream, each in its order (docs/language.md, Ties)."""
    streams, rows = encode_keys(columns, keys), np.arange(len(columns), dtype=np.int32)
    offsets = np.array([0, len(rows)], np.int64)
    if streams.codes is not None:
        offsets, rows = sort_by_stream([rows], streams.codes, streams.count, streams.order, 1)
    numbers = rows.astype(np.int64)
    times, ranks = load_times(columns, plan.query.timestamp)[numbers], rank_rows(columns, plan.query.order_by, numbers)
    order = order_in_streams(offsets, times, ranks, 1)
    return numbers if order is None else numbers[order]


def _values(expression: Bound, text: str, columns: EventColumns) -> tuple[Array, Array]:
    """Return the values of an expression over one event for all events, and where they are NULL; raise as :func:`expression_values`."""
    program, layout = compile_over_event(expression)
    table, _ = assemble([program], tabulator(columns))
    values, nulls, failed = evaluate(program, table, load_bank(columns, layout, np.arange(len(columns))))
    if failed >= 0:
        raise EventError(f"{failure(program)} in {text} at input row {columns.number_of(failed)}; {WIDER}")
    return values, nulls
