"""What runs on an executor: the events of one Spark partition through the engine, as many streams at a time as there is memory for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.engine.accounting.budget import Spent
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.answers import AnyPlan, answer
from gpu_cep.engine.events.own_events import WHOLE, Own, OwnRows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.errors import CepError, EventError, MatchLimitExceeded
from gpu_cep_spark.codes import Codes, decode_columns
from gpu_cep_spark.devices import use_device_of_task
from gpu_cep_spark.own_rows import separate_own_rows
from gpu_cep_spark.run_report import add_figures
from gpu_cep_spark.spill import Hashes, Room, spill_folder, stream_hashes, whole_streams
from gpu_cep_spark.worker_memory import bytes_of_events, tasks_at_once

# Rows and bytes of the batches that go back to Spark: what it takes by itself of the ones that it sends.
RESULT_ROWS, RESULT_BYTES = 1 << 16, 1 << 26
# Bytes of one row that Arrow and Spark can hold.
MOST_BYTES = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked of each Spark partition, which holds whole streams, or whole slices of some.

    Parameters
    ----------
    plan
        Made for the columns of `events`.
    pattern
        The query, as errors name it.
    events
        The columns of batches under their own names; Spark gives them others on the way.
    codes
        The text columns that arrive as codes.
    keys
        The columns whose values keep a stream together.
    result
        What Spark was told to expect.
    memory
        Bytes that a worker may take; None: a share of what there is.
    sliced
        Whether streams are slices; the last column then has twice their numbers, and one more for their own events.
    reports
        Whether a last row, in a last column, says what was done.
    """

    plan: AnyPlan
    pattern: str
    events: pa.Schema
    codes: Codes
    keys: tuple[int, ...]
    result: pa.Schema
    memory: int | None = None
    sliced: bool = False
    reports: bool = False


def match_partition(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches among the events of one partition.

    Raises
    ------
    CepError
        What the engine raises; the message names the pattern, too.
    """
    context = TaskContext.get()
    use_device_of_task(context, os.environ)
    profile = Profile()
    profile.add("tasks", 1)
    plain = pa.schema(list(work.result)[:-1]) if work.reports else work.result
    try:
        with closing(whole_streams(batches, _room(work, context))) as parts:
            matches = (_as_promised(rows, plain) for rows in _matches(work, context, _time_reading(parts, profile), profile))
            yield from add_figures(matches, profile, work.result) if work.reports else matches
    except CepError as fault:
        # the frames between here and the fault tell a user nothing
        raise type(fault)(f"{fault}; the pattern is {work.pattern}") from None


def _room(work: Work, context: TaskContext | None) -> Room:
    folder = spill_folder(os.environ, 0 if context is None else context.partitionId())
    limit = bytes_of_events(work.memory, os.environ, tasks_at_once(context))

    def hashes(batches: pa.Table) -> Hashes:
        events, _ = _own_events(work, batches)
        return stream_hashes(EventColumns(events, work.plan.query), work.keys)

    return Room(limit, folder, hashes if work.keys else None)


def _time_reading(parts: Iterator[pa.Table], profile: Profile) -> Iterator[pa.Table]:
    """The parts; how long they were waited for goes into the profile."""
    while True:
        with profile.stage("reading"):
            part = next(parts, None)
        if part is None:
            return
        profile.add("parts", 1)
        yield part
        del part


def _matches(work: Work, context: TaskContext | None, parts: Iterable[pa.Table], profile: Profile) -> Iterator[pa.Table]:
    """The matches of part after part; bounds are for all of them together."""
    cores, concurrent, spent = 1 if context is None else context.cpus(), tasks_at_once(context), Spent()
    partition = 0 if context is None else context.partitionId()
    for number, part in enumerate(parts):
        events, own = _own_events(work, part)
        if isinstance(own, OwnRows):
            profile.add("copies", len(own.marks) - int(own.marks.sum()))
        matches = answer(work.plan, events, own=own, threads=cores, profile=profile, concurrent=concurrent, spent=spent)
        # what is done with is not kept while the next part is gathered
        del part, events, own
        if work.plan.settings.output == "compressed":
            matches = _as_part(matches, partition + (number << 32))
        yield from in_batches(matches)
        del matches


def _own_events(work: Work, part: pa.Table) -> tuple[pa.Table, Own]:
    """The events of a part, and among which of them matches may start."""
    events = _as_events(work, part)
    return separate_own_rows(work.plan, events) if work.sliced else (events, WHOLE)


def _as_events(work: Work, batches: pa.Table) -> pa.Table:
    """Batches in the columns and types of events, but for text that came as codes."""
    table = decode_columns(batches.rename_columns(work.events.names), work.codes)
    fields = [table.schema.field(number) if number in work.codes else field for number, field in enumerate(work.events)]
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


def _as_part(nodes: pa.Table, part: int) -> pa.Table:
    """The nodes of a compressed result, numbered within a part of the events."""
    numbers = pa.array([part] * nodes.num_rows, pa.int64())
    return nodes.set_column(nodes.schema.get_field_index("part"), "part", numbers).drop_columns("row")


def in_batches(table: pa.Table, most: int = RESULT_BYTES) -> Iterator[pa.Table]:
    """The rows of `table` in tables that Spark takes as batches: halved until they are small enough.

    Raises
    ------
    MatchLimitExceeded
        A single row is too large for Arrow.
    """
    if table.num_rows > 1 and (table.num_rows > RESULT_ROWS or table.nbytes > most):
        half = table.num_rows // 2
        yield from in_batches(table.slice(0, half), most)
        yield from in_batches(table.slice(half), most)
    elif table.num_rows == 1 and table.nbytes > MOST_BYTES:
        remedy = "use output='events', output='count' or columns="
        raise MatchLimitExceeded(f"one row of the result takes {table.nbytes:,} bytes, and Arrow holds {MOST_BYTES:,}; {remedy}")
    elif table.num_rows:
        yield table


def _as_promised(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """`rows` as one batch in Spark's types: durations, for one, are microseconds there."""
    # only what differs is cast: pyarrow cannot cast lists of structs that hold a column of type null, not even to themselves
    pairs = zip(rows.columns, schema.types, strict=True)
    columns = [(column if column.type == promised else column.cast(promised)).combine_chunks() for column, promised in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
