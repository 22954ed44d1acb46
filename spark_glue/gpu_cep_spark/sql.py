"""Register the table function for SQL: ``SELECT * FROM gpu_match(TABLE(events), pattern => '…')``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, PartitioningColumn, SelectedColumn, UserDefinedTableFunction
from pyspark.util import PythonEvalType

from gpu_cep.analysis.options import Options
from gpu_cep.engine.answers import answer_schema
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, nearest
from gpu_cep.keywords import Functions, SparkOptions, read_keywords
from gpu_cep.plan.settings import Settings, memory_bytes
from gpu_cep.query_plans import is_row_pattern
from gpu_cep_spark.handshake import Stage, make_stage
from gpu_cep_spark.jobs import keys_of_shuffle, pattern_text
from gpu_cep_spark.matching import check_settings
from gpu_cep_spark.narrow_queries import NarrowQuery
from gpu_cep_spark.pushdown import quote
from gpu_cep_spark.row_patterns import NarrowRows
from gpu_cep_spark.row_worker import RowWork
from gpu_cep_spark.schemas import arrow_schema, batch_schema, spark_schema
from gpu_cep_spark.worker import Work

# Buckets of streams for each partition of a shuffle, enough that hashing spreads them evenly.
BUCKETS_PER_PARTITION = 4

# Keywords of the table function. register() takes the functions; slices, reports and tuning are for DataFrames only.
_IN_SQL = (*(name for name in SparkOptions.__annotations__ if name not in ("functions", "tuning")), "worker_memory")


@dataclass(frozen=True, slots=True)
class Registration:
    """A table function's name, with the time zone, number of buckets and functions of its session."""

    name: str
    zone: str
    buckets: int
    functions: Functions


def register(spark: SparkSession, name: str = "gpu_match", *, functions: Functions = None) -> None:
    """Register the table function `name` in the SQL of a session, also of Spark Connect.

    ``SELECT * FROM gpu_match(TABLE(events), pattern => '…')`` gives the rows of
    :func:`gpu_cep.gpu_match` and takes its keywords. Several names, as in
    ``partition_by``, are written ``array('a', 'b')``. The schema is known, and
    errors are raised, when the query is analysed.

    Write TABLE(…) without PARTITION BY, which would call the function once for
    every key. The function has Spark distribute the rows by the keys of their
    streams, many streams to a call. Events without any key all
    go to one task. All rows are shuffled, except those that a WHERE inside
    TABLE(SELECT …) leaves out. :func:`gpu_cep.gpu_match` is better at both: it
    cuts streams into slices, and pushes filters down. If there are no events,
    Spark does not call the function, and a count has no row.

    Parameters
    ----------
    spark
        The session.
    name
        The name of the function in SQL.
    functions
        The functions that patterns may call, as in :func:`gpu_cep.match`.

    Raises
    ------
    PatternError
        `spark` is no session, or `name` no text.
    pyspark.errors.AnalysisException
        When a query is analysed, if the pattern, a keyword or the table has an error; the message says which.
    """
    _check_registration(spark, name)
    conf = spark.conf
    buckets = BUCKETS_PER_PARTITION * int(str(conf.get("spark.sql.shuffle.partitions")))
    registration = Registration(name, str(conf.get("spark.sql.session.timeZone")), buckets, functions)
    spark.udtf.register(name, _table_function_type(spark)(_handler(registration), None, name, PythonEvalType.SQL_ARROW_UDTF))


def _check_registration(spark: object, name: object) -> None:
    if not hasattr(spark, "udtf"):
        raise PatternError(f"register() takes the session of Spark first, register(spark), not {spark!r}")
    if not isinstance(name, str):
        raise PatternError(f"name must be text, the function's name in SQL, not {name!r}")


def _table_function_type(spark: SparkSession) -> Callable[..., UserDefinedTableFunction]:
    """Return the class of table functions for this kind of session; Spark Connect has its own."""
    if isinstance(spark, SparkSession):
        return UserDefinedTableFunction
    from pyspark.sql.connect.udtf import UserDefinedTableFunction as ConnectTableFunction

    return ConnectTableFunction


