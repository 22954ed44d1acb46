"""Match the events of one bucket of keys: take what has arrived, run the engine if the watermark has moved, keep what is needed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.streaming.event_tags import bindable_rows
from gpu_cep.engine.streaming.kinds import with_late
from gpu_cep.engine.streaming.sessions import first_closing
from gpu_cep.engine.streaming.state import Clock, StreamState
from gpu_cep.errors import EventError
from gpu_cep.live.clocks import is_due
from gpu_cep.live.queries import LiveQuery
from gpu_cep.live.steps import certain_matches, give_up_decided, hold_events, no_matches
from gpu_cep_spark.streaming.marks import in_order_of_ties, marks_after, read_marks
from gpu_cep_spark.streaming.packing import read_chunk, rows_of_pieces, write_chunk
from gpu_cep_spark.streaming.state import TICKS, Bucket, New, Numbers, Ran, Store, holds, is_settled, read_bucket, read_events, write_bucket
from gpu_cep_spark.streaming.work import LiveWork
from gpu_cep_spark.tasks.devices import use_device_of_task
from gpu_cep_spark.tasks.results import as_promised, in_batches, naming_pattern
from gpu_cep_spark.tasks.worker import as_events

if TYPE_CHECKING:
    import pandas as pd


def match_sent(work: bytes, state: Sequence[Any], arrived: Sequence[bytes] | None, watermark: int) -> Iterator[pd.DataFrame]:
    """Give the matches of a bucket as :func:`match_bucket`; `work` is pickled."""
    return match_bucket(_unpickled(work), state, arrived, watermark)


@lru_cache(maxsize=4)
def _unpickled(work: bytes) -> LiveWork:
    """Return the work, which a worker keeps from one micro-batch to the next with what runs have learnt."""
    found: LiveWork = pickle.loads(work)
    return found


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
    with naming_pattern(work.pattern):
        bucket = read_bucket(work, store)
        new = _take_in_time(work, arrived, watermark * TICKS)
        bucket = _count(bucket, new, watermark * TICKS)
        ran = _run(work, bucket, store)
        after = write_bucket(work, store, bucket, ran, new, watermark, called=arrived is None)
    yield _answer(work, ran, new, after, watermark, bucket.state.clock)


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
        which = "1 event is late: its time is" if late == 1 else f"{late:,} events are late: their times are"
        told = f"{which} not after the watermark, {watermark} microseconds since 1970"
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
    chosen = bindable_rows(work.live.labelling, as_events(kept, work.live.schema, work.codes))
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
    if (not bucket.rows and not holds(bucket.state)) or is_settled(work.live, bucket, clock):
        return Ran(replace(bucket.state, clock=replace(clock, answered=clock.watermark)), None, None)
    state = bucket.state
    listed = read_events(store) if bucket.rows else None
    if listed is not None:
        events, places = _in_order(work, store, as_events(listed.table, work.live.schema, work.codes), listed.numbers)
        # text that came as codes is encoded
        state = hold_events(work.live, replace(state, events=events.slice(0, 0)), events, places)
    context = TaskContext.get()
    threads = 1 if context is None else context.cpus()
    ran, found = certain_matches(work.live, state, Resources(threads))
    after = give_up_decided(work.live, ran, threads)
    rest = replace(after, events=work.live.schema.empty_table(), times=after.times[:0], numbers=after.numbers[:0])
    # there is no run for a row pattern without rows
    marks = None if work.live.rows is None or listed is None else marks_after(listed.numbers, after.events, after.numbers)
    return Ran(rest, after.numbers, found, listed, marks, _closing(work.live, after))


def _closing(live: LiveQuery, state: StreamState) -> int | None:
    """Return the watermark at which the first of the kept keys has been silent for its time to live; None if it is none."""
    if live.sessions is None:
        return None
    closing = first_closing(live.plan, state.events, state.times, live.sessions.time_to_live)
    return None if closing is None else int(closing)


def _in_order(work: LiveWork, store: Store, events: pa.Table, numbers: Numbers) -> tuple[pa.Table, Numbers]:
    """Return the events of a list and their numbers; rows of a row pattern in order, with their marks."""
    if work.live.rows is None:
        return events, numbers
    return in_order_of_ties(work.live.rows, work.ties, read_marks(store.marks, events), numbers)


def _answer(work: LiveWork, ran: Ran, new: New, bucket: Bucket, watermark: int, before: Clock) -> pd.DataFrame:
    """Return the matches in pieces that Spark takes, each packed in a row, with the figures in the first row.

    `before` is the clock of the bucket before its run.
    """
    found, clock = ran.found, bucket.state.clock
    if new.returned is not None and new.late:
        found = with_late(no_matches(work.live) if found is None else found, new.returned)
    elif work.whole is not None and found is not None:
        found = with_late(found, work.whole.empty_table())
    tables = [] if found is None else in_batches(found)
    pieces = [write_chunk(pa.Table.from_batches([as_promised(rows, work.result)])) for rows in tables]
    figures = {
        "late": new.late,
        "events": new.events,
        "matches": clock.reported - before.reported,
        "kept": bucket.rows,
        "bytes": bucket.size,
        # the first micro-batch has no watermark yet
        "ahead": max(0, new.latest - watermark * TICKS) if watermark else 0,
        "expired": clock.expired - before.expired,
    }
    return rows_of_pieces(pieces, figures)
