"""Push a query down: choose the events that some variable may bind, and the columns that the query reads."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.timeouts import TIMEOUT
from gpu_cep_spark.narrowing.codes import Codes, code
from gpu_cep_spark.narrowing.pushdown import behind_watermark, column, event_filter, read_columns, untimed

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
    whole = F.struct(*(column(name).alias(f"c{number}") for number, name in enumerate(df.columns))).alias(WHOLE)
    return read.select(*_sent(events, codes), whole)


def _sent(events: pa.Schema, codes: Codes) -> list[Column]:
    """Return the columns that the query reads as they are sent."""
    sent = [code(name, codes[number]) if number in codes else column(name) for number, name in enumerate(events.names)]
    return [each.alias(f"c{number}") for number, each in enumerate(sent)]
