"""Refuse on the driver what a streaming DataFrame cannot be asked, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType, TimestampType

from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.windows import bind_length, length_of
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.streaming.certainty import refuse_unbounded
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep.plan.row_patterns.certainty import refuse_uncertain
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.row_patterns import NarrowRows

OUTPUTS = ("matches", "events")
# How a column's metadata say that Spark keeps a watermark of it.
DELAY = "spark.watermarkDelayMs"
STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def refuse_for_batch(given: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise PatternError if keywords that only streams take have values of their own."""
    faults = [
        Diagnostic(f"{name}= is for a streaming DataFrame, and this one is not", hint="spark.readStream makes a streaming DataFrame")
        for name, value in given.items()
        if value != usual[name]
    ]
    if faults:
        raise PatternError(faults)


def refuse_keywords(given: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise UnsupportedError if keywords that only batches take have values of their own."""
    remedies = {
        "slices": "leave it out: a stream is matched as time goes on",
        "scan": "leave it out: Spark reads the source",
        "rare": "leave it out: the source is read once",
        "worker_memory": "leave it out: the watermark and the window bound what is kept",
        "report": "leave it out: query.lastProgress['observedMetrics'] has the figures of each micro-batch",
    }
    faults = [
        Diagnostic(f"{name}= has no meaning for a streaming DataFrame", hint=remedies[name])
        for name, value in given.items()
        if value != usual[name]
    ]
    if faults:
        raise UnsupportedError(faults)


def check_stream(df: DataFrame, plan: AnyPlan, settings: Settings, *, expires: bool) -> None:
    """Check that the query is one for streams under Spark, and the watermark and the session's state store.

    `expires` says whether keys have a time to live.

    Raises
    ------
    UnsupportedError
        A stream cannot answer the query, Spark has no watermark of the timestamps, or cannot have one, or keeps state
        in another store than RocksDB. One error names all reasons.
    """
    faults = [*_faults_of_query(plan, expires=expires), *_faults_of_output(plan, settings), *_faults_of_source(df, plan)]
    if faults:
        raise UnsupportedError(faults)


def check_rule_of_stream(plan: AnyPlan, settings: Settings, *, expires: bool) -> None:
    """Check that a query of a rule set is one for streams under Spark; raises as :func:`check_stream`, with its arguments."""
    faults = [*_faults_of_query(plan, expires=expires), *_faults_of_output(plan, settings)]
    if faults:
        raise UnsupportedError(faults)


def check_source(df: DataFrame, plan: AnyPlan) -> None:
    """Check the watermark on the timestamps of a query, and the session's state store; raises as :func:`check_stream`."""
    faults = [*_faults_of_source(df, plan)]
    if faults:
        raise UnsupportedError(faults)


def _faults_of_source(df: DataFrame, plan: AnyPlan) -> Iterator[Diagnostic]:
    yield from _faults_of_watermark(df.schema, plan.query.schema.names[plan.query.timestamp])
    yield from _faults_of_store(df)


def check_row_stream(df: DataFrame, query: NarrowRows) -> None:
    """Check that the row pattern is one for streams, and the watermark and the session's state store; raises as :func:`check_stream`."""
    faults: list[Diagnostic] = []
    try:
        refuse_uncertain(query.plan, "a stream", query.text)
    except UnsupportedError as refused:
        faults.extend(refused.diagnostics)
    for first in query.bound.order_by[:1]:
        faults.extend(_faults_of_watermark(df.schema, query.rows.names[first.column]))
    faults.extend(_faults_of_store(df))
    if faults:
        raise UnsupportedError(faults, query.text)


def _faults_of_query(plan: AnyPlan, *, expires: bool) -> Iterator[Diagnostic]:
    try:
        refuse_unbounded(plan, "a stream", expires=expires)
    except UnsupportedError as refused:
        yield from refused.diagnostics
    if isinstance(plan, IntervalPlan) and plan.query.gap is not None and not plan.query.early:
        told = "a stream with gap= and detect='final' is not supported: a situation ends in its gap, but is seen to do so later"
        yield Diagnostic(told, hint="give detect='early'")


def _faults_of_output(plan: AnyPlan, settings: Settings) -> Iterator[Diagnostic]:
    known, of = (OUTPUTS[:1], " of situations") if isinstance(plan, IntervalPlan) else (OUTPUTS, "")
    if settings.output not in known:
        message = f"output={settings.output!r} is not supported for a streaming DataFrame{of}; supported: {', '.join(known)}"
        yield Diagnostic(message, hint="count the matches with Spark: found.groupBy(…).count()" if settings.output == "count" else None)


def _faults_of_watermark(schema: StructType, timestamp: str) -> Iterator[Diagnostic]:
    field = schema[timestamp]
    if not isinstance(field.dataType, TimestampType):
        message = f"timestamp column {timestamp!r} is {field.dataType.simpleString().upper()}, of which Spark keeps no watermark"
        hint = f"make a TIMESTAMP of it before withWatermark(), such as F.timestamp_seconds({timestamp!r}) or a cast"
        yield Diagnostic(message, hint=hint)
    elif DELAY not in field.metadata:
        others = [other.name for other in schema.fields if DELAY in other.metadata]
        told = f"; it has one on {', '.join(map(repr, others))}" if others else ""
        message = f"the streaming DataFrame has no watermark on timestamp column {timestamp!r}{told}: matches would never be certain"
        yield Diagnostic(message, hint=f"df.withWatermark({timestamp!r}, '10 seconds') says how late events may come")


def _faults_of_store(df: DataFrame) -> Iterator[Diagnostic]:
    provider = str(df.sparkSession.conf.get(STORE, "the default"))
    if provider != ROCKS:
        message = f"matching a streaming DataFrame needs Spark's RocksDB state store, and {STORE} is {provider}"
        yield Diagnostic(message, hint=f"spark.conf.set({STORE!r}, {ROCKS!r}) before the query is started")


def ticks_of(plan: AnyPlan, every: float | str | None, time_unit: str | None) -> Tick | None:
    """Return the length of time ``every=`` in ticks.

    Raises
    ------
    PatternError
        It is no length of time.
    """
    if every is None:
        return None
    length, faults = length_of(every), Faults()
    if length is None:
        raise PatternError([Diagnostic(f"every={every!r} is no length of time", hint="write text such as every='10 seconds'")])
    ticks = bind_length("every", length, plan.query.schema.attributes[plan.query.timestamp], time_unit, faults, form="every='{}'")
    faults.raise_any(None)
    return ticks
