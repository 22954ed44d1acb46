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
from gpu_cep.errors import Diagnostic, PatternError, nearest
from gpu_cep.keywords import Functions, SparkOptions, read_keywords
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.plan.settings import Settings, memory_bytes
from gpu_cep.queries.row_plans import is_row_pattern
from gpu_cep.rule_sets.plans import PlannedRule
from gpu_cep.rule_sets.rules import Rule, as_rules, united
from gpu_cep.rule_sets.tables import check_columns
from gpu_cep_spark.jobs import keys_of_shuffle, pattern_text
from gpu_cep_spark.matching import check_spark_settings
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.narrowing.pushdown import quote
from gpu_cep_spark.row_patterns import NarrowRows
from gpu_cep_spark.rule_sets.matching import events_of_rules, plan_over, plan_spark_rules, refuse_output, result_of_rules
from gpu_cep_spark.schemas import arrow_schema, batch_schema, spark_schema
from gpu_cep_spark.slices.shuffle_tasks import shuffle_partitions
from gpu_cep_spark.tasks.handshake import Stage, make_stage
from gpu_cep_spark.tasks.row_worker import RowWork
from gpu_cep_spark.tasks.rule_worker import RuleWork
from gpu_cep_spark.tasks.worker import Work

# Buckets of streams for each partition of a shuffle, enough that hashing spreads them evenly.
BUCKETS_PER_PARTITION = 4

