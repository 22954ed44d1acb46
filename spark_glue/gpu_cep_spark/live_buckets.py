"""Match the events of one bucket of keys: take what has arrived, run the engine if the watermark has moved, keep what is needed.

A bucket's state is a list of chunks of events, to which new ones are added, and what is known beside them. The list is
written anew only if less than half of its events are still needed. So a batch writes about what it brings, however
long the window is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.streaming.kinds import with_late
from gpu_cep.engine.streaming.state import Clock, StreamState, first_state, read_about, read_state, write_state
from gpu_cep.errors import CepError, EventError
from gpu_cep.live_queries import LiveQuery
from gpu_cep.plan.certainty import Certain
from gpu_cep.stream_steps import bindable_rows, certain_matches, give_up_decided, hold_events, is_due, no_matches
from gpu_cep_spark.codes import Codes
from gpu_cep_spark.devices import use_device_of_task
from gpu_cep_spark.live_marks import ListMarks, in_order_of_ties, marks_after, read_marks, write_marks
from gpu_cep_spark.live_packing import number_of_buckets, read_chunk, write_chunk
from gpu_cep_spark.worker import as_events, as_promised, in_batches

# Ticks of Spark's timestamps in a millisecond, in which it tells the watermark.
TICKS = 1_000
# Chunks that a bucket's list may have before they are joined.
MOST_CHUNKS = 64
_NUMBER = "number"
# How keys are spread over buckets: as many buckets in each partition.
_SPREAD = "evenly"
# The fields of a bucket that are written beside the state of its stream.
_FIGURES = ("rows", "size", "chunks", "timer", "latest", "open")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LiveWork:
    """The work on each bucket.

    Parameters
    ----------
    live
        The query; its `schema` has the users' names of columns.
    digest
        What tells the query from others.
    pattern
        The query as one line of text, for error messages.
    codes
        The text columns that arrive as codes, with the constants that these stand for.
    result
        The schema that Spark expects of the matches.
    partitions
        The partitions of the state, if Spark does not tell tasks of another number.
    whole
        The schema of whole events, which come behind the columns of the query if late ones are rows of the result; else None.
    ties
        The columns that order rows which the ORDER BY of a row pattern leaves equal.
    """

    live: LiveQuery
    digest: str
    pattern: str
    codes: Codes
    result: pa.Schema
    partitions: int
    whole: pa.Schema | None = None
    ties: tuple[int, ...] = ()


class Store(NamedTuple):
    """The state variables of a bucket, and the handle by which its timer is set.

    `marks`: what is known of the rows of a row pattern, in the order of the list.
    """

    about: Any
    chunks: Any
    timers: Any
    marks: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """What is known of a bucket beside its events.

    `state`: the state of its stream, without the events.
    `rows`, `size`, `chunks`: the number of events in its list, their bytes, and the number of chunks.
    `timer`: the watermark, in milliseconds, at which it is called next if no event comes (None: never).
    `latest`: the latest time of its events.
    `open`: of how many rows of a row pattern it was not certain at the last run which match begins there.
    """

    state: StreamState
    rows: int = 0
    size: int = 0
    chunks: int = 0
    timer: int | None = None
    latest: int = 0
    open: int = 0


class New(NamedTuple):
    """What has arrived: a chunk of events (None: there are none), their number, how many others were late, and the latest time.

    `events` counts those that were not late. The chunk has fewer if some are in no match, and are not kept.
    `returned` are the late ones, if they come out as rows.
    """

    chunk: bytes | None
    rows: int
    late: int
    latest: int
    events: int
    returned: pa.Table | None = None


class Listed(NamedTuple):
    """The events of a bucket's list as they are stored, and their numbers."""

    table: pa.Table
    numbers: Numbers


class Ran(NamedTuple):
    """What a run of the engine leaves: the state without events, the numbers of events that are kept (None: all), and matches.

    `listed` is what was read of the list, `marks` are those of the rows of a row pattern.
    """

    state: StreamState
    kept: Numbers | None
    found: pa.Table | None
    listed: Listed | None = None
    marks: ListMarks | None = None


