"""Match the events of one Spark partition on an executor, as many streams at a time as fit in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from gpu_cep.engine.accounting.match_budget import Spent
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import WHOLE, Own, OwnRows, TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.events.settling import Borders
from gpu_cep.engine.input.device.resident import AnyColumn, ResidentNumbers, ResidentTable, ResidentText
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import AS_GIVEN, Origin
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.slices.untimed import are_missing
from gpu_cep.errors import EventError
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep_spark.files.card_reading import read_to_card
from gpu_cep_spark.files.key_buckets import rows_of_bucket
from gpu_cep_spark.files.outside_events import OutsideEvents
from gpu_cep_spark.files.reading import Reading, Share, read_share, shares_of
from gpu_cep_spark.narrowing.codes import Codes, decode_columns
from gpu_cep_spark.slices.marks import OWN_BIT
from gpu_cep_spark.slices.own_rows import separate_own_rows, with_number, with_positions
from gpu_cep_spark.slices.sums import add_up, adds_up
from gpu_cep_spark.tasks.numbered_rows import NumberedRows, pack_rows
from gpu_cep_spark.tasks.packed_rows import PACKED, pack_settled
from gpu_cep_spark.tasks.results import Tables, as_promised, in_batches, results_of_task
from gpu_cep_spark.tasks.spill import Hashes, Room, spill_folder, stream_hashes, whole_streams
from gpu_cep_spark.tasks.worker_memory import bytes_of_events, tasks_at_once


@dataclass(frozen=True, slots=True)
class Work:
    """The work on each Spark partition, which holds whole streams or slices of them.

    Parameters
    ----------
    plan
        The plan, made for the columns of `events`.
    pattern
        The query as one line of text, for error messages.
    events
        The schema of the events, with the user's names; batches arrive with other names.
    codes
        The text columns that arrive as codes, with the constants that these stand for.
    keys
        The columns whose values identify a stream; rows with equal values stay together.
    result
        The schema that Spark expects of the result.
    memory
        The most bytes that a worker may take; None for a share of what there is.
    sliced
        Whether each slice that arrives is a stream. The last column then holds marks.
    reports
        Whether the last row of the result holds figures for a report, in the last column.
    files
        How to read the events from files; a partition then holds the numbers of what to read. None: it holds the events.
    packs
        Whether the rows of settled matches are packed; the columns of packed rows are then the last ones of `result` but for figures.
    numbering
        How matches will be numbered, if all rows are packed for that; `result` then has the columns of packed rows.
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
    files: Reading | None = None
    packs: bool = False
    numbering: NumberedRows | None = None


class TaskPart(NamedTuple):
    """Events that are matched together, and the time in which matches start.

    Of a slice of files these are also its `number`, and the latest time that an earlier slice's matches reach (None: there is none).
    Events that cuDF reads lie on the task's card.
    """

    events: pa.Table | ResidentTable
    time: TimeSlice
    number: int = 0
    reached: Tick | None = None


