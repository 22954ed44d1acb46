"""Give what a task finds, in the types and sizes of batches that Spark takes, with figures of its work and errors that name the pattern."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.errors import CepError, MatchLimitExceeded
from gpu_cep_spark.reports.run_report import add_figures
from gpu_cep_spark.tasks.devices import use_device_of_task

# The most rows and bytes of a batch that goes back to Spark, about those of the batches that Spark sends.
RESULT_ROWS, RESULT_BYTES = 1 << 16, 1 << 26
# The most bytes of one row that Arrow and Spark can hold.
MOST_BYTES = (1 << 31) - 1

Tables = Generator[pa.Table, None, None]


class AnyWork(Protocol):
    """The pattern, for error messages, and the result that Spark expects; the last column of that is for figures if it `reports`."""

    @property
    def pattern(self) -> str:
        """Return the pattern as one line of text."""

    @property
    def result(self) -> pa.Schema:
        """Return the schema that Spark expects."""

    @property
    def reports(self) -> bool:
        """Return whether the last row holds figures for a report, in the last column."""


def results_of_task(work: AnyWork, find: Callable[[TaskContext | None, Profile], Tables]) -> Iterator[pa.RecordBatch]:
    """Yield what a task finds, and at the end the figures of its report if those are asked for.

    ``find(context, profile)`` gives tables, and adds what it does to the profile. It may use the task's device.

    Raises
    ------
    CepError
        Any error of the engine, with the pattern added to the message.
    """
    context = TaskContext.get()
    use_device_of_task(context, os.environ)
    profile = Profile()
    profile.add("tasks", 1)
    plain = pa.schema(list(work.result)[:-1]) if work.reports else work.result
    with naming_pattern(work.pattern), closing(find(context, profile)) as tables:
        found = (as_promised(rows, plain) for rows in tables)
        yield from add_figures(found, profile, work.result) if work.reports else found


@contextmanager
def naming_pattern(pattern: str) -> Iterator[None]:
    """Add the pattern to the message of any error of the engine."""
    try:
        yield
    except CepError as fault:
        # without the frames of the engine, which tell a user nothing
        raise type(fault)(f"{fault}; the pattern is {pattern}") from None


def in_batches(table: pa.Table, most: int = RESULT_BYTES) -> Iterator[pa.Table]:
    """Yield the rows of `table` in tables small enough for Spark's batches, by halving it again and again.

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


def as_promised(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return `rows` as one batch in the types that Spark expects.

    Durations, for example, are microseconds there.
    """
    # only types that differ are cast: pyarrow cannot cast a list of structs with a column of type null, not even to the same type
    pairs = zip(rows.columns, schema.types, strict=True)
    columns = [(column if column.type == promised else column.cast(promised)).combine_chunks() for column, promised in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