# Keywords of gpu_match() that the table function does not take, and what does.
_ELSEWHERE = {
    "functions": "register(spark, functions=…) takes the functions",
    "tuning": "gpu_cep.gpu_match() takes it, for a DataFrame",
    "timeouts": "gpu_cep.gpu_match() finds timeouts, of a DataFrame",
}
_IN_SQL = (*(name for name in SparkOptions.__annotations__ if name not in _ELSEWHERE), "worker_memory")
# The keyword of many patterns, by name.
_PATTERNS = "patterns"
# The time zone in which Spark takes instants from table functions, whatever the session's.
_ZONE = "UTC"
_STREAMS = "gpu_match() in SQL keeps no events from one micro-batch to the next; gpu_cep.gpu_match() takes a streaming DataFrame"


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
    :func:`gpu_cep.gpu_match` and takes its keywords. Several names, as in ``partition_by``,
    are written ``array('a', 'b')``. In place of `pattern`,
    ``patterns => map('name', '…', …)`` gives the rows of :func:`gpu_cep.gpu_match_all`. The
    schema is known, and errors are raised, when the query is analysed.

    Write TABLE(…) without PARTITION BY, which would call the function once for
    every key. The function has Spark distribute the rows by the keys of their
    streams, many streams to a call. Events without any key all
    go to one task. All rows are shuffled, except those that a WHERE inside
    TABLE(SELECT …) leaves out. :func:`gpu_cep.gpu_match` is better at both: it
    cuts streams into slices, and pushes filters down. If there are no events,
    Spark does not call the function, and a count has no row. Spark starts no streaming
    query with the function, which would match each micro-batch by itself.

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
        When a query is analysed, if the pattern, a keyword or the table has an error; the
        message says which.
    """
    _check_registration(spark, name)
    buckets = BUCKETS_PER_PARTITION * shuffle_partitions(spark)
    registration = Registration(name, str(spark.conf.get("spark.sql.session.timeZone")), buckets, functions)
    spark.udtf.register(name, _table_function_type(spark)(_handler(registration), None, name, PythonEvalType.SQL_ARROW_UDTF))


def table_function(zone: str, partitions: int) -> type:
    """Return the class of gpu_match for a session with a time zone and so many partitions of a shuffle.

    The extension of Spark's SQL (spark_glue/java) asks for it by name, where no
    :func:`register` was called.
    """
    return _handler(Registration("gpu_match", zone, BUCKETS_PER_PARTITION * partitions, None))


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
        def analyze(events: AnalyzeArgument, pattern: AnalyzeArgument | None = None, **keywords: AnalyzeArgument) -> AnalyzeResult:
            import pickle

            from gpu_cep.errors import CepError
            from gpu_cep_spark.sql import analyze_call

            try:
                return analyze_call(pickle.loads(known), events, pattern, keywords)
            except CepError as fault:
                # Spark would show the frames to the user
                raise fault.with_traceback(None) from None

        def eval(self, events: pa.RecordBatch, pattern: Any = None, **keywords: Any) -> Iterator[pa.RecordBatch]:
            self._batches.append(events)
            return iter(())

        def terminate(self) -> Iterator[pa.RecordBatch]:
            batches = self._batches
            # popped one by one, so that batches which the stage spills are freed here
            return self._stage(batches.pop() for _ in range(len(batches)))

    return Matching


def analyze_call(
    registration: Registration, events: AnalyzeArgument, pattern: AnalyzeArgument | None, keywords: Mapping[str, AnalyzeArgument]
) -> AnalyzeResult:  # fmt: skip
    """Return the result's schema, how Spark must distribute rows, and the stage that executors run.

    Raises
    ------
    PatternError, PatternSyntaxError, UnsupportedError
        The call has an error.
    """
    others = {name: argument for name, argument in keywords.items() if name != _PATTERNS}
    asked = _check_call(registration, events, pattern, keywords.get(_PATTERNS), others)
    given = {name: _value(argument) for name, argument in others.items()} | {"functions": registration.functions}
    memory = memory_bytes(given.pop("worker_memory", None), "worker_memory")
    if isinstance(asked, str):
        return _call(registration, events.dataType, asked, *read_keywords(given), memory)
    return _call_all(registration, events.dataType, as_rules(asked), given, memory)


def _call_all(
    registration: Registration, rows: Any, rules: Mapping[str, Rule], given: Mapping[str, Any], memory: int | None
) -> AnalyzeResult:  # fmt: skip
    """Return the analysis of a call with many patterns.

    Rows are distributed by the keys that all patterns have: events of one stream of any of them are then together.
    """
    refuse_output(given.get("output"), "in SQL")
    schema = arrow_schema(rows, registration.zone)
    queries, failed = plan_spark_rules(rules, given, schema)
    if failed:
        raise united(failed)
    events = events_of_rules(queries.values(), schema)
    planned = tuple(PlannedRule(name, plan_over(query, events)) for name, query in queries.items())
    check_columns({rule.name: answer_schema(rule.plan, events) for rule in planned})
    shared = frozenset.intersection(*(frozenset(_keys_of_call(rule.plan)) for rule in planned))
    result = spark_schema(result_of_rules(planned, events))
    work = Work(planned[0].plan, "", events, {}, tuple(sorted(shared)), batch_schema(result, _ZONE), memory)
    return _distribute(registration, events.names, work.keys, make_stage(RuleWork(work, planned)), result)


def _keys_of_call(plan: AnyPlan) -> tuple[int, ...]:
    """Return the keys by which a stream is whole in one call: nothing follows that could add up the counts of its parts."""
    return plan.query.partition_by if plan.settings.output == "count" else keys_of_shuffle(plan)


def _call(registration: Registration, rows: Any, text: str, options: Options, settings: Settings, memory: int | None) -> AnalyzeResult:
    refuse_output(settings.output, "in SQL")
    check_spark_settings(settings)
    schema = arrow_schema(rows, registration.zone)
    if is_row_pattern(text):
        asked = NarrowRows.of(text, schema, options, settings)
        stage, result = _stage_of(asked.work(memory))
        return _distribute(registration, asked.rows.names, asked.bound.partition_by, stage, result)
    query = NarrowQuery.of(text, schema, options, settings)
    plan, events = query.plan, query.events
    numbers = _keys_of_call(plan)
    stage, result = _stage_of(Work(plan, pattern_text(text), events, {}, numbers, answer_schema(plan, events), memory))
    return _distribute(registration, events.names, numbers, stage, result)


def _stage_of(work: Work | RowWork) -> tuple[Stage, StructType]:
    """Return the stage of a call with one pattern, and the schema of its result in Spark."""
    schema = spark_schema(work.result)
    return make_stage(replace(work, result=batch_schema(schema, _ZONE))), schema


def _distribute(registration: Registration, names: list[str], numbers: tuple[int, ...], stage: Stage, schema: StructType) -> AnalyzeResult:
    """Return what Spark must know: the result's schema, the columns to send, and those by whose values rows are distributed."""
    keys = [quote(names[number]) for number in numbers]
    return _carry_stage(
        stage,
        schema=schema,
        withSinglePartition=not keys,
        partitionBy=[PartitioningColumn(_of_tables(f"pmod(hash({', '.join(keys)}), {registration.buckets})"))] if keys else [],
        select=[SelectedColumn(quote(name) if number else _of_tables(quote(name)), f"c{number}") for number, name in enumerate(names)],
    )