def match_partition(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the matches among the events of one Spark partition.

    Raises
    ------
    CepError
        Any error of the engine, with the pattern added to the message.
    """
    return results_of_task(work, partial(_find, work, batches))


def _find(work: Work, batches: Iterable[pa.RecordBatch], context: TaskContext | None, profile: Profile) -> Tables:
    """Yield the matches of a partition in tables that fit in Spark's batches."""
    with closing(parts_of(work, batches, room_for(work, context), profile)) as parts:
        found = _matches(work, context, _time_reading(parts, profile), profile)
        if work.numbering is not None:
            yield from pack_rows(work.numbering, found)
        else:
            yield from _settled_packed(work, context, found) if work.packs else found


def _settled_packed(work: Work, context: TaskContext | None, found: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the matches with those packed that the task has settled."""
    given = pa.schema(list(work.result)[: len(work.result) - work.reports])
    own = pa.schema(list(given)[:-PACKED])
    rows = (as_promised(table, own) for table in found)
    # a match's two ends are as many columns each
    return pack_settled(rows, given, 2 * len(work.plan.ends), 0 if context is None else context.partitionId())


def parts_of(work: Work, batches: Iterable[pa.RecordBatch], room: Room, profile: Profile) -> Generator[TaskPart, None, None]:
    """Yield the events of a partition in parts that fit in memory, each stream whole in one, or each slice of it."""
    if work.files is None:
        yield from (TaskPart(events, WHOLE) for events in whole_streams(batches, room))
        return
    for share in shares_of(work.files, batches):
        if work.files.to_card:
            events = read_to_card(work.files, share, work.plan.settings.gpu_memory, profile)
            if events.num_rows:
                yield TaskPart(events, share.own, share.number, share.reached)
            # not held while the next share is read
            del events
            continue
        for streams in whole_streams(_batches_of(work, work.files, share, profile), room):
            yield TaskPart(streams, share.own, share.number, share.reached)
            del streams


def _batches_of(work: Work, files: Reading, share: Share, profile: Profile) -> Iterator[pa.RecordBatch]:
    """Yield the events of a share of the files that are of its streams."""
    for events in read_share(files, share, profile, timed=work.plan.query.drops_untimed):
        if share.bucket is not None:
            events = events.filter(pa.array(rows_of_bucket(_columns_of(work, events), work.keys, share.bucket)))
        # popped one by one, so that batches which are spilled are freed here
        outside = OutsideEvents(work.plan, files, share, partial(_columns_of, work), profile)
        in_order = (outside.last_before(events), events, outside.one_behind(events))
        held = [batch for table in in_order[::-1] for batch in table.to_batches()[::-1]]
        del events, in_order
        while held:
            yield held.pop()


def _columns_of(work: Work, events: pa.Table) -> EventColumns:
    """Return the columns of events as they were read."""
    return EventColumns(as_events(events, work.events, work.codes), work.plan.query, threads=1)


def room_of(memory: int | None, hashes: Callable[[pa.Table], Hashes] | None, context: TaskContext | None) -> Room:
    """Return the bytes that a worker holds at a time, and the folder for the other events."""
    folder = spill_folder(os.environ, 0 if context is None else context.partitionId())
    return Room(bytes_of_events(memory, os.environ, tasks_at_once(context)), folder, hashes)


def room_for(work: Work, context: TaskContext | None) -> Room:
    """Return the bytes that the worker holds at a time, and the folder for the other events."""

    def hashes(batches: pa.Table) -> Hashes:
        events, _, _ = _own_events(work, TaskPart(batches, WHOLE))
        return stream_hashes(EventColumns(events, work.plan.query, threads=1), work.keys)

    return room_of(work.memory, hashes if work.keys else None, context)


def _time_reading(parts: Iterator[TaskPart], profile: Profile) -> Iterator[TaskPart]:
    """Yield the parts, and count in the profile the time spent waiting for them."""
    while True:
        with profile.stage("reading"):
            part = next(parts, None)
        if part is None:
            return
        profile.add("parts", 1)
        yield part
        del part


def _matches(work: Work, context: TaskContext | None, parts: Iterable[TaskPart], profile: Profile) -> Iterator[pa.Table]:
    """Yield the matches of one part after the other; max_matches and max_steps bound all parts together."""
    resources = Resources(1 if context is None else context.cpus(), profile, tasks_at_once(context), Spent())
    partition = 0 if context is None else context.partitionId()
    for number, part in enumerate(parts):
        events, own, borders = _own_events(work, part)
        if isinstance(own, OwnRows):
            profile.add("copies", len(own.marks) - int(own.marks.sum()))
        origin = AS_GIVEN if work.files is None else Origin(_plain(events.schema))
        matches = answer(work.plan, events, origin=origin, reported=Reported(own, borders=borders), resources=resources)
        # freed before the next part is gathered
        del part, events, own, borders
        if adds_up(work.plan):
            matches = add_up(work.plan, matches)
        if work.plan.settings.output == "compressed":
            matches = _as_part(matches, partition + (number << 32))
        yield from in_batches(matches)
        del matches


def _own_events(work: Work, part: TaskPart) -> tuple[pa.Table, Own, Borders | None]:
    """Return the events of a part, its own events, in which matches start, and what settles matches within slices."""
    events = as_events(part.events, work.events, work.codes)
    refuse_untimed(work, work.plan, events)
    if work.sliced:
        return separate_own_rows(work.plan, events)
    if work.plan.ends:
        # positions count the events with a time only
        events, _ = timed_events(work.plan.query, events)
    borders = Borders.of_times(part.time, part.reached) if work.plan.ends else None
    return with_positions(work.plan, with_number(work.plan, events, part.number)), part.time, borders


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with text that comes as dictionaries as plain text."""
    return pa.schema([field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema])


def refuse_untimed(work: Work, plan: AnyPlan, events: pa.Table) -> None:
    """Raise EventError if an event has no timestamp, before the engine does, which takes a partition's events for all there are."""
    times = events.column(plan.query.timestamp)
    if plan.query.drops_untimed or not are_missing(times):
        return
    times = to_host(events).column(plan.query.timestamp)
    marks = events.column(events.num_columns - 1) if work.sliced else None
    own = True if marks is None else pc.not_equal(pc.bit_wise_and(marks, OWN_BIT), 0)
    null, missing = pc.is_null(times), pc.is_null(times, nan_is_null=True)
    for what, flags in (("NULL", null), ("NaN", pc.xor(null, missing))):
        if pc.any(flags).as_py():
            raise EventError(_untimed(work.events.field(plan.query.timestamp).name, what, pc.sum(pc.and_(flags, own)).as_py()))


def _untimed(name: str, what: str, count: int) -> str:
    """Return a message about timestamps that are `what`; `count` of them are own events of this partition."""
    told = f"{count:,} {what}{'s' * (count > 1)} in one partition of the events" if count else f"{what}s"
    return f"timestamp column {name!r} holds {told}; nulls='drop' leaves these events out"


def as_events(batches: pa.Table | ResidentTable, schema: pa.Schema, codes: Codes) -> pa.Table | ResidentTable:
    """Return the batches with the names and types of events of `schema`.

    Text that arrived as codes, or as dictionaries of files, is dictionary-encoded. What is on the card stays there.
    """
    if isinstance(batches, ResidentTable):
        held = zip(batches.columns.values(), schema, strict=True)
        return ResidentTable(batches.device, {field.name: _typed(column, field) for column, field in held})
    table = decode_columns(batches.rename_columns(schema.names), codes)
    encoded = [pa.types.is_dictionary(kind) for kind in table.schema.types]
    fields = [table.schema.field(number) if encoded[number] else field for number, field in enumerate(schema)]
    columns = [cast_column(column, field) for column, field in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _typed(column: AnyColumn, field: pa.Field) -> AnyColumn:
    """Return a column as events have it; numbers on the card differ at most in the name of the time zone."""
    if isinstance(column, ResidentNumbers):
        return replace(column, kind=field.type)
    encoded = pa.types.is_dictionary(column.type) or isinstance(column, ResidentText)
    return column if encoded else cast_column(column, field)


def cast_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column in the type of `field`, or raise EventError that names it."""
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as fault:
        raise EventError(f"column {field.name!r}: {fault}") from fault


def without_rows(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a compressed result without row numbers: a DataFrame's rows have none."""
    return schema.remove(schema.get_field_index("row"))


def _as_part(nodes: pa.Table, part: int) -> pa.Table:
    """Return the nodes of a compressed result without row numbers, and with the part that they belong to."""
    numbers = pa.array([part] * nodes.num_rows, pa.int64())
    return nodes.set_column(nodes.schema.get_field_index("part"), "part", numbers).drop_columns("row")
