"""Match the events of one bucket of keys: take what has arrived, run the engine if the watermark has moved, keep what is needed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.streaming.kinds import with_late
from gpu_cep.errors import CepError
from gpu_cep.live.steps import no_matches
from gpu_cep.rule_sets.tables import join_results, with_late_of_no_pattern
from gpu_cep_spark.streaming.arrivals import take_in_time
from gpu_cep_spark.streaming.packing import OWNER, Figures, group_of_bucket, rows_of_pieces, write_chunk
from gpu_cep_spark.streaming.rule_states import RuleState
from gpu_cep_spark.streaming.runs import run_bucket
from gpu_cep_spark.streaming.state import TICKS, Bucket, New, Store, own_checkpoint, read_bucket, write_bucket
from gpu_cep_spark.streaming.work import LiveGroup, LiveWork
from gpu_cep_spark.tasks.devices import use_device_of_task
from gpu_cep_spark.tasks.results import as_promised, in_batches, naming_pattern

if TYPE_CHECKING:
    import pandas as pd


def match_sent(work: bytes, number: int, state: Sequence[Any], arrived: Sequence[bytes] | None, watermark: int) -> Iterator[pd.DataFrame]:
    """Return what :func:`match_bucket` yields; `work` is pickled."""
    return match_bucket(_unpickled(work), number, state, arrived, watermark)


@lru_cache(maxsize=4)
def _unpickled(work: bytes) -> LiveWork:
    """Return the work, which a worker keeps from one micro-batch to the next with what runs have learnt."""
    found: LiveWork = pickle.loads(work)
    return found


def match_bucket(
    work: LiveWork, number: int, state: Sequence[Any], arrived: Sequence[bytes] | None, watermark: int
) -> Iterator[pd.DataFrame]:  # fmt: skip
    """Yield the matches of a bucket that have become certain, packed, with the figures of this call in the first row.

    Parameters
    ----------
    work
        The work.
    number
        The number of the bucket, which says to which group of queries it belongs. That of :data:`OWNER` gives nothing.
    state
        The fields of a :class:`Store`; the state is changed.
    arrived
        Further events, as tasks packed them; None if the call is for the watermark's sake.
    watermark
        The watermark, in milliseconds.

    Raises
    ------
    CepError
        Any error of the engine, with the pattern or its name added to the message; EventError if the state is another query's.
    """
    store = Store(*state)
    if number == OWNER:
        with _naming(work.groups[0]):
            own_checkpoint(work, store)
        return
    use_device_of_task(TaskContext.get(), os.environ)
    place = group_of_bucket(number, work.partitions, work.queries)
    # a bucket that no group has was written by other queries, which reading it says
    group = work.groups[place or 0]
    with _naming(group):
        bucket = read_bucket(work, group, store)
        new = take_in_time(work, group, arrived, watermark * TICKS)
        bucket = _count(bucket, new, watermark * TICKS)
        ran = run_bucket(group, bucket, store)
        after = write_bucket(work, group, store, bucket, ran, new, called=arrived is None)
        found = _with_late(work, group, ran.found, new)
    matches = sum(known.state.clock.reported for known in after.rules) - sum(known.state.clock.reported for known in bucket.rules)
    expired = sum(known.state.clock.expired for known in after.rules) - sum(known.state.clock.expired for known in bucket.rules)
    # each group gets all events
    counted = new if place == 0 else new._replace(late=0, events=0)
    # the first micro-batch has no watermark yet
    ahead = max(0, new.latest - watermark * TICKS) if watermark else 0
    figures = Figures(counted.events, counted.late, matches, after.rows, after.size, ahead, expired)
    yield rows_of_pieces(_pieces(work, found), figures)


@contextmanager
def _naming(group: LiveGroup) -> Iterator[None]:
    """Add the pattern to the message of any error, if there is one pattern; rules are named where they run."""
    if group.first.name is None:
        with naming_pattern(group.first.pattern):
            yield
        return
    try:
        yield
    except CepError as fault:
        # without the frames of the engine, which tell a user nothing
        raise fault.with_traceback(None) from None


def _count(bucket: Bucket, new: New, watermark: int) -> Bucket:
    """Return the bucket with the clocks of its queries moved on."""
    return replace(bucket, rules=tuple(_moved(known, new, watermark) for known in bucket.rules))


def _moved(known: RuleState, new: New, watermark: int) -> RuleState:
    """Return what is known of a query with its clock moved on."""
    clock = known.state.clock
    clock = replace(clock, watermark=watermark, pushed=clock.pushed + new.rows, late=clock.late + new.late)
    return replace(known, state=replace(known.state, clock=clock))


def _with_late(work: LiveWork, group: LiveGroup, found: pa.Table | None, new: New) -> pa.Table | None:
    """Return what was found with late events as rows, if they are to be; None if there is nothing."""
    late = new.returned if new.late else None
    if work.whole is None or (found is None and late is None):
        return found
    rule, rows = group.first, no_rows(work.whole) if late is None else late
    if rule.name is None:
        return with_late(no_matches(rule.live) if found is None else found, rows)
    return with_late_of_no_pattern(join_results({rule.name: no_matches(rule.live)}) if found is None else found, rows)


def _pieces(work: LiveWork, found: pa.Table | None) -> list[bytes]:
    """Return what was found in pieces that Spark takes, each packed."""
    tables = [] if found is None else in_batches(found)
    return [write_chunk(pa.Table.from_batches([as_promised(rows, work.result)])) for rows in tables]
