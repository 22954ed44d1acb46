"""The engine under Spark: push-down, one shuffle by stream key, one Python stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from textwrap import shorten
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.api import match
from gpu_cep.engine.answers import AnyPlan, answer_schema
from gpu_cep.errors import Diagnostic, EventError, UnsupportedError
from gpu_cep.keywords import SparkOptions, read_keywords, takes_keywords
from gpu_cep.lang.format import format_query
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.settings import EVENT_ALGORITHMS, Settings, memory_bytes
from gpu_cep.query_plans import as_query
from gpu_cep_spark.assembly import assemble, total_counts
from gpu_cep_spark.codes import Codes, code, coded_columns
from gpu_cep_spark.handshake import make_stage
from gpu_cep_spark.narrow_queries import NarrowQuery, SlicedQuery, time_kind
from gpu_cep_spark.pushdown import column, event_filter
from gpu_cep_spark.rapids import warn_of_types
from gpu_cep_spark.run_report import RunReport, add_figures_column
from gpu_cep_spark.schemas import arrow_schema, batch_schema, spark_schema
from gpu_cep_spark.slices import AUTO, Slicing, in_slices, number_of, slicing_of
from gpu_cep_spark.statistics import time_span
from gpu_cep_spark.worker import Work, without_rows

if TYPE_CHECKING:
    from gpu_cep.query_plans import Pattern

# Characters of a query that errors show.
LONGEST_TEXT = 500


@takes_keywords(match, SparkOptions)
def gpu_match(
    df: DataFrame,
    pattern: Pattern,
    *,
    worker_memory: int | str | None = None,
    slices: float | str | None = AUTO,
    report: RunReport | None = None,
    **keywords: Unpack[SparkOptions],
) -> DataFrame:
    """Find the matches of `pattern` among the events of a Spark DataFrame.

    Nothing runs until the result is asked for; faults of the query are raised
    at once. The events are filtered by the pattern's properties, shuffled by
    the keys of their streams and matched by the engine of
    :func:`gpu_cep.match`, once per Spark partition. Streams whose matches
    last no longer than a window of time are cut into slices of time, which
    are shuffled apart; other streams are whole in one partition, all events
    if there is no key.

    Parameters
    ----------
    df
        The events; a classic or a Spark Connect DataFrame.
    pattern
        As in :func:`gpu_cep.match`.
    engine, gpu_memory
        As in :func:`gpu_cep.match`; each executor decides for itself, with
        one task's cores and memory in view. Where ``gpu`` cannot be used on
        an executor, the job fails with EngineUnavailable and its cause.
    order_by
        Columns that order events of one time. Rows of a DataFrame have no
        position: ties that `order_by` leaves are broken by the other columns
        that the query reads, in order.
    functions
        As in :func:`gpu_cep.match`; they travel to the executors, where they
        are compiled. A function of a module is looked up in that module there.
    output
        "matches", "events", "count" or "compressed": the nodes of which
        ``gpu_cep.Compressed.from_table(df.toArrow())`` makes one object again.
    max_matches, max_steps
        Bounds on the matches, and on the steps made to find them, of one Spark partition.
    worker_memory
        What a Python worker may take for events and what is made of them: a
        number of bytes, or text such as ``"4GB"``. Streams that do not fit
        wait on the executor's local disk. Left out, it is what
        ``spark.executor.pyspark.memory`` gives to a worker, or a share of the
        memory that is free. A stream by itself may take more.
    slices
        How long slices of time are: a number of ticks of the timestamp, or
        text such as ``30 minutes``, at least the window; ``auto`` chooses, and
        leaves streams whole that cannot be cut; None leaves all streams whole.
    report
        Receives what the workers did, once the result has been computed.
    **keywords
        As in :func:`gpu_cep.match`.

    Returns
    -------
    DataFrame
        With the columns of :func:`gpu_cep.match`, in no particular order.

    Raises
    ------
    PatternSyntaxError, PatternError
        The query is at fault.
    UnsupportedError
        `df` is streaming, or the query uses what is not supported yet.
    EventError
        `df` is no Spark DataFrame.
    """
    options, settings = read_keywords(keywords)
    _refuse_other_frames(df)
    check_settings(settings)
    zone = str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
    query = NarrowQuery.of(pattern, arrow_schema(df.schema, zone), options, settings)
    job = _Job(df, query, zone, memory_bytes(worker_memory, "worker_memory"), report)
    slicing = slicing_of(query.plan, slices, options.time_unit, partial(_span, df, query), _shuffle_partitions(df))
    return _in_whole_streams(job) if slicing is None else _in_slices(job, slicing)


def _refuse_other_frames(df: object) -> None:
    if not isinstance(df, DataFrame):
        name = f"{type(df).__module__}.{type(df).__qualname__}"
        raise EventError(f"events: cannot read {name}; expected a Spark DataFrame; tables in the process are for gpu_cep.match()")
    if df.isStreaming:
        raise UnsupportedError("a streaming DataFrame is not supported yet; supported: batch DataFrames")


def check_settings(settings: Settings) -> None:
    """Refuse what is there for local runs alone.

    Raises
    ------
    UnsupportedError
        Row numbers, or brute force, are asked for.
    """
    faults = []
    if settings.output == "indices":
        message = "output='indices' numbers the rows of a table, and a DataFrame's have no numbers"
        faults.append(f"{message}; supported: matches, events, count, compressed")
    if settings.algorithm == "brute_force":
        supported = ", ".join(name for name in EVENT_ALGORITHMS if name != "brute_force")
        faults.append(f"algorithm='brute_force' is not supported under Spark; supported: {supported}")
    if faults:
        raise UnsupportedError([Diagnostic(fault) for fault in faults])


def _span(df: DataFrame, query: NarrowQuery) -> int | float | None:
    """How far apart times are, if that is known without a job."""
    time = query.events.field(query.plan.query.timestamp)
    return time_span(df, time.name, time.type)


def _shuffle_partitions(df: DataFrame) -> int:
    return int(str(df.sparkSession.conf.get("spark.sql.shuffle.partitions")))


@dataclass(frozen=True, slots=True)
class _Job:
    """The events that are asked, the session's time zone, what a worker may take, and what it reports to."""

    df: DataFrame
    query: NarrowQuery
    zone: str
    memory: int | None
    report: RunReport | None

    def match(
        self, shuffled: DataFrame, plan: AnyPlan, events: pa.Schema, codes: Codes, result: pa.Schema, *, sliced: bool
    ) -> DataFrame:  # fmt: skip
        """What workers find among the rows that are sent to them, as `result` says."""
        returned = spark_schema(result)
        warn_of_types(shuffled, events.names, returned)
        keys, text = keys_of_shuffle(plan), pattern_text(self.query.pattern)
        work = Work(plan, text, events, codes, keys, batch_schema(returned, self.zone), self.memory, sliced)
        if self.report is None:
            return shuffled.mapInArrow(make_stage(work), returned)
        reported, figures = add_figures_column(returned)
        work = replace(work, result=batch_schema(reported, self.zone), reports=True)
        return self.report.observe(shuffled.mapInArrow(make_stage(work), reported), figures)


