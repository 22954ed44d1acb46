"""Match patterns on Spark: filters pushed down, one shuffle by stream key, one Python stage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from inspect import signature
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.options import Options
from gpu_cep.api import match
from gpu_cep.choices import Scan
from gpu_cep.errors import Diagnostic, EventError, UnsupportedError
from gpu_cep.keywords import SparkOptions, read_keywords
from gpu_cep.live.plans import Arrival, check_choices
from gpu_cep.plan.settings import EVENT_ALGORITHMS, Settings, memory_bytes
from gpu_cep.plan.timeouts import by_kind
from gpu_cep.queries.plans import refuse_swapped
from gpu_cep.queries.row_plans import is_row_pattern
from gpu_cep.signatures import takes_keywords
from gpu_cep_spark.file_matching import ScanRequest, match_files
from gpu_cep_spark.jobs import Job, keys_of_shuffle
from gpu_cep_spark.narrowing.codes import coded_columns
from gpu_cep_spark.narrowing.narrow_frames import narrow
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.narrowing.rare_choice import check_names, choose_rare, rare_names
from gpu_cep_spark.narrowing.rare_events import NearRare, keep_near
from gpu_cep_spark.reports.run_report import RunReport
from gpu_cep_spark.row_patterns import NarrowRows, check_scan_and_rare, match_row_pattern
from gpu_cep_spark.scan_choice import Paths, check_scan, files_of_tasks, read_paths
from gpu_cep_spark.schemas import arrow_schema
from gpu_cep_spark.slice_matching import match_in_slices
from gpu_cep_spark.slices.choice import AUTO, KnownStreams, choose_slicing
from gpu_cep_spark.slices.shuffle_tasks import cores_of, shuffle, tasks_behind
from gpu_cep_spark.slices.statistics import count_rows, stream_shares, time_span
from gpu_cep_spark.streaming.checks import refuse_for_batch, refuse_keywords
from gpu_cep_spark.streaming.frames import ZONE, match_stream
from gpu_cep_spark.streaming.heartbeat_rows import without_heartbeats
from gpu_cep_spark.streaming.row_patterns import match_row_stream
from gpu_cep_spark.whole_matching import match_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.queries.plans import Pattern

# How Spark reads files with a suffix; others are taken for Parquet.
_CSV, _JSON = "csv({!r}, header=True, inferSchema=True)", "json({!r})"
_READERS = {".orc": "orc({!r})", ".csv": _CSV, **dict.fromkeys((".json", ".jsonl", ".ndjson"), _JSON)}


@takes_keywords(match, SparkOptions)
def gpu_match(
    df: DataFrame | SparkSession,
    pattern: Pattern | Paths,
    of_files: Pattern | None = None,
    *,
    worker_memory: int | str | None = None,
    slices: float | str | None = AUTO,
    scan: Scan = "auto",
    rare: str | Sequence[str] | None = AUTO,
    report: RunReport | None = None,
    emit: str = "certain",
    every: float | str | None = None,
    late: str = "drop",
    time_to_live: float | str | None = None,
    **keywords: Unpack[SparkOptions],
) -> DataFrame:
    """Find the matches of `pattern` among the events of a Spark DataFrame, or of Parquet files.

    Nothing runs until an action needs the result, but errors in the query are
    raised at once. Spark filters the events by the pattern's properties and
    shuffles them by the keys of their streams. The engine of
    :func:`gpu_cep.match` then runs once per Spark partition. Streams of a
    query with a window of time may be cut into slices of time that are
    matched apart. Every other stream is whole in one partition; without keys
    all events are one stream. Of a DataFrame that is nothing but Parquet files,
    tasks may read the files themselves, without a shuffle (`scan`).

    Of a streaming DataFrame the result is one, too, in append mode. Spark keeps the events of
    a window in its state store, and each match comes out once.

    Parameters
    ----------
    df
        The events; a classic or a Spark Connect DataFrame, also a streaming one with a
        watermark on its timestamps. Or a session, before paths:
        ``gpu_match(spark, "events/*.parquet", pattern)``.
    pattern
        As in :func:`gpu_cep.match`; behind a session, the path, folder or glob of Parquet
        files, or a list of these. The rows of ``MATCH_RECOGNIZE (…)`` are shuffled once by
        PARTITION BY; without it they are cut into slices, or go to one task. Of a streaming
        DataFrame they need a WITHIN, and ORDER BY begins with the column of the watermark.
    of_files
        The pattern, if `df` is a session.
    engine, gpu_memory
        As in :func:`gpu_cep.match`. Each executor decides for itself, by the
        cores and the memory of one task. If an executor cannot use ``gpu``,
        the job fails with EngineUnavailable and the cause.
    order_by
        Columns that order events of equal time. Rows of a DataFrame have no
        position: events that `order_by` leaves equal are ordered by the other
        columns that the query reads.
    functions
        As in :func:`gpu_cep.match`. They are compiled on the executors. A
        function of a module must be in that module there, too.
    output
        "matches", "events", "count" or "compressed". The rows of the last
        are nodes, which ``gpu_cep.Compressed.from_table(df.toArrow())`` makes
        into one object.
    max_matches, max_steps
        Upper bounds, as in :func:`gpu_cep.match`, for each Spark partition.
    worker_memory
        The most memory that a Python worker takes for events and for what it
        computes from them: a number of bytes, or text such as ``"4GB"``.
        Events that do not fit wait on the executor's local disk. Default: the
        worker's share of ``spark.executor.pyspark.memory`` if that is set,
        else a share of the free memory. A single stream may take more.
    slices
        The length of slices of time, which must be at least the window: text
        such as ``30 minutes``, or a number, which counts as in the window.
        ``auto`` chooses a length for streams without keys, and for those with
        keys if a sample of files tells that cutting them pays. It leaves
        whole what cannot be cut. None leaves all streams whole.
    scan
        Who reads the events. ``files``: tasks read row groups of Parquet with
        Arrow. ``gpu_files``: with cuDF to their cards, as :func:`gpu_cep.gpu_files`
        does in a process; a task without a card or without cuDF fails.
        ``spark``: Spark reads and shuffles them. ``auto`` takes files
        of this machine where they surely hold what Spark would read, and where
        they can be divided by time or by key, and `slices` has no length. Those of
        other file systems only ``files`` lets tasks read, by Arrow or fsspec
        with the machine's credentials. The matches are the same.
    rare
        Variables with few events, of which every match binds one; of a query with a window
        of time. Where Spark reads the events, it looks for those of rare variables first,
        and shuffles only events near them. ``auto`` does so if a sample of files tells that
        it pays. A list or a name says so itself. None shuffles all events. The matches are
        the same.
    timeouts
        As in :func:`gpu_cep.match`. A batch reads the events twice, once for each kind of row.
    detected_at
        As in :func:`gpu_cep.match`. Of a streaming DataFrame the column is the event time
        of what follows, unless there is `every`.
    report
        Receives the counts and times of the workers, once an action has computed the
        result; of matches only, beside timeouts.
    emit
        When a match of a streaming DataFrame comes out. ``certain``: once no event that may
        still come can change it. ``window``: when its window is over, as of
        :class:`gpu_cep.Stream`.
    every
        Of a streaming DataFrame, how far the watermark must have moved before the engine
        runs again: text such as ``"10 seconds"``. Default: whenever it has moved.
    late
        Of a streaming DataFrame, what an event is whose time is not after the watermark
        when it comes. ``drop``: it is dropped and counted. ``error``: the query fails.
        ``rows``: it is dropped, counted, and comes out as a row, as of
        :class:`gpu_cep.Stream`; Spark then filters no events, and shuffles all columns.
    time_to_live
        Of a streaming DataFrame and a window of a number of events with `partition_by`,
        after how long without an event a key begins anew, as of :class:`gpu_cep.Stream`:
        text such as ``"1 day"``.
    **keywords
        As in :func:`gpu_cep.match`.

    Returns
    -------
    DataFrame
        With the columns of :func:`gpu_cep.match`, in no particular order.

    Raises
    ------
    PatternSyntaxError, PatternError
        The query has an error.
    UnsupportedError
        The query is not supported on Spark, or not for streaming DataFrames, or
        ``scan="files"`` or ``scan="gpu_files"`` is not possible. A streaming DataFrame has
        no watermark, or its session another state store than RocksDB.
    EventError
        `df` is not a Spark DataFrame, or a file cannot be read.
    """
    frame: Any = df if of_files is None else read_paths(df, pattern)
    asked: Any = pattern if of_files is None else of_files
    refuse_swapped("gpu_match", frame, asked)
    options, settings = read_keywords(keywords)
    refuse_other_frames(frame)
    check_spark_settings(settings)
    check_scan(scan, slices, settings.engine)
    named = rare_names(rare)
    of_batch = {"worker_memory": worker_memory, "slices": slices, "scan": scan, "rare": rare, "report": report}
    check_kind(gpu_match, frame, of_batch, {"emit": emit, "every": every, "late": late, "time_to_live": time_to_live})
    if frame.isStreaming:
        return _match_streaming(frame, asked, options, settings, Arrival(late=late, every=every, time_to_live=time_to_live, emit=emit))
    frame = without_heartbeats(frame, options.timestamp)
    zone = str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    schema, memory = arrow_schema(frame.schema, zone), memory_bytes(worker_memory, "worker_memory")
    if is_row_pattern(asked):
        check_scan_and_rare(scan, named)
        return match_row_pattern(frame, NarrowRows.of(asked, schema, options, settings), slices, zone, memory, report)
    queries, request = _queries_by_kind(asked, schema, options, settings), ScanRequest(scan, slices, from_paths=of_files is not None)
    # a report has the figures of one job
    jobs = [Job(frame, query, zone, memory, None if number else report) for number, query in enumerate(queries)]
    return reduce(DataFrame.union, (_match_batch(job, request, named) for job in jobs))


def _match_streaming(frame: DataFrame, pattern: Pattern, options: Options, settings: Settings, arrival: Arrival) -> DataFrame:
    """Return the matches of a streaming DataFrame, and its timeouts if they are asked for."""
    if is_row_pattern(pattern):
        return match_row_stream(frame, pattern, options, settings, arrival)
    frame = without_heartbeats(frame, options.timestamp)
    matches, *timeouts = _queries_by_kind(pattern, arrow_schema(frame.schema, ZONE), options, settings)
    return match_stream(Job(frame, matches, ZONE, memory=None, report=None), timeouts, arrival)


def _queries_by_kind(pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings) -> list[NarrowQuery]:
    """Return the query of the matches, and behind it that of the timeouts if they are asked for."""
    kinds = by_kind(settings) if settings.timeouts else (settings,)
    return [NarrowQuery.of(pattern, schema, options, each) for each in kinds]


def _match_batch(job: Job, request: ScanRequest, rare: Sequence[str] | None) -> DataFrame:
    """Return the matches, or the timeouts, of a DataFrame that is no stream."""
    query, report = job.query, job.report
    check_names(query.plan, rare)
    if (files := files_of_tasks(job, request)) is not None:
        return match_files(job, files)
    slicing, why = choose_slicing(query.plan, request.slices, query.options.time_unit, known_of(job.df, query))
    if report is not None:
        report.tell_streams(why)
    job = _near_rare(job, rare)
    return _in_whole_streams(job) if slicing is None else match_in_slices(job, slicing)


def _near_rare(job: Job, rare: Sequence[str] | None) -> Job:
    """Return the job over the events near rare ones, if these are looked for."""
    variables, why = choose_rare(job.query.plan, job.query.events, job.df, rare)
    if job.report is not None:
        job.report.tell_rare(why, leaves_out=bool(variables))
    return replace(job, df=keep_near(job.df, job.query.events, [NearRare(job.query.plan, variables)])) if variables else job


def check_kind(called: Callable[..., Any], df: DataFrame, of_batch: Mapping[str, Any], of_stream: Mapping[str, Any]) -> None:
    """Raise UnsupportedError or PatternError for keywords of a call that mean nothing for this kind of DataFrame, or have a wrong value."""
    usual = {name: each.default for name, each in signature(called).parameters.items()}
    check_choices(of_stream["emit"], of_stream["late"])
    if df.isStreaming:
        refuse_keywords(of_batch, usual)
    else:
        refuse_for_batch(of_stream, usual)


def refuse_other_frames(df: object) -> None:
    """Raise EventError unless the events are a DataFrame."""
    if isinstance(df, (str, PathLike)):
        raise EventError(f"events: gpu_match() takes a DataFrame, not a path; give {_reading(str(df))}")
    if not isinstance(df, DataFrame):
        name = f"{type(df).__module__}.{type(df).__qualname__}"
        raise EventError(f"events: cannot read {name}; expected a Spark DataFrame; tables in the process are for gpu_cep.match()")


def _reading(path: str) -> str:
    """Return the Python code by which Spark reads a file, for an error's hint."""
    reader = next((_READERS[suffix] for suffix in PurePath(path).suffixes if suffix in _READERS), "parquet({!r})")
    return f"spark.read.{reader.format(path)}"


def check_spark_settings(settings: Settings) -> None:
    """Check that the settings are possible under Spark.

    Raises
    ------
    UnsupportedError
        ``output="indices"`` or ``algorithm="brute_force"``.
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


def known_of(df: DataFrame, query: NarrowQuery, keys: Collection[str] | None = None) -> KnownStreams:
    """Return what is known without a Spark job of the events and of their streams; `keys` are by default those of the query."""
    time = query.events.field(query.plan.query.timestamp)
    own = [query.events.names[key] for key in keys_of_shuffle(query.plan)] if keys is None else sorted(keys)
    span, shares = partial(time_span, df, time.name, time.type), partial(stream_shares, df, own)
    return KnownStreams(cores_of(df.sparkSession), partial(tasks_behind, df), span, shares, partial(count_rows, df), bool(own))


def _in_whole_streams(job: Job) -> DataFrame:
    """Return the matches; each stream is whole in one partition."""
    plan = job.query.plan
    codes = coded_columns(plan)
    sent = narrow(job.df, plan, job.query.events, codes)
    return match_whole(job, shuffle(sent, [F.col(f"c{key}") for key in keys_of_shuffle(plan)]), codes)
