"""Match SQL's row patterns on Spark: bound on the driver, shuffled once by PARTITION BY, matched in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.engine.output.row_patterns import row_pattern_schema
from gpu_cep.engine.row_patterns.slices import ENDS, skips_rows
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, warn_caller
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.row_plans import bind_rows, check_row_settings, check_rows, columns_of_rows, make_row_plan
from gpu_cep_spark.jobs import pattern_text, run_stage
from gpu_cep_spark.narrowing.pushdown import column, read_columns
from gpu_cep_spark.narrowing.ties import has_order
from gpu_cep_spark.rapids import warn_of_types
from gpu_cep_spark.reports.run_report import RunReport
from gpu_cep_spark.schemas import refuse_unsent, spark_schema
from gpu_cep_spark.slices.choice import AUTO
from gpu_cep_spark.slices.cut import in_slices, number_of
from gpu_cep_spark.slices.row_slices import assemble_rows, choose_row_slicing
from gpu_cep_spark.slices.shuffle_tasks import shuffle
from gpu_cep_spark.tasks.row_worker import RowWork

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
        plan = make_row_plan(pattern, narrow, options)
        refuse_unsent(narrow)
        check_rows(plan, narrow)
        return cls(pattern, narrow, plan.bound, options, settings)

    @property
    def text(self) -> str | None:
        """Return the text that errors quote."""
        return self.pattern if isinstance(self.pattern, str) else None

    @property
    def result(self) -> pa.Schema:
        """Return the columns of the result."""
        return row_pattern_schema(self.bound, self.rows)

    @property
    def plan(self) -> RowPlan:
        """Return the plan of the pattern."""
        return make_row_plan(self.pattern, self.rows, self.options, self.settings)

    def work(self, memory: int | None = None) -> RowWork:
        """Return the work on each Spark partition; a worker may take `memory` bytes."""
        ties, text = ties_of(self.bound), pattern_text(self.pattern)
        return RowWork(self.bound, self.options, text, self.rows, ties, self.result, self.settings, memory)

    def sliced_work(self, memory: int | None = None) -> RowWork:
        """Return the work on each Spark partition of rows that are cut into slices, whose result has columns called by number."""
        name = next(name for name in (f"slice{'_' * length}" for length in count()) if not _is_taken(name, self.rows, self.bound))
        rows = self.rows.append(pa.field(name, pa.int64()))
        options = replace(self.options, partition_by=(name,))
        bound = bind_rows(self.pattern, rows, options)
        types = [*self.result.types, *(field.type for field in ENDS if skips_rows(bound))]
        result = pa.schema([(f"c{number}", type) for number, type in enumerate(types)])
        ties, text = ties_of(self.bound), pattern_text(self.pattern)
        return RowWork(bound, options, text, rows, ties, result, self.settings, memory, sliced=True)


def _is_taken(name: str, rows: pa.Schema, bound: BoundRowPattern) -> bool:
    """Return whether a column of the rows, or of the result, has a name, whatever its case."""
    return name in {each.lower() for each in (*rows.names, *(measure.name for measure in bound.measures))}


def ties_of(bound: BoundRowPattern) -> tuple[int, ...]:
    """Return the columns that order rows which ORDER BY leaves equal: all others that have an order."""
    settled = {*bound.partition_by, *(each.column for each in bound.order_by)}
    types = [attribute.type for attribute in bound.schema.attributes]
    return tuple(number for number, type in enumerate(types) if number not in settled and has_order(type))


def check_scan_and_rare(scan: str, rare: Sequence[str] | None) -> None:
    """Raise UnsupportedError where rows of a row pattern are to be read by tasks, or to be left out."""
    by_tasks, left_out = scan not in ("auto", "spark"), rare not in ((AUTO,), None)
    asked = {f"scan={scan!r}": (by_tasks, "scan='auto' or 'spark'"), "rare=": (left_out, "rare=None")}
    faults = [
        Diagnostic(f"{what} is not supported for MATCH_RECOGNIZE", hint=f"supported: {instead}")
        for what, (given, instead) in asked.items()
        if given
    ]
    if faults:
        raise UnsupportedError(faults)


def match_row_pattern(
    df: DataFrame, query: NarrowRows, slices: float | str | None, zone: str, memory: int | None, report: RunReport | None
) -> DataFrame:  # fmt: skip
    """Return the rows that a row pattern returns; each partition of it is whole in one task, or is cut into slices of time."""
    slicing, why = choose_row_slicing(query.plan, slices, query.options.time_unit, df, query.rows)
    keys = [F.col(f"c{key}") for key in query.bound.partition_by]
    if not keys and slicing is None:
        warn_caller(f"{_ONE_TASK} ({why})", UserWarning)
    if report is not None:
        report.tell_scan(f"Spark reads the rows; {why}")
        report.tell_streams(why)
    read = read_columns(df, query.rows.names)
    sent = read.select(*(column(name).alias(f"c{number}") for number, name in enumerate(query.rows.names)))
    warn_of_types(sent, query.rows.names, spark_schema(query.result))
    if slicing is None:
        work = query.work(memory)
        return run_stage(shuffle(sent, keys), work, spark_schema(work.result), zone, report)
    time = query.bound.order_by[0].column
    cut = in_slices(sent, [], F.col(f"c{time}"), query.bound.schema.attributes[time].type.kind, slicing)
    work, shuffled = query.sliced_work(memory), shuffle(cut, [number_of(F.col(cut.columns[-1]))])
    found = run_stage(shuffled, work, spark_schema(work.result), zone, report)
    return assemble_rows(found, query.result.names, candidates=skips_rows(query.bound))
