"""Push a query down: choose the events that some variable may bind, and the columns that the query reads."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from gpu_cep.live.queries import LiveQuery
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.timeouts import TIMEOUT
from gpu_cep_spark.narrowing.codes import Codes, code
from gpu_cep_spark.narrowing.pushdown import behind_watermark, column, event_filter, read_columns, untimed
from gpu_cep_spark.narrowing.rule_filters import MOST_FILTERS, any_filter

# The column of whole events, whose fields are called c0, c1, …, too.
WHOLE = "whole"


def narrow(df: DataFrame, plan: Plan, events: pa.Schema, codes: Codes, *, timeouts: bool = False) -> DataFrame:
    """Return the events that some variable may bind, in the columns that the query reads.

    Text columns in `codes` hold codes. The columns are called c0, c1, …. `mapInArrow` fails on
    names with dots, and on names that differ in case alone. `timeouts` if these are asked for beside the matches of the plan.
    """
    read = read_columns(df, events.names)
    if plan.query.drops_untimed:
        read = read.filter(~untimed(plan.query, read.schema))
    condition = None
    if "filter" in plan.pruning:
        condition = event_filter(plan.query, read.schema, with_keys=not timeouts and plan.settings.kind != TIMEOUT)
    if condition is not None and df.isStreaming:
        condition = behind_watermark(condition, read.columns[plan.query.timestamp])
    return (read if condition is None else read.filter(condition)).select(*_sent(events, codes))


def with_whole_events(df: DataFrame, plan: Plan, events: pa.Schema, codes: Codes) -> DataFrame:
    """Return all events in the columns that the query reads, as :func:`narrow` does, and behind them each one as a whole."""
    read = read_columns(df, df.columns)
    if plan.query.drops_untimed:
        read = read.filter(~untimed(plan.query, read_columns(df, events.names).schema))
    return read.select(*_sent(events, codes), _whole(df))


def _whole(df: DataFrame) -> Column:
    """Return a column of whole events."""
    return F.struct(*(column(name).alias(f"c{number}") for number, name in enumerate(df.columns))).alias(WHOLE)


def narrow_to_all(df: DataFrame, queries: Sequence[LiveQuery], names: Sequence[str]) -> DataFrame:
    """Return the events of a streaming DataFrame that a variable of some query may bind, in the columns `names`, called c0, c1, …."""
    read = _timed(df, queries[0], names)
    filters = [_filter_of(query, read.schema) for query in queries[: MOST_FILTERS + 1]]
    if (condition := any_filter(filters)) is not None:
        read = read.filter(behind_watermark(condition, queries[0].schema.names[queries[0].plan.query.timestamp]))
    return read.select(*_as_they_are(names))


def with_whole_events_of_all(df: DataFrame, queries: Sequence[LiveQuery], names: Sequence[str]) -> DataFrame:
    """Return all events of a streaming DataFrame in the columns `names`, called c0, c1, …, and behind them each one as a whole."""
    return _timed(df, queries[0], df.columns).select(*_as_they_are(names), _whole(df))


def _timed(df: DataFrame, first: LiveQuery, names: Sequence[str]) -> DataFrame:
    """Return the columns `names` of the events, without those that have no time if the first query, and so all, leaves these out."""
    read = read_columns(df, names)
    return read.filter(~untimed(first.plan.query, _own(first, read.schema))) if first.plan.query.drops_untimed else read


def _filter_of(query: LiveQuery, read: StructType) -> Column | None:
    """Return a filter that holds for every event that a query may bind; None if no useful one is known."""
    plan = query.plan
    return event_filter(plan.query, _own(query, read), with_keys=query.timeouts is None) if "filter" in plan.pruning else None


def _own(query: LiveQuery, read: StructType) -> StructType:
    """Return the columns that a query reads, of those that all do."""
    return StructType([read[name] for name in query.schema.names])


def _as_they_are(names: Sequence[str]) -> list[Column]:
    """Return columns as they are sent, without codes."""
    return [column(name).alias(f"c{number}") for number, name in enumerate(names)]


def _sent(events: pa.Schema, codes: Codes) -> list[Column]:
    """Return the columns that the query reads as they are sent."""
    sent = [code(name, codes[number]) if number in codes else column(name) for number, name in enumerate(events.names)]
    return [each.alias(f"c{number}") for number, each in enumerate(sent)]
