"""What runs on an executor: the events of one Spark partition as one table through the engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.engine.answers import AnyPlan, answer
from gpu_cep.engine.slices import WHOLE
from gpu_cep.errors import EventError
from gpu_cep_spark.codes import Codes, decoded
from gpu_cep_spark.own_rows import with_own_rows

RESULT_ROWS = 65_536


def match_partition(
    plan: AnyPlan, events: pa.Schema, codes: Codes, result: pa.Schema, batches: Iterable[pa.RecordBatch], *, sliced: bool = False
) -> Iterator[pa.RecordBatch]:
    """The matches among the events of one partition, which holds whole streams, or whole slices of some.

    Parameters
    ----------
    plan
        Made for the columns of `events`.
    events
        The columns of `batches` under their own names; Spark gives them others on the way.
    codes
        The text columns that arrive as codes.
    result
        What Spark was told to expect.
    sliced
        Whether streams are slices; the last column then marks their own events.
    """
    gathered = list(batches)
    if not gathered:
        return
    table = _as_events(decoded(pa.Table.from_batches(gathered).rename_columns(events.names), codes), events, codes)
    del gathered
    table, own = with_own_rows(plan, table) if sliced else (table, WHOLE)
    context = TaskContext.get()
    cores = 1 if context is None else context.cpus()
    # as many tasks as cores allow may share this machine
    matches = answer(plan, table, own=own, threads=cores, concurrent=max(1, (os.cpu_count() or 1) // cores))
    if plan.settings.output == "compressed":
        matches = _as_part(matches, 0 if context is None else context.partitionId())
    yield from _as_promised(matches, result).to_batches(max_chunksize=RESULT_ROWS)


def _as_events(table: pa.Table, events: pa.Schema, codes: Codes) -> pa.Table:
    """`table` in the types of `events`, but for text that came as codes."""
    fields = [table.schema.field(number) if number in codes else field for number, field in enumerate(events)]
    columns = [_cast(column, field) for column, field in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as fault:
        raise EventError(f"column {field.name!r}: {fault}") from fault


def without_rows(schema: pa.Schema) -> pa.Schema:
    """The schema of a compressed result without the input row numbers, which a DataFrame's rows do not have."""
    return schema.remove(schema.get_field_index("row"))


def _as_part(nodes: pa.Table, partition: int) -> pa.Table:
    """The nodes of a compressed result, numbered within the Spark partition that they come from."""
    part = pa.array([partition] * nodes.num_rows, pa.int64())
    return nodes.set_column(nodes.schema.get_field_index("part"), "part", part).drop_columns("row")


def _as_promised(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` in Spark's types: durations, for one, are microseconds there."""
    # only what differs is cast: pyarrow cannot cast lists of structs that hold a column of type null, not even to themselves
    pairs = zip(table.columns, schema.types, strict=True)
    return pa.Table.from_arrays([column if column.type == promised else column.cast(promised) for column, promised in pairs], schema=schema)