def match_bucket(work: LiveWork, state: Sequence[Any], arrived: Sequence[bytes] | None, watermark: int) -> Iterator[pd.DataFrame]:
    """Give the matches of a bucket that have become certain, packed, with the figures of this call in the first row.

    Parameters
    ----------
    work
        The work.
    state
        The fields of a :class:`Store`; the state is changed.
    arrived
        Further events, as tasks packed them; None if the call is for the watermark's sake.
    watermark
        The watermark, in milliseconds.

    Raises
    ------
    CepError
        Any error of the engine, with the pattern added to the message; EventError if the state is another query's.
    """
    store = Store(*state)
    use_device_of_task(TaskContext.get(), os.environ)
    try:
        bucket = _read_bucket(work, store)
        new = _take_in_time(work, arrived, watermark * TICKS)
        bucket = _count(bucket, new, watermark * TICKS)
        ran = _run(work, bucket, store)
        after = _write(work, store, bucket, ran, new, watermark, called=arrived is None)
    except CepError as fault:
        # without the frames of the engine, which tell a user nothing
        raise type(fault)(f"{fault}; the pattern is {work.pattern}") from None
    yield _answer(work, ran, new, after, watermark, bucket.state.clock.reported)


def _read_bucket(work: LiveWork, store: Store) -> Bucket:
    """Return what is known of a bucket.

    Raises
    ------
    EventError
        Another query wrote it, or another release, or keys are spread over another number of buckets than before.
    """
    # Spark logs a warning if what is not there is asked for
    if not store.about.exists():
        return Bucket(first_state(work.live.schema))
    (written,) = store.about.get()
    told = read_about(written)
    if told["query"] != work.digest:
        raise EventError(
            f"the checkpoint holds events that are kept for another query, whose pattern is {told['pattern']}; "
            "start this query with a checkpointLocation of its own"
        )
    if told.get("spread") != _SPREAD:
        raise EventError(
            "the checkpoint was written by an earlier release, which spread keys over buckets in another way; "
            "go on with that release, or start this query with a checkpointLocation of its own"
        )
    buckets = number_of_buckets(work.partitions)
    if told["buckets"] != buckets:
        raise EventError(f"the checkpoint spreads keys over {told['buckets']} buckets, and this run over {buckets}")
    # an earlier release wrote no number of open rows
    return Bucket(read_state(written, work.live.schema), **{name: told.get(name, 0) for name in _FIGURES})


def _take_in_time(work: LiveWork, arrived: Sequence[bytes] | None, watermark: int) -> New:
    """Return the events that are after the watermark, as one chunk.

    Raises
    ------
    EventError
        An event is late, and that is an error.
    """
    if arrived is None:
        return New(None, 0, 0, watermark, 0)
    tables = [read_chunk(chunk) for chunk in arrived]
    events = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    times = events.column(work.live.plan.query.timestamp).cast(pa.int64()).to_numpy()
    in_time = times > watermark
    late = len(times) - int(np.count_nonzero(in_time))
    if late and work.live.refuses_late:
        told = f"{late:,} events are late: their times are not after the watermark, {watermark} microseconds since 1970"
        raise EventError(f"{told}; give withWatermark() a longer delay, or drop late events by late='drop'")
    if work.whole is not None:
        return _return_late(work, events, times, in_time, watermark)
    if late == len(times):
        return New(None, 0, late, watermark, 0)
    if late:
        events, times = events.filter(pa.array(in_time)), times[in_time]
    chunk = arrived[0] if len(tables) == 1 and not late else write_chunk(events.combine_chunks())
    return New(chunk, len(times), late, int(times.max()), len(times))


def _return_late(work: LiveWork, events: pa.Table, times: Numbers, in_time: npt.NDArray[np.bool_], watermark: int) -> New:
    """Return the events that may be in a match, as one chunk, and the late ones as a whole."""
    assert work.whole is not None, "events come as a whole"
    *_, name = events.column_names
    whole = events.column(name).filter(pa.array(~in_time)).combine_chunks()
    late = pa.Table.from_arrays(whole.flatten(), names=work.whole.names).cast(work.whole)
    kept, times = events.drop_columns([name]).filter(pa.array(in_time)), times[in_time]
    # Spark has filtered nothing
    chosen = bindable_rows(work.live, as_events(kept, work.live.schema, work.codes))
    chunk = write_chunk(kept.take(pa.array(chosen)).combine_chunks()) if len(chosen) else None
    return New(chunk, len(chosen), late.num_rows, int(times.max(initial=watermark)), len(times), late)


