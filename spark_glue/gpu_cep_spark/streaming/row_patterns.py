"""Match a row pattern over a streaming DataFrame, in the steps of event patterns, with each partition's rows in one bucket."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from gpu_cep.analysis.options import Options
from gpu_cep.live.plans import Arrival, check_late_rows, refuse_of_rows, text_of
from gpu_cep.live.queries import row_query
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.jobs import pattern_text
from gpu_cep_spark.row_patterns import NarrowRows, RowPattern, ties_of
from gpu_cep_spark.schemas import arrow_schema
from gpu_cep_spark.slices.shuffle_tasks import shuffle_partitions
from gpu_cep_spark.streaming.checks import check_row_stream, ticks_of
from gpu_cep_spark.streaming.frames import ZONE, columns_of_result, digest_of, match_in_buckets
from gpu_cep_spark.streaming.heartbeat_rows import HEARTBEAT, without_heartbeats
from gpu_cep_spark.streaming.work import LiveWork

# The options that bear on the meaning of a row pattern beside its text.
_MEANING = ("partition_by", "order_by", "time_unit")


def match_row_stream(df: DataFrame, pattern: RowPattern, options: Options, settings: Settings, arrival: Arrival) -> DataFrame:
    """Return the rows that a row pattern returns of a streaming DataFrame, as they become certain.

    Raises
    ------
    PatternError
        The pattern has an error, or the `arrival` has what is no length of time.
    UnsupportedError
        The DataFrame, the pattern or a setting is not one for streams.
    """
    refuse_of_rows(arrival, settings)
    rows = arrow_schema(df.drop(HEARTBEAT).schema, ZONE)
    query = NarrowRows.of(pattern, rows, options, settings)
    check_row_stream(df, query)
    time = query.rows.names[query.bound.order_by[0].column]
    return match_in_buckets(without_heartbeats(df, time), live_row_work(query, arrival, shuffle_partitions(df.sparkSession), rows))


def live_row_work(query: NarrowRows, arrival: Arrival, partitions: int, rows: pa.Schema) -> LiveWork:
    """Return the work on each bucket; raises as :func:`match_row_stream`.

    `partitions` is the session's number of partitions, and `rows` have a DataFrame's columns.
    """
    live = row_query(query.plan, query.rows, query.settings, "a stream", query.text)
    ticks = ticks_of(live.plan, arrival.every, query.options.time_unit)
    live = replace(live, every=ticks, refuses_late=arrival.late == "error", returns_late=arrival.late == "rows")
    if live.returns_late:
        check_late_rows(live, query.settings)
    whole = rows if live.returns_late else None
    result, ties = columns_of_result(live, whole), ties_of(query.bound)
    digest = digest_of(text_of(query.pattern), query.options, _MEANING, str(query.rows.remove_metadata()))
    return LiveWork(live, digest, pattern_text(query.pattern), {}, result, partitions, whole, ties)
