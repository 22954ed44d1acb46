"""The engine under Spark: push-down, one shuffle by stream key, one Python stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.types import Kind
from gpu_cep.api import make_plan
from gpu_cep.engine.answers import AnyPlan, answer_schema, plan_of_events
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.keywords import Functions, Names, make_options, make_settings
from gpu_cep.plan.columns_read import columns_read, narrowed
from gpu_cep.plan.plan import Plan
from gpu_cep.plan.settings import EVENT_ALGORITHMS, Settings
from gpu_cep_spark.assembly import assembled, total_counts
from gpu_cep_spark.codes import Codes, code, coded_columns
from gpu_cep_spark.pushdown import column, event_filter
from gpu_cep_spark.schemas import arrow_schema, batch_schema, spark_schema
from gpu_cep_spark.slices import (
    AUTO,
    Slicing,
    hidden_names,
    in_slices,
    plan_of_slices,
    settings_of_slices,
    slicing_of,
)
from gpu_cep_spark.ties import tie_breakers
from gpu_cep_spark.worker import match_partition, without_rows

if TYPE_CHECKING:
    from gpu_cep.api import Pattern

def gpu_match(
    df: DataFrame,
    pattern: Pattern,
    *,
    timestamp: str = "ts",
    partition_by: Names = None,
    order_by: Names = None,
    type_column: str = "type",
    strategy: str | None = None,
    ties: str = "strict",
    time_unit: str | None = None,
    after_match: str = "all",
    detect: str = "final",
    allen: str = "paper",
    gap: float | str | None = None,
    engine: str = "auto",
    gpu_memory: int | str | None = None,
    algorithm: str = "auto",
    output: str = "matches",
    columns: Names = None,
    max_matches: int | None = None,
    max_steps: int | None = None,
    prune: bool | Iterable[str] = True,
    functions: Functions = None,
    slices: float | str | None = AUTO,
) -> DataFrame:
    """The matches of `pattern` among the events of a Spark DataFrame.

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
    pattern, timestamp, partition_by, type_column, strategy, ties, time_unit, after_match, detect, allen, gap, algorithm, columns, prune
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
    slices
        How long slices of time are: a number of ticks of the timestamp, or
        text such as ``30 minutes``, at least the window; ``auto`` chooses, and
        leaves streams whole that cannot be cut; None leaves all streams whole.

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
    """
    settings = make_settings(output, engine, gpu_memory, algorithm, after_match, columns, prune)
    settings = replace(settings, max_matches=max_matches, max_steps=max_steps)
    _check(df, settings)
    options = make_options(timestamp, partition_by, order_by, type_column, strategy, ties, time_unit, functions, detect, allen, gap)
    zone = str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
    query = _Narrow.of(pattern, arrow_schema(df.schema, zone), options, settings)
    slicing = slicing_of(query.plan, slices, time_unit)
    return _in_whole_streams(df, query, zone) if slicing is None else _in_slices(df, query, slicing, zone)


def _check(df: DataFrame, settings: Settings) -> None:
    faults = []
    if df.isStreaming:
        faults.append("a streaming DataFrame is not supported yet; supported: batch DataFrames")
    if settings.output == "indices":
        message = "output='indices' numbers the rows of a table, and a DataFrame's have no numbers"
        faults.append(f"{message}; supported: matches, events, count, compressed")
    if settings.algorithm == "brute_force":
        supported = ", ".join(name for name in EVENT_ALGORITHMS if name != "brute_force")
        faults.append(f"algorithm='brute_force' is not supported under Spark; supported: {supported}")
    if faults:
        raise UnsupportedError([Diagnostic(fault) for fault in faults])


@dataclass(frozen=True, slots=True)
class _Narrow:
    """A query over the columns that it reads, `events`, whose ties have one order."""

    pattern: Pattern
    events: pa.Schema
    options: Options
    settings: Settings
    plan: AnyPlan

    @classmethod
    def of(cls, pattern: Pattern, events: pa.Schema, options: Options, settings: Settings) -> _Narrow:
        query = plan_of_events(make_plan(pattern, events, options, settings)).query
        read = columns_read(query, settings)
        order = tuple(events.names[number] for number in tie_breakers(query, read))
        narrow = pa.schema([events.field(number) for number in read])
        ordered, shown = replace(options, order_by=order), narrowed(settings, narrow.names)
        return cls(pattern, narrow, ordered, shown, make_plan(pattern, narrow, ordered, shown))


def _in_whole_streams(df: DataFrame, query: _Narrow, zone: str) -> DataFrame:
    """The matches of streams that are whole in one partition."""
    planned, sent, output = query.plan, plan_of_events(query.plan), query.settings.output
    result = answer_schema(planned, query.events)
    returned = spark_schema(without_rows(result) if output == "compressed" else result)
    codes = coded_columns(sent, df.schema)
    work = partial(match_partition, planned, query.events, codes, batch_schema(returned, zone))
    found = _shuffled(_narrowed(df, sent, query.events, codes), sent).mapInArrow(work, returned)
    parted = output == "count" and (sent.derived or not sent.query.partition_by)
    return total_counts(found, found.columns[:-1]) if parted else found


def _in_slices(df: DataFrame, query: _Narrow, slicing: Slicing, zone: str) -> DataFrame:
    """The matches of streams that are cut into slices, brought together again."""
    events, whole, settings = query.events, plan_of_events(query.plan), query.settings
    promised = answer_schema(query.plan, events).names
    hidden = hidden_names((*events.names, *promised))
    keys = tuple(events.names[key] for key in whole.query.partition_by)
    numbered = events.append(pa.field(hidden.number, pa.int64()))
    ticks = pa.float64() if _time_kind(whole) is Kind.FLOAT else pa.int64()
    in_order = settings.after_match == "skip_past_last"
    known = [pa.field(hidden.time, ticks), pa.field(hidden.place, pa.int64())] if in_order else []
    schema = pa.schema([*numbered, *known])
    asked = settings_of_slices(settings, keys, tuple(events.names), hidden)
    planned = plan_of_slices(make_plan(query.pattern, schema, query.options, asked), len(events), in_order=in_order)
    sent = plan_of_events(planned)
    returned = spark_schema(answer_schema(planned, schema))
    codes = coded_columns(sent, df.schema)
    columns = [f"c{key}" for key in whole.query.partition_by]
    time = F.col(f"c{whole.query.timestamp}")
    cut = in_slices(_narrowed(df, whole, events, codes), columns, time, _time_kind(whole), slicing)
    marked = numbered.append(pa.field("own", pa.bool_()))
    work = partial(match_partition, planned, marked, codes, batch_schema(returned, zone), sliced=True)
    found = _shuffled(cut, sent).mapInArrow(work, returned)
    return assembled(found, sent, settings.output, promised)


def _time_kind(planned: Plan) -> Kind:
    return planned.query.schema.attributes[planned.query.timestamp].type.kind


def _narrowed(df: DataFrame, planned: Plan, events: pa.Schema, codes: Codes) -> DataFrame:
    """The events that some variable may bind, in the columns that the query reads (text as `codes` say), called c0, c1, …

    (`mapInArrow` looks columns up by name and stumbles over dots and case.)
    """
    read = df.select(*map(column, events.names))
    condition = event_filter(planned.query, read.schema) if "filter" in planned.steps else None
    bindable = read if condition is None else read.filter(condition)
    sent = [code(name, codes[number]) if number in codes else column(name) for number, name in enumerate(events.names)]
    return bindable.select(*(each.alias(f"c{number}") for number, each in enumerate(sent)))


def _shuffled(df: DataFrame, planned: Plan) -> DataFrame:
    """Every stream whole in one partition."""
    # match_id counts the matches of a partition_by stream, and skip_past_last compares them, wherever derived keys would send them
    settings = planned.settings
    together = settings.output == "events" or settings.after_match == "skip_past_last" or planned.ends
    numbers = planned.query.partition_by if together else planned.stream_keys
    keys = [F.col(f"c{number}") for number in numbers]
    return df.repartition(*keys) if keys else df.repartition(1)