def _count(bucket: Bucket, new: New, watermark: int) -> Bucket:
    """Return the bucket with the clock moved on."""
    clock = bucket.state.clock
    clock = replace(clock, watermark=watermark, pushed=clock.pushed + new.rows, late=clock.late + new.late)
    return replace(bucket, state=replace(bucket.state, clock=clock))


def _run(work: LiveWork, bucket: Bucket, store: Store) -> Ran:
    """Run the engine over the events of earlier batches, if it is due; those of this batch are behind the watermark."""
    clock = bucket.state.clock
    if not is_due(work.live, clock):
        return Ran(bucket.state, None, None)
    if (not bucket.rows and not _holds(bucket.state)) or _is_settled(work.live, bucket, clock):
        return Ran(replace(bucket.state, clock=replace(clock, answered=clock.watermark)), None, None)
    state = bucket.state
    listed = _read_events(store) if bucket.rows else None
    if listed is not None:
        events, places = _in_order(work, store, as_events(listed.table, work.live.schema, work.codes), listed.numbers)
        # text that came as codes is encoded
        state = hold_events(work.live, replace(state, events=events.slice(0, 0)), events, places)
    context = TaskContext.get()
    threads = 1 if context is None else context.cpus()
    ran, found = certain_matches(work.live, state, threads, None)
    after = give_up_decided(work.live, ran, threads)
    rest = replace(after, events=work.live.schema.empty_table(), times=after.times[:0], numbers=after.numbers[:0])
    # there is no run for a row pattern without rows
    marks = None if work.live.rows is None or listed is None else marks_after(listed.numbers, after.events, after.numbers)
    return Ran(rest, after.numbers, found, listed, marks)


def _in_order(work: LiveWork, store: Store, events: pa.Table, numbers: Numbers) -> tuple[pa.Table, Numbers]:
    """Return the events of a list and their numbers; rows of a row pattern in order, with their marks."""
    if work.live.rows is None:
        return events, numbers
    return in_order_of_ties(work.live.rows, work.ties, read_marks(store.marks, events), numbers)


def _is_settled(live: LiveQuery, bucket: Bucket, clock: Clock) -> bool:
    """Return whether nothing becomes certain of a bucket by time alone: all that its events decide has been answered."""
    by_events = isinstance(live.window, CountWindow) or (
        live.certain is Certain.AT_DETECTION if live.rows is None else not bucket.open
    )
    return by_events and clock.answered is not None and bucket.latest <= clock.answered


def _holds(state: StreamState) -> bool:
    """Return whether matches are held that decide about later ones."""
    return state.held is not None and state.held.rows.num_rows > 0


def _read_events(store: Store) -> Listed:
    """Return what stands in a bucket's list."""
    tables, numbers = [], []
    for first, chunk in store.chunks.get():
        table = read_chunk(chunk)
        if first is None:
            last = table.num_columns - 1
            numbers.append(table.column(last).to_numpy())
            table = table.remove_column(last)
        else:
            numbers.append(np.arange(first, first + table.num_rows))
        tables.append(table)
    return Listed(pa.concat_tables(tables), np.concatenate(numbers))


