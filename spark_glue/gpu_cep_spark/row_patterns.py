"""Match SQL's row patterns on Spark: bound on the driver, shuffled once by PARTITION BY, matched in tasks."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.engine.row_patterns.answers import row_pattern_schema
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, warn_caller
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.settings import Settings
from gpu_cep.query_plans import bind_rows, check_row_settings, check_rows, columns_of_rows
from gpu_cep_spark.jobs import pattern_text, run_stage
from gpu_cep_spark.pushdown import column, read_columns
from gpu_cep_spark.rapids import warn_of_types
from gpu_cep_spark.row_worker import RowWork
from gpu_cep_spark.run_report import RunReport
from gpu_cep_spark.schemas import spark_schema
from gpu_cep_spark.shuffle_tasks import shuffle
from gpu_cep_spark.slice_choice import AUTO
from gpu_cep_spark.ties import has_order

RowPattern = str | RowPatternQuery

_ONE_TASK = "MATCH_RECOGNIZE has no PARTITION BY: all rows go to one task; PARTITION BY divides them among tasks"


@dataclass(frozen=True, slots=True)
class NarrowRows:
    """A row pattern bound to only the columns that it reads; `rows` is the schema of these columns."""

    pattern: RowPattern
    rows: pa.Schema
    bound: BoundRowPattern
    options: Options
    settings: Settings

    @classmethod
    def of(cls, pattern: RowPattern, rows: pa.Schema, options: Options, settings: Settings) -> NarrowRows:
        """Bind the pattern to rows of the schema `rows`; all its errors are raised."""
        check_row_settings(settings)
        if not rows.names:
            raise PatternError("the rows have no column")
        narrow = pa.schema([rows.field(name) for name in columns_of_rows(pattern, rows, options)])
        bound = bind_rows(pattern, narrow, options)
        check_rows(bound, narrow, options)
        return cls(pattern, narrow, bound, options, settings)

    @property
    def result(self) -> pa.Schema:
        """The columns of the result."""
        return row_pattern_schema(self.bound, self.rows)

    def work(self, memory: int | None = None) -> RowWork:
        """Return the work on each Spark partition; a worker may take `memory` bytes."""
        ties, text = _ties(self.bound), pattern_text(self.pattern)
        return RowWork(self.bound, self.options, text, self.rows, ties, self.result, memory, self.settings.max_steps)


def _ties(bound: BoundRowPattern) -> tuple[int, ...]:
    """Return the columns that order rows which ORDER BY leaves equal: all others that have an order."""
    settled = {*bound.partition_by, *(each.column for each in bound.order_by)}
    types = [attribute.type for attribute in bound.schema.attributes]
    return tuple(number for number, type in enumerate(types) if number not in settled and has_order(type))


def check_road(slices: float | str | None, scan: str) -> None:
    """Raise UnsupportedError where rows of a row pattern are to be cut into slices, or read by tasks."""
    faults = []
    if slices is not None and slices != AUTO:
        message = f"slices={slices!r} is not supported for MATCH_RECOGNIZE: where a match may begin depends on the match before"
        faults.append(Diagnostic(message, hint="supported: slices='auto' or None; PARTITION BY divides the rows"))
    if scan == "files":
        message = "scan='files' is not supported for MATCH_RECOGNIZE"
        faults.append(Diagnostic(message, hint="supported: scan='auto' or 'spark'"))
    if faults:
        raise UnsupportedError(faults)


def match_row_pattern(df: DataFrame, query: NarrowRows, zone: str, memory: int | None, report: RunReport | None) -> DataFrame:
    """Return the rows that a row pattern returns; each partition of it is whole in one task."""
    keys = [F.col(f"c{key}") for key in query.bound.partition_by]
    if not keys:
        warn_caller(_ONE_TASK, UserWarning)
    if report is not None:
        report.tell_scan("Spark reads the rows")
        report.tell_streams("partitions are whole: a row pattern is not cut into slices")
    read = read_columns(df, query.rows.names)
    sent = read.select(*(column(name).alias(f"c{number}") for number, name in enumerate(query.rows.names)))
    warn_of_types(sent, query.rows.names, spark_schema(query.result))
    return run_stage(shuffle(sent, keys), query.work(memory), zone, report)
