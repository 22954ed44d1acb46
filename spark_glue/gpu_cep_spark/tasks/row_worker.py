"""Match a row pattern among the rows of one Spark partition on an executor, as many partitions of its own at a time as fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.row_patterns.answers import answer_row_pattern
from gpu_cep.engine.row_patterns.slices import answer_slices
from gpu_cep.plan.row_patterns.planner import plan_row_pattern
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.slices.marks import FLAG_BITS, OWN_BIT
from gpu_cep_spark.tasks.results import Tables, in_batches, results_of_task
from gpu_cep_spark.tasks.spill import Hashes, Room, stream_hashes, whole_streams
from gpu_cep_spark.tasks.worker import cast_column, room_of

OWN = pa.field("own", pa.bool_())


@dataclass(frozen=True, slots=True)
class RowWork:
    """The work on each Spark partition, which holds whole partitions of a row pattern.

    Parameters
    ----------
    bound, options
        The row pattern, bound to the columns of `rows`, and what the caller said beside its text.
    pattern
        The row pattern as one line of text, for error messages.
    rows
        The schema of the rows, with the user's names; batches arrive with other names.
    ties
        The columns that order rows which ORDER BY leaves equal.
    result
        The schema that Spark expects of the result.
    settings
        What the caller chose.
    memory
        The most bytes that a worker may take.
    sliced
        Whether the rows are those of slices: their last column says of which, and whether they belong to it, as
        :func:`gpu_cep_spark.slices.cut.in_slices` adds it. It stands for the last one of `rows`, by which `bound` divides them.
    reports
        Whether the last row of the result holds figures for a report, in the last column.
    """

    bound: BoundRowPattern
    options: Options
    pattern: str
    rows: pa.Schema
    ties: tuple[int, ...]
    result: pa.Schema
    settings: Settings
    memory: int | None = None
    sliced: bool = False
    reports: bool = False


def match_rows(work: RowWork, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a row pattern returns for the rows of one Spark partition.

    Raises
    ------
    CepError
        Any error of the engine, with the pattern added to the message.
    """
    return results_of_task(work, partial(_find, work, batches))


def _find(work: RowWork, batches: Iterable[pa.RecordBatch], context: TaskContext | None, profile: Profile) -> Tables:
    """Yield what the pattern returns for a partition, in tables that fit in Spark's batches."""
    with closing(whole_streams(batches, _room(work, context))) as parts:
        yield from _answers(work, context, parts, profile)


def _room(work: RowWork, context: TaskContext | None) -> Room:
    """Return the bytes of rows that the worker holds at a time, and the folder for the others."""
    keys = work.bound.partition_by
    columns = BoundQuery(
        schema=work.bound.schema, computed=(), variables=(), conditions=(), returns=(), window=None, timestamp=0,
        partition_by=keys, order_by=(),
    )  # fmt: skip

    def hashes(rows: pa.Table) -> Hashes:
        return stream_hashes(EventColumns(_named(work, rows), columns, threads=1), keys)

    return room_of(work.memory, hashes if keys else None, context)


def _answers(work: RowWork, context: TaskContext | None, parts: Iterable[pa.Table], profile: Profile) -> Iterator[pa.Table]:
    """Yield what the pattern returns for one part after the other."""
    cores = 1 if context is None else context.cpus()
    answer = _of_slices if work.sliced else partial(_of_partitions, plan_row_pattern(work.bound, work.settings))
    for part in parts:
        profile.add("parts", 1)
        profile.add("events", part.num_rows)
        rows = _named(work, part)
        found = answer(work, rows, cores, profile)
        # freed before the next part is gathered
        del part, rows
        yield from in_batches(found)
        del found


def _of_partitions(plan: RowPlan, work: RowWork, rows: pa.Table, cores: int, profile: Profile) -> pa.Table:
    return answer_row_pattern(plan, rows, work.settings.max_steps, threads=cores, profile=profile, ties=work.ties)


def _of_slices(work: RowWork, rows: pa.Table, cores: int, profile: Profile) -> pa.Table:
    """Return what the pattern returns for slices, without their numbers."""
    own = rows.column(rows.num_columns - 1).to_numpy()
    given = rows.select(range(rows.num_columns - 1))
    return answer_slices(work.bound, given, own, work.settings, threads=cores, profile=profile, ties=work.ties).remove_column(0)


def _named(work: RowWork, batches: pa.Table) -> pa.Table:
    """Return batches with the names and types of the rows; behind those of slices, whether they belong to the slice."""
    if not work.sliced:
        columns = [cast_column(column, field) for column, field in zip(batches.columns, work.rows, strict=True)]
        return pa.Table.from_arrays(columns, schema=work.rows)
    *columns, marks = batches.columns
    number, own = pc.shift_right(marks, FLAG_BITS), pc.equal(pc.bit_wise_and(marks, OWN_BIT), OWN_BIT)
    named = [cast_column(column, field) for column, field in zip([*columns, number], work.rows, strict=True)]
    return pa.Table.from_arrays([*named, own], schema=pa.schema([*work.rows, OWN]))