def _write(work: LiveWork, store: Store, bucket: Bucket, ran: Ran, new: New, watermark: int, *, called: bool) -> Bucket:
    """Write what is kept of a bucket, set its timer, and return what is known of it; `called` by its timer."""
    after = replace(bucket, state=ran.state)
    anew = ran.kept is not None and _is_worth_writing(work.live, bucket, len(ran.kept))
    if ran.kept is not None and anew:
        after = _write_events(store, after, ran.kept, ran.listed)
    if ran.marks is not None:
        write_marks(store.marks, ran.marks, ran.kept if anew else None)
        after = replace(after, open=ran.marks.open)
    if new.chunk is not None:
        store.chunks.appendValue((ran.state.clock.pushed - new.rows, new.chunk))
        rows, size = after.rows + new.rows, after.size + len(new.chunk)
        after = replace(after, rows=rows, size=size, chunks=after.chunks + 1, latest=max(after.latest, new.latest))
    after = _set_timer(work, store, after, watermark, called=called)
    if not after.rows and not _holds(after.state) and after.state.numbering is None:
        store.about.clear()
        return after
    told = {"query": work.digest, "pattern": work.pattern, "buckets": number_of_buckets(work.partitions), "spread": _SPREAD}
    told |= {name: getattr(after, name) for name in _FIGURES}
    store.about.update((write_state(after.state, told),))
    return after


def _is_worth_writing(live: LiveQuery, bucket: Bucket, kept: int) -> bool:
    """Return whether a list is written anew that has so many events which are still needed."""
    # windows of a number of events count those that are kept; of rows, marks tell
    counted = live.rows is None and isinstance(live.window, CountWindow) and bucket.rows > kept
    return counted or bucket.rows > 2 * kept or bucket.chunks >= MOST_CHUNKS


def _write_events(store: Store, bucket: Bucket, kept: Numbers, listed: Listed | None) -> Bucket:
    """Write those of the listed events that are kept as one chunk, and return what is known of the bucket."""
    if listed is None or not len(kept):
        store.chunks.clear()
        return replace(bucket, rows=0, size=0, chunks=0)
    table, numbers = listed
    chosen = np.isin(numbers, kept)
    rest = table.append_column(_NUMBER, pa.array(numbers)).filter(pa.array(chosen)).combine_chunks()
    chunk = write_chunk(rest)
    store.chunks.put([(None, chunk)])
    return replace(bucket, rows=len(kept), size=len(chunk), chunks=1)


def _set_timer(work: LiveWork, store: Store, bucket: Bucket, watermark: int, *, called: bool) -> Bucket:
    """Have Spark call the bucket again once the engine is due, if it keeps anything."""
    clock = bucket.state.clock
    waits = (bucket.rows or _holds(bucket.state)) and not _is_settled(work.live, bucket, clock)
    timer = _due(work.live, clock, watermark) if waits else None
    if timer != bucket.timer:
        # the timer that has gone off is Spark's to delete
        if bucket.timer is not None and not called:
            store.timers.deleteTimer(bucket.timer)
        if timer is not None:
            store.timers.registerTimer(timer)
    return replace(bucket, timer=timer)


def _due(live: LiveQuery, clock: Clock, watermark: int) -> int:
    """Return the watermark, in milliseconds, at which the engine is to run next."""
    if live.every is None or clock.answered is None:
        return watermark + 1
    return max(watermark + 1, -int(-(clock.answered + live.every) // TICKS))


def _answer(work: LiveWork, ran: Ran, new: New, bucket: Bucket, watermark: int, before: int) -> pd.DataFrame:
    """Return the matches in pieces that Spark takes, each packed in a row, with the figures in the first row.

    Of the bucket, so many matches had come out `before`.
    """
    found = ran.found
    if new.returned is not None and new.late:
        found = with_late(no_matches(work.live) if found is None else found, new.returned)
    elif work.whole is not None and found is not None:
        found = with_late(found, work.whole.empty_table())
    tables = [] if found is None else in_batches(found)
    pieces = [write_chunk(pa.Table.from_batches([as_promised(rows, work.result)])) for rows in tables]
    figures = {
        "late": new.late,
        "events": new.events,
        "matches": bucket.state.clock.reported - before,
        "kept": bucket.rows,
        "bytes": bucket.size,
        # the first micro-batch has no watermark yet
        "ahead": max(0, new.latest - watermark * TICKS) if watermark else 0,
    }
    rows = max(1, len(pieces))
    columns: dict[str, list[Any]] = {name: [value, *[0] * (rows - 1)] for name, value in figures.items()}
    packed: list[Any] = [*pieces] or [None]
    return pd.DataFrame({"found": packed} | columns)
