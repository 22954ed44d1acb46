"""Keep a bucket of keys in Spark's state store: read what is there, write what has changed, and set the timer.

A bucket's state is a list of chunks of events, to which new ones are added, and what is known beside them. The list is
written anew only if less than half of its events are still needed. So a batch writes about what it brings, however
long the window is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.streaming.state import Clock, saving_release
from gpu_cep.errors import EventError
from gpu_cep.live.queries import LiveQuery
from gpu_cep.plan.certainty import Certain
from gpu_cep_spark.streaming.marks import ListMarks, write_marks
from gpu_cep_spark.streaming.packing import number_of_buckets, read_chunk, write_chunk
from gpu_cep_spark.streaming.rule_states import RuleState, first_states, read_states, write_states
from gpu_cep_spark.streaming.work import LiveGroup, LiveWork

# Ticks of Spark's timestamps in a millisecond, in which it tells the watermark.
TICKS = 1_000
# Chunks that a bucket's list may have before they are joined, and bytes of a chunk that takes longer to join than to read by itself.
MOST_CHUNKS, LARGE = 64, 1 << 15
_NUMBER, _NEEDED = "number", "needed"
# How keys are spread over buckets: as many buckets in each partition.
_SPREAD = "evenly"
# The fields of a bucket that are written beside the states of its queries.
_FIGURES = ("rows", "size", "chunks", "timer", "latest")

Numbers = npt.NDArray[np.int64]


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

    `rules`: what is known of each of its queries.
    `rows`, `size`, `chunks`: the number of events in its list, their bytes, and the number of chunks.
    `timer`: the watermark, in milliseconds, at which it is called next if no event comes (None: never).
    `latest`: the latest time of its events.
    """

    rules: tuple[RuleState, ...]
    rows: int = 0
    size: int = 0
    chunks: int = 0
    timer: int | None = None
    latest: int = 0

    @property
    def clock(self) -> Clock:
        """Return the clock, by which all queries go; matches are counted for each."""
        return self.rules[0].state.clock

    def waits(self, known: RuleState) -> bool:
        """Return whether a query may need events of the list, or holds matches back."""
        return known.holds or (self.rows > 0 and (known.since is None or known.since <= self.latest))


class Chunk(NamedTuple):
    """Events as a list has them, and their number."""

    packed: bytes
    rows: int


class New(NamedTuple):
    """What has arrived: chunks of events, how many others were late, and the latest time.

    `events` counts those that were not late. The chunks have fewer if some are in no match, and are not kept.
    `returned` are the late ones, if they come out as rows.
    """

    chunks: tuple[Chunk, ...]
    late: int
    latest: int
    events: int
    returned: pa.Table | None = None

    @property
    def rows(self) -> int:
        """Return the number of events in the chunks."""
        return sum(chunk.rows for chunk in self.chunks)