def _in_whole_streams(job: _Job) -> DataFrame:
    """The matches of streams that are whole in one partition."""
    df, query = job.df, job.query
    plan, events, output = query.plan, query.events, query.settings.output
    result = answer_schema(query.plan, events)
    codes = coded_columns(plan, df.schema)
    sent = _narrow(df, plan, events, codes)
    shuffled = _shuffle(sent, [F.col(f"c{key}") for key in keys_of_shuffle(plan)])
    found = job.match(shuffled, query.plan, events, codes, without_rows(result) if output == "compressed" else result, sliced=False)
    in_parts = output == "count" and (plan.derived or not plan.query.partition_by)
    return total_counts(found, found.columns[:-1]) if in_parts else found


def _in_slices(job: _Job, slicing: Slicing) -> DataFrame:
    """The matches of streams that are cut into slices, brought together again."""
    df, query = job.df, job.query
    sliced, whole = SlicedQuery.of(query), query.plan
    plan = sliced.plan
    codes = coded_columns(plan, df.schema)
    keys, time = [f"c{key}" for key in whole.query.partition_by], F.col(f"c{whole.query.timestamp}")
    cut = in_slices(_narrow(df, whole, query.events, codes), keys, time, time_kind(whole), slicing)
    shuffled = _shuffle(cut, [number_of(F.col(cut.columns[-1])), *(F.col(f"c{key}") for key in keys_of_shuffle(whole))])
    found = job.match(shuffled, sliced.plan, sliced.sent, codes, answer_schema(sliced.plan, sliced.schema), sliced=True)
    return assemble(found, plan, query.settings.output, answer_schema(query.plan, query.events).names)


def _narrow(df: DataFrame, plan: Plan, events: pa.Schema, codes: Codes) -> DataFrame:
    """The events that some variable may bind, in the columns that the query reads (text as `codes` say), called c0, c1, …

    (`mapInArrow` looks columns up by name and stumbles over dots and case.)
    """
    read = df.select(*map(column, events.names))
    condition = event_filter(plan.query, read.schema) if "filter" in plan.steps else None
    bindable = read if condition is None else read.filter(condition)
    sent = [code(name, codes[number]) if number in codes else column(name) for number, name in enumerate(events.names)]
    return bindable.select(*(each.alias(f"c{number}") for number, each in enumerate(sent)))


def keys_of_shuffle(plan: Plan) -> tuple[int, ...]:
    """The columns that tell apart what may be in several partitions."""
    # match_id counts the matches of a partition_by stream, and skip_past_last compares them, wherever derived keys would send them
    settings = plan.settings
    together = settings.output == "events" or settings.after_match == "skip_past_last" or plan.ends
    return plan.query.partition_by if together else plan.stream_keys


def _shuffle(df: DataFrame, keys: list[Column]) -> DataFrame:
    """What has the same keys in one partition."""
    return df.repartition(*keys) if keys else df.repartition(1)


def pattern_text(pattern: Pattern) -> str:
    """The query in a line, as errors of tasks name it."""
    text = pattern if isinstance(pattern, str) else format_query(as_query(pattern))
    return shorten(text, LONGEST_TEXT)