def _of_tables(expression: str) -> str:
    """Return an expression of SQL as one that Spark refuses in a streaming query.

    The function is not told whether its table is a stream. Spark refuses `monotonically_increasing_id` there when the query
    starts, and shows the expression with what it says. Of other tables its optimizer leaves nothing but the given expression,
    since the identifier is never NULL.
    """
    return f"if(monotonically_increasing_id() IS NULL, raise_error('{_STREAMS}'), {expression})"


def _carry_stage(stage: Stage, **told: Any) -> AnalyzeResult:
    """Return the result of an analysis, with the stage that executors run attached to it."""

    # nested, so that it travels by value, too
    @dataclass
    class Call(AnalyzeResult):
        stage: Any = None

    return Call(**told, stage=stage)


def _check_call(
    registration: Registration, events: AnalyzeArgument, pattern: AnalyzeArgument | None, patterns: AnalyzeArgument | None,
    keywords: Mapping[str, AnalyzeArgument],
) -> str | dict[str, str]:  # fmt: skip
    """Return the pattern of a call, or its patterns by name; raise PatternError with all arguments that are of a wrong kind."""
    faults = []
    if not events.isTable or not isinstance(events.dataType, StructType):
        faults.append(Diagnostic(f"the first argument is a table: {registration.name}(TABLE(events), pattern => '…')"))
    if (pattern is None) == (patterns is None):
        faults.append(Diagnostic("give pattern => '…', or patterns => map('name', '…', …)"))
    if pattern is not None and not isinstance(pattern.value, str):
        faults.append(Diagnostic("pattern must be constant text"))
    if patterns is not None and not _is_map_of_texts(patterns):
        hint = "a call is analysed before a table is read: from Python, gpu_cep.gpu_match_all() takes the rows of one as a dictionary"
        faults.append(Diagnostic("patterns must be a constant map of names to texts, map('name', 'PATTERN …', …)", hint=hint))
    for name, argument in keywords.items():
        if name not in _IN_SQL:
            message = f"{registration.name} takes no {name}; it takes {', '.join((*_IN_SQL, _PATTERNS))}"
            faults.append(Diagnostic(message, hint=_ELSEWHERE.get(name) or nearest(name, (*_IN_SQL, _PATTERNS))))
        elif not argument.isConstantExpression:
            faults.append(Diagnostic(f"{name} must be a constant"))
    if faults:
        raise PatternError(faults)
    given: str | dict[str, str] = (pattern or patterns).value  # type: ignore[union-attr, assignment]
    return given


def _is_map_of_texts(argument: AnalyzeArgument) -> bool:
    given = argument.value
    return isinstance(given, dict) and all(isinstance(name, str) and isinstance(text, str) for name, text in given.items())


def _value(argument: AnalyzeArgument) -> Any:
    """Return the value of a constant for a Python keyword; SQL's fractions, decimals, become floats."""
    return float(argument.value) if isinstance(argument.value, Decimal) else argument.value