def _handler(registration: Registration) -> type:
    """Return the class of the table function, which Spark calls with the rows."""
    known: bytes = cloudpickle.dumps(registration)

    # cloudpickle sends a nested class by value. It imports this package only when a query is analysed: on an executor that
    # lacks the package, the stage itself reports that.
    class Matching:
        """The table function: it gathers the rows of one bucket of streams, and matches them after the last one."""

        def __init__(self, call: Any) -> None:
            self._stage: Stage = call.stage
            self._batches: list[pa.RecordBatch] = []

        @staticmethod
        def analyze(events: AnalyzeArgument, pattern: AnalyzeArgument, **keywords: AnalyzeArgument) -> AnalyzeResult:
            import pickle

            from gpu_cep.errors import CepError
            from gpu_cep_spark.sql import analyze_call

            try:
                return analyze_call(pickle.loads(known), events, pattern, keywords)
            except CepError as fault:
                # Spark would show the frames to the user
                raise fault.with_traceback(None) from None

        def eval(self, events: pa.RecordBatch, pattern: Any, **keywords: Any) -> Iterator[pa.RecordBatch]:
            self._batches.append(events)
            return iter(())

        def terminate(self) -> Iterator[pa.RecordBatch]:
            batches = self._batches
            # popped one by one, so that batches which the stage spills are freed here
            return self._stage(batches.pop() for _ in range(len(batches)))

    return Matching


def analyze_call(
    registration: Registration, events: AnalyzeArgument, pattern: AnalyzeArgument, keywords: Mapping[str, AnalyzeArgument]
) -> AnalyzeResult:  # fmt: skip
    """Return the result's schema, how Spark must distribute rows, and the stage that executors run.

    Raises
    ------
    PatternError, PatternSyntaxError, UnsupportedError
        The call has an error.
    """
    text = _check_call(registration, events, pattern, keywords)
    given = {name: _value(argument) for name, argument in keywords.items()} | {"functions": registration.functions}
    options, settings = read_keywords(given)
    memory = memory_bytes(given.get("worker_memory"), "worker_memory")
    return _call(registration, events.dataType, text, options, settings, memory)


def _call(registration: Registration, rows: Any, text: str, options: Options, settings: Settings, memory: int | None) -> AnalyzeResult:
    check_settings(settings)
    if settings.output == "compressed":
        raise UnsupportedError("output='compressed' is not supported in SQL; supported: matches, events, count")
    schema = arrow_schema(rows, registration.zone)
    if is_row_pattern(text):
        asked = NarrowRows.of(text, schema, options, settings)
        return _distribute(registration, asked.rows.names, asked.bound.partition_by, asked.work(memory))
    query = NarrowQuery.of(text, schema, options, settings)
    plan, events = query.plan, query.events
    # a stream is whole in one call: nothing follows that could add up the counts of its parts
    numbers = plan.query.partition_by if settings.output == "count" else keys_of_shuffle(plan)
    work = Work(plan, pattern_text(text), events, {}, numbers, answer_schema(plan, events), memory)
    return _distribute(registration, events.names, numbers, work)


def _distribute(registration: Registration, names: list[str], numbers: tuple[int, ...], work: Work | RowWork) -> AnalyzeResult:
    """Return what Spark must know: the result's schema, the columns to send, and those by whose values rows are distributed."""
    keys = [quote(names[number]) for number in numbers]
    schema = spark_schema(work.result)
    return _carry_stage(
        make_stage(replace(work, result=batch_schema(schema, registration.zone))),
        schema=schema,
        withSinglePartition=not keys,
        partitionBy=[PartitioningColumn(f"pmod(hash({', '.join(keys)}), {registration.buckets})")] if keys else [],
        select=[SelectedColumn(quote(name), f"c{number}") for number, name in enumerate(names)],
    )


def _carry_stage(stage: Stage, **told: Any) -> AnalyzeResult:
    """Return the result of an analysis, with the stage that executors run attached to it."""

    # nested, so that it travels by value, too
    @dataclass
    class Call(AnalyzeResult):
        stage: Any = None

    return Call(**told, stage=stage)


def _check_call(
    registration: Registration, events: AnalyzeArgument, pattern: AnalyzeArgument, keywords: Mapping[str, AnalyzeArgument]
) -> str:  # fmt: skip
    """Return the pattern of a call, or raise PatternError with all arguments that are of a wrong kind."""
    faults = []
    if not events.isTable or not isinstance(events.dataType, StructType):
        faults.append(Diagnostic(f"the first argument is a table: {registration.name}(TABLE(events), pattern => '…')"))
    if not isinstance(pattern.value, str):
        faults.append(Diagnostic("pattern must be constant text"))
    for name, argument in keywords.items():
        if name not in _IN_SQL:
            message = f"{registration.name} takes no {name}; it takes {', '.join(_IN_SQL)}"
            faults.append(Diagnostic(message, hint=nearest(name, _IN_SQL)))
        elif not argument.isConstantExpression:
            faults.append(Diagnostic(f"{name} must be a constant"))
    if faults:
        raise PatternError(faults)
    return str(pattern.value)


def _value(argument: AnalyzeArgument) -> Any:
    """Return the value of a constant for a Python keyword; SQL's fractions, decimals, become floats."""
    return float(argument.value) if isinstance(argument.value, Decimal) else argument.value
