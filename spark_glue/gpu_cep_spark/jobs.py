"""Hold one call of gpu_match, and make the Python stage by which workers answer it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from gpu_cep.lang.format import format_query
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.queries.plans import as_query
from gpu_cep_spark.files.reading import Reading
from gpu_cep_spark.narrowing.codes import Codes
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.rapids import warn_of_types
from gpu_cep_spark.reports.run_report import RunReport, add_figures_column
from gpu_cep_spark.schemas import batch_schema, spark_schema
from gpu_cep_spark.tasks.handshake import make_stage
from gpu_cep_spark.tasks.numbered_rows import SENT
from gpu_cep_spark.tasks.packed_rows import add_packed_columns
from gpu_cep_spark.tasks.row_worker import RowWork
from gpu_cep_spark.tasks.worker import Work

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern

# Characters of a query that errors show.
LONGEST_TEXT = 500


@dataclass(frozen=True, slots=True)
class Job:
    """One call of :func:`gpu_match`: events, query, session's time zone, worker's memory and report."""

    df: DataFrame
    query: NarrowQuery
    zone: str
    memory: int | None
    report: RunReport | None

    def work(self, plan: AnyPlan, events: pa.Schema, codes: Codes, result: pa.Schema, files: Reading | None = None) -> Work:
        """Return the work on partitions of whole streams, or, of `files`, of the numbers of what tasks read themselves."""
        return Work(plan, pattern_text(self.query.pattern), events, codes, keys_of_shuffle(plan), result, self.memory, files=files)

    def run(self, given: DataFrame, work: Work) -> DataFrame:
        """Return the rows that workers find in the partitions of `given`."""
        if work.files is None:
            warn_of_types(given, work.events.names, spark_schema(work.result))
        return run_stage(given, work, _returned(work), self.zone, self.report)


def _returned(work: Work) -> StructType:
    """Return the schema of what workers return: packed rows for those that number matches, or the result, where rows may be packed."""
    if work.numbering is not None:
        return SENT
    result = spark_schema(work.result)
    return add_packed_columns(result) if work.packs else result


def run_stage(given: DataFrame, work: Work | RowWork, returned: StructType, zone: str, report: RunReport | None) -> DataFrame:
    """Return the rows, of schema `returned`, that workers find in the partitions of `given`; `report` receives their figures."""
    if report is None:
        return given.mapInArrow(make_stage(replace(work, result=batch_schema(returned, zone))), returned)
    reported, figures = add_figures_column(returned)
    work = replace(work, result=batch_schema(reported, zone), reports=True)
    return report.observe(given.mapInArrow(make_stage(work), reported), figures)


def keys_of_shuffle(plan: Plan) -> tuple[int, ...]:
    """Return the columns by whose values rows may be sent to different partitions."""
    # these need all matches of a partition_by stream in one place, though derived keys would split it further
    settings = plan.settings
    together = settings.output == "events" or settings.after_match == "skip_past_last" or plan.ends
    return plan.query.partition_by if together else plan.stream_keys


def counts_in_parts(plan: AnyPlan) -> bool:
    """Return whether several partitions may count matches of one stream."""
    return plan.settings.output == "count" and bool(plan.derived or not plan.query.partition_by)


def pattern_text(pattern: Pattern) -> str:
    """Return the query as one short line, for the errors of tasks."""
    known = pattern if isinstance(pattern, str | RowPatternQuery) else as_query(pattern)
    text = known if isinstance(known, str) else format_query(known)
    return shorten(text, LONGEST_TEXT)
