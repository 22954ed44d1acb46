"""Match a streaming DataFrame: Spark keeps the watermark, the state and the offsets, and the engine runs in each bucket of keys.

There are four steps. Spark filters events and projects columns. Tasks pack the events of each bucket of keys into one
row, which Spark shuffles. Its stateful operator calls the engine bucket by bucket. Tasks unpack the matches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.bind_intervals import DETECTED_AT
from gpu_cep.analysis.options import Options
from gpu_cep.engine.streaming.kinds import kinds_schema
from gpu_cep.lang.format import format_query
from gpu_cep.live.plans import Arrival, check_late_rows, decisive_of, in_sessions, plan_runs, refuse_order
from gpu_cep.live.queries import LiveQuery, check_live, needs_slices
from gpu_cep.plan.certainty import is_reported_in_time
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.queries.plans import as_query
from gpu_cep_spark.jobs import Job, keys_of_shuffle, pattern_text
from gpu_cep_spark.narrowing.codes import Codes, coded_columns
from gpu_cep_spark.narrowing.narrow_frames import narrow, with_whole_events
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.schemas import arrow_schema, batch_schema, refuse_unsent, spark_schema
from gpu_cep_spark.slices.shuffle_tasks import shuffle_partitions
from gpu_cep_spark.streaming.checks import check_stream, ticks_of
from gpu_cep_spark.streaming.packing import FOUND, PACKED, Figures, PackedGroup, Packing, pack_partition, unpack_partition
from gpu_cep_spark.streaming.processor import make_processor
from gpu_cep_spark.streaming.work import LiveGroup, LiveRule, LiveWork
from gpu_cep_spark.tasks.handshake import send

_HASH = "keys"
# The time zone of columns of instants, whatever the session's, so that a checkpoint fits sessions of any zone.
ZONE = "UTC"
# What Spark writes to a column's metadata that has a watermark; `detected_at` is as late as the watermark of the events.
_WATERMARK = {"spark.watermarkDelayMs": 0}
# The options that bear on which events a query needs, and in which order.
_MEANING = ("timestamp", "partition_by", "order_by", "type_column", "nulls", "strategy", "ties", "time_unit")


def match_stream(job: Job, timeouts: Sequence[NarrowQuery], arrival: Arrival) -> DataFrame:
    """Return the matches of a streaming DataFrame as they become certain, and the timeouts of `timeouts`, if that has a query.

    Raises
    ------
    UnsupportedError
        The DataFrame or the query is not one for streams.
    PatternError
        The `arrival` has what is no length of time.
    """
    check_stream(job.df, job.query.plan, job.query.settings, expires=arrival.time_to_live is not None)
    return match_live_query(job.df, job.query, live_query(job.query, timeouts, arrival))


def match_live_query(df: DataFrame, query: NarrowQuery, live: LiveQuery) -> DataFrame:
    """Return the matches of a streaming DataFrame as they become certain, of a query by itself, which is asked as `live`."""
    work = live_work(query, live, shuffle_partitions(df.sparkSession), arrow_schema(df.schema, ZONE))
    return with_event_time(match_in_buckets(events_sent(df, work), work, result_schema(work.live, work.whole)), [work.live])


def events_sent(df: DataFrame, work: LiveWork) -> DataFrame:
    """Return the events that a query by itself needs, in the columns that are sent; with whole ones if late ones come out as rows."""
    live, (group,) = work.live, work.groups
    if work.whole is not None:
        return with_whole_events(df, live.plan, live.schema, group.codes)
    return narrow(df, live.plan, live.schema, group.codes, timeouts=live.timeouts is not None)


def match_in_buckets(sent: DataFrame, work: LiveWork, result: pa.Schema) -> DataFrame:
    """Return what comes out of the buckets to which events go that are `sent` in the columns of the work; it has the schema `result`."""
    found = _packed(sent, work).groupBy("bucket").transformWithStateInPandas(make_processor(work), FOUND, "append", "eventTime")
    told = found.observe(f"gpu_cep {uuid4()}", *_figures())
    return told.filter(F.col("found").isNotNull()).select("found").mapInArrow(send(unpack_partition), spark_schema(result))


def with_event_time(matches: DataFrame, asked: Iterable[LiveQuery]) -> DataFrame:
    """Return the matches of queries so that what follows takes `detected_at` as their time, if it may."""
    return matches.withMetadata(DETECTED_AT, _WATERMARK) if all(map(_is_event_time, asked)) else matches


def _is_event_time(live: LiveQuery) -> bool:
    """Return whether what follows in the query may take `detected_at` as the time of matches.

    Rows must be after the watermark that Spark had one micro-batch before, or it drops them.
    """
    return DETECTED_AT in live.result.names and live.every is None and not live.by_window and is_reported_in_time(live.plan)


def live_work(query: NarrowQuery, live: LiveQuery, partitions: int, events: pa.Schema) -> LiveWork:
    """Return the work on each bucket of a query that is asked as `live`.

    `partitions` is the session's number of partitions, and `events` have a DataFrame's columns.
    """
    codes, whole = coded_columns(query.plan), events if live.returns_late else None
    rule = LiveRule(live, rule_digest(query, codes, live), pattern_text(query.pattern))
    group = LiveGroup((rule,), live.schema, keys_of_shuffle(live.plan), codes)
    return LiveWork((group,), sent_result(result_schema(live, whole), whole), partitions, whole)


def sent_result(result: pa.Schema, whole: pa.Schema | None) -> pa.Schema:
    """Return the schema in which Spark takes results that have the schema `result`; with late events as a `whole` if they are rows."""
    if whole is not None:
        refuse_unsent(whole)
    return batch_schema(spark_schema(result), ZONE)


def live_query(query: NarrowQuery, timeouts: Sequence[NarrowQuery], arrival: Arrival) -> LiveQuery:
    """Return a query of a stream, and of its timeouts if `timeouts` has a query; raises as :func:`match_stream`."""
    plan = check_live(query.plan, query.settings, expires=arrival.time_to_live is not None)
    refuse_order(plan, arrival)
    every = ticks_of(plan, arrival.every, query.options.time_unit)
    sliced, sessions = None, in_sessions(plan, query.events, arrival.time_to_live, query.options.time_unit)
    if isinstance(plan, EventPlan) and (sessions is not None or needs_slices(query.settings)):
        sliced = plan_runs(query.pattern, query.events, query.options, query.settings, sessions)
    of_timeouts = [each.plan for each in timeouts if isinstance(each.plan, EventPlan)]
    asked = query.pattern, query.events, query.options, query.settings
    decisive = None if arrival.by_window else decisive_of(plan, *asked)
    live = LiveQuery(
        plan, query.events, sliced, of_timeouts[0] if of_timeouts else None,
        every=every, refuses_late=arrival.late == "error", returns_late=arrival.late == "rows", by_window=arrival.by_window,
        decisive=decisive, sessions=sessions,
    )  # fmt: skip
    if live.returns_late:
        check_late_rows(live, query.settings)
    return live


def result_schema(live: LiveQuery, whole: pa.Schema | None) -> pa.Schema:
    """Return the schema of what comes out; with late events as a `whole` if they are rows."""
    return live.result if whole is None else kinds_schema(live.result, whole)


def _packed(sent: DataFrame, work: LiveWork) -> DataFrame:
    """Return the events, packed by bucket."""
    names = work.columns
    hashes = [
        F.hash(*(F.col(f"c{names.index(group.schema.names[key])}") for key in group.keys)).alias(f"{_HASH}{number or ''}")
        for number, group in enumerate(work.groups)
        if group.keys
    ]
    hashed = sent.select("*", *hashes) if hashes else sent
    packing = packing_of(work, batch_schema(hashed.schema, ZONE))
    return hashed.mapInArrow(send(partial(pack_partition, packing)), PACKED)


def packing_of(work: LiveWork, schema: pa.Schema) -> Packing:
    """Return how tasks pack events that are sent in the columns of `schema`.

    These are the columns of the work, whole events if late ones are rows, and a hash for each group that has keys.
    """
    live, names = work.live, work.columns
    name = live.schema.names[live.plan.query.timestamp]
    whole = () if work.whole is None else (len(names),)
    hashes = count(len(names) + len(whole))
    groups = tuple(
        PackedGroup((*map(names.index, group.schema.names), *(() if number else whole)), queries, next(hashes) if queries else None)
        for number, (group, queries) in enumerate(zip(work.groups, work.queries, strict=True))
    )
    packing = Packing(schema, names.index(name), name, groups, work.partitions)
    return packing if live.rows is None else replace(packing, remedy=f"filter the rows by {name} IS NOT NULL")


def _figures() -> list[Any]:
    """Return what Spark tells of each micro-batch beside its own metrics."""
    each = {name: F.col("figures")[place] for place, name in enumerate(Figures._fields)}
    sums = [F.coalesce(F.sum(each[name]), F.lit(0)).alias(name) for name in ("events", "late", "matches", "kept", "bytes", "expired")]
    largest = F.coalesce(F.max(each["kept"]), F.lit(0)).alias("largest")
    return [*sums, largest, (F.coalesce(F.max(each["ahead"]), F.lit(0)) / 1e6).alias("seconds_ahead")]


def rule_digest(query: NarrowQuery, codes: Codes, live: LiveQuery) -> str:
    """Return a digest of what a bucket's state depends on: the question, and the columns and codes in which events are kept."""
    options, settings = query.options, query.settings
    asked = [settings.after_match, settings.output, settings.columns, options.detect, options.allen, options.gap]
    kept = [str(query.events.remove_metadata()), sorted(codes.items()), *([] if live.sessions is None else [live.sessions.time_to_live])]
    kept += ["by window"] if live.by_window else []
    text = format_query(as_query(query.pattern))
    return digest_of(text, options, _MEANING, *asked, settings.kind, settings.detected_at, *kept)


def digest_of(text: str, options: Options, meaning: Sequence[str], *others: object) -> str:
    """Return a digest of a question: its text, the options named by `meaning`, its functions, and what else it depends on."""
    functions = tuple(function.name for function in options.functions)
    return hashlib.sha256(repr([text, [getattr(options, name) for name in meaning], functions, *others]).encode()).hexdigest()
