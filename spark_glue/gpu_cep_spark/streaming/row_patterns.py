"""Match a row pattern over a streaming DataFrame, in the steps of event patterns, with each partition's rows in one bucket."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from gpu_cep.analysis.options import Options
from gpu_cep.live.plans import Arrival, check_late_rows, refuse_of_rows, text_of
from gpu_cep.live.queries import row_query
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.jobs import keys_of_shuffle, pattern_text
from gpu_cep_spark.row_patterns import NarrowRows, RowPattern, ties_of
from gpu_cep_spark.schemas import arrow_schema
from gpu_cep_spark.slices.shuffle_tasks import shuffle_partitions
from gpu_cep_spark.streaming.checks import check_row_stream, ticks_of
from gpu_cep_spark.streaming.frames import ZONE, digest_of, events_sent, match_in_buckets, result_schema, sent_result
from gpu_cep_spark.streaming.heartbeat_rows import HEARTBEAT, without_heartbeats
from gpu_cep_spark.streaming.work import LiveGroup, LiveRule, LiveWork

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
    work = live_row_work(query, arrival, shuffle_partitions(df.sparkSession), rows)
    return match_in_buckets(events_sent(without_heartbeats(df, time), work), work, result_schema(work.live, work.whole))


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
    digest = digest_of(text_of(query.pattern), query.options, _MEANING, str(query.rows.remove_metadata()))
    rule = LiveRule(live, digest, pattern_text(query.pattern))
    group = LiveGroup((rule,), live.schema, keys_of_shuffle(live.plan), ties=ties_of(query.bound))
    return LiveWork((group,), sent_result(result_schema(live, whole), whole), partitions, whole)