class Listed(NamedTuple):
    """The events of a bucket's list as they are stored, and their numbers, which rise.

    `needed`: of the first events, which were there when the list was written anew, which ones each query that shares them needed
    then: a column of flags for each query. All need those behind.
    """

    table: pa.Table
    numbers: Numbers
    needed: pa.Table

    def need(self, query: int, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Return which of these rows of the list a query may need, given by its place in the group."""
        flags: npt.NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        if self.needed.num_columns:
            early = rows < self.needed.num_rows
            flags[early] = self.needed.column(query).to_numpy()[rows[early]]
        return flags


class Ran(NamedTuple):
    """What a run of the engine leaves: what is known of each query, the numbers of events that are kept (None: all), and matches.

    `listed` is what was read of the list, and `marks` are those of the rows of a row pattern.
    `kept_by` has the numbers of events that each query keeps, if several share them.
    """

    rules: tuple[RuleState, ...]
    kept: Numbers | None = None
    found: pa.Table | None = None
    listed: Listed | None = None
    marks: ListMarks | None = None
    kept_by: tuple[Numbers, ...] = ()


def read_bucket(work: LiveWork, group: LiveGroup, store: Store) -> Bucket:
    """Return what is known of a bucket of a group.

    Raises
    ------
    EventError
        Other queries wrote it, or another release, or keys are spread over another number of buckets than before.
    """
    # Spark logs a warning if what is not there is asked for
    if not store.about.exists():
        return Bucket(first_states(group))
    (written,) = store.about.get()
    rules, told = read_states(work, group, written)
    if told.get("spread") != _SPREAD:
        raise EventError(
            "the checkpoint was written by an earlier release, which spread keys over buckets in another way; "
            f"go on with {saving_release(told)}, or start this query with a checkpointLocation of its own"
        )
    buckets = number_of_buckets(work.partitions)
    if told["buckets"] != buckets:
        raise EventError(f"the checkpoint spreads keys over {told['buckets']} buckets, and this run over {buckets}")
    # an earlier release did not write all of them
    return Bucket(rules, **{name: told[name] for name in _FIGURES if name in told})


def own_checkpoint(work: LiveWork, store: Store) -> None:
    """Write to which queries a checkpoint belongs, or check that it belongs to these; raises as :func:`read_bucket`.

    The store is that of the bucket that every query has, which holds what is known of a bucket without events.
    """
    group = work.groups[0]
    known = read_bucket(work, group, store)
    if not store.about.exists():
        _write_about(work, group, store, known)


def is_settled(live: LiveQuery, known: RuleState, latest: int) -> bool:
    """Return whether nothing becomes certain by time alone: all that events until the `latest` time decide has been answered."""
    clock = known.state.clock
    by_events = isinstance(live.window, CountWindow) or (live.certain is Certain.AT_DETECTION if live.rows is None else not known.open)
    waits_for_silence = known.closing is None or clock.watermark is None or clock.watermark < known.closing
    return by_events and clock.answered is not None and latest <= clock.answered and waits_for_silence


def read_events(group: LiveGroup, store: Store) -> Listed:
    """Return what stands in the list of a group's bucket."""
    columns = len(group.schema)
    tables, numbers, needed = [], [], pa.table({})
    for first, chunk in store.chunks.get():
        table = read_chunk(chunk)
        if first is None:
            # it is the first chunk, since the list has been written anew
            numbers.append(table.column(columns).to_numpy())
            needed = table.select(range(columns + 1, table.num_columns))
            table = table.select(range(columns))
        else:
            numbers.append(np.arange(first, first + table.num_rows))
        tables.append(table)
    return Listed(pa.concat_tables(tables), np.concatenate(numbers), needed)


def write_bucket(work: LiveWork, group: LiveGroup, store: Store, bucket: Bucket, ran: Ran, new: New, *, called: bool) -> Bucket:
    """Write what is kept of a bucket, set its timer, and return what is known of it; `called` by its timer."""
    after = replace(bucket, rules=ran.rules)
    anew = ran.kept is not None and _is_worth_writing(group, bucket, len(ran.kept))
    if ran.kept is not None and anew:
        after = _write_events(store, after, ran.kept, ran)
    if ran.marks is not None:
        write_marks(store.marks, ran.marks, ran.kept if anew else None)
    if new.chunks:
        after = _append(store, after, new)
    after = _set_timer(group, store, after, called=called)
    if not after.rows and all(known.is_new for known in after.rules):
        store.about.clear()
        return after
    _write_about(work, group, store, after)
    return after


def _append(store: Store, bucket: Bucket, new: New) -> Bucket:
    """Write further chunks behind a bucket's list, with the number of the first event of each, and return what is known of the bucket."""
    begins = accumulate((chunk.rows for chunk in new.chunks[:-1]), initial=bucket.clock.pushed - new.rows)
    # one message to Spark, however many chunks there are
    store.chunks.appendList([(first, chunk.packed) for first, chunk in zip(begins, new.chunks, strict=True)])
    rows, size = bucket.rows + new.rows, bucket.size + sum(len(chunk.packed) for chunk in new.chunks)
    return replace(bucket, rows=rows, size=size, chunks=bucket.chunks + len(new.chunks), latest=max(bucket.latest, new.latest))


def _write_about(work: LiveWork, group: LiveGroup, store: Store, bucket: Bucket) -> None:
    """Write what is known of a bucket beside its events."""
    told = {"buckets": number_of_buckets(work.partitions), "spread": _SPREAD}
    told |= {name: getattr(bucket, name) for name in _FIGURES}
    store.about.update((write_states(work, group, bucket.rules, told),))


def _is_worth_writing(group: LiveGroup, bucket: Bucket, kept: int) -> bool:
    """Return whether a list is written anew that has so many events which are still needed."""
    live = group.first.live
    # windows of a number of events count those that are kept, and share them with none; of rows, marks tell
    counted = live.rows is None and isinstance(live.window, CountWindow) and bucket.rows > kept
    many_small = bucket.chunks >= MOST_CHUNKS and bucket.size < bucket.chunks * LARGE
    return counted or bucket.rows > 2 * kept or many_small


def _write_events(store: Store, bucket: Bucket, kept: Numbers, ran: Ran) -> Bucket:
    """Write those of the listed events that are kept as one chunk, and return what is known of the bucket."""
    if ran.listed is None or not len(kept):
        store.chunks.clear()
        return replace(bucket, rows=0, size=0, chunks=0)
    table, numbers, _ = ran.listed
    chosen = np.isin(numbers, kept)
    rest = table.append_column(_NUMBER, pa.array(numbers)).filter(pa.array(chosen)).combine_chunks()
    for place, own in enumerate(ran.kept_by):
        rest = rest.append_column(f"{_NEEDED}{place}", pa.array(_flags(numbers[chosen], own)))
    chunk = write_chunk(rest)
    store.chunks.put([(None, chunk)])
    return replace(bucket, rows=len(kept), size=len(chunk), chunks=1)


def _flags(numbers: Numbers, own: Numbers) -> npt.NDArray[np.bool_]:
    """Return which of some numbers, which rise, are among a query's own ones, all of which are among them."""
    flags = np.zeros(len(numbers), np.bool_)
    flags[np.searchsorted(numbers, own)] = True
    return flags


def _set_timer(group: LiveGroup, store: Store, bucket: Bucket, *, called: bool) -> Bucket:
    """Have Spark call the bucket again once the engine is due for a query that waits for something."""
    waiting = [(rule.live, known) for rule, known in zip(group.rules, bucket.rules, strict=True) if bucket.waits(known)]
    dues = [due for live, known in waiting if (due := _due(live, known, bucket.latest)) is not None]
    timer = min(dues, default=None)
    if timer != bucket.timer:
        # the timer that has gone off is Spark's to delete
        if bucket.timer is not None and not called:
            store.timers.deleteTimer(bucket.timer)
        if timer is not None:
            store.timers.registerTimer(timer)
    return replace(bucket, timer=timer)


def _due(live: LiveQuery, known: RuleState, latest: int) -> int | None:
    """Return the watermark, in milliseconds, at which the engine is to run next if no event comes; None: not at all."""
    clock = known.state.clock
    assert clock.watermark is not None, "Spark tells one"
    watermark = int(clock.watermark) // TICKS
    if is_settled(live, known, latest):
        return None if known.closing is None else -(-known.closing // TICKS)
    if live.every is None or clock.answered is None:
        return watermark + 1
    return max(watermark + 1, -int(-(clock.answered + live.every) // TICKS))
