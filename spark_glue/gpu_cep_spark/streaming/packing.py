"""Pack the events of a streaming DataFrame into one Arrow stream for each bucket of keys, and unpack the matches.

Spark's stateful operator walks rows in Python, one by one. It therefore gets few of them: a bucket's
events of one task are one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.errors import EventError

if TYPE_CHECKING:
    import pandas as pd

# Buckets in each partition of the state, of a query by itself.
# A run in one takes milliseconds even of few events; all of its events lie in memory at once.
BUCKETS_PER_PARTITION = 8
# The bucket without events that says whose a checkpoint is. Every query has it; buckets of events have numbers from 0 on.
OWNER = -1
# The bytes of events that a task packs at a time.
PORTION = 1 << 26
# The seed of the hash by which Spark chooses a row's partition.
_SEED = 42
PACKED = "bucket int, events binary"
PACKED_ARROW = pa.schema({"bucket": pa.int32(), "events": pa.binary()})
# A task has one core; to hand work to other threads takes longer than to write or read a small chunk.
_WRITING, _READING = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False), pa.ipc.IpcReadOptions(use_threads=False)
# The settings by which Spark tells tasks how many partitions the state has: newer releases, and older ones.
_PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")


# What the stateful operator gives: packed matches, and the figures of a call, of which Spark adds up those of a micro-batch.
FOUND = "found binary, figures array<long>"


class Figures(NamedTuple):
    """What a call of a bucket tells of itself.

    `events`, `late`: how many events came in time, and too late.
    `matches`: how many came out. `kept`, `bytes`: the events of its list, and their bytes.
    `ahead`: how far its latest event is ahead of the watermark, in ticks. `expired`: how many keys were given up.
    """

    events: int
    late: int
    matches: int
    kept: int
    bytes: int
    ahead: int
    expired: int


class PackedGroup(NamedTuple):
    """Events that are packed together, by their places among the columns that are sent.

    `columns`: the columns of the events.
    `queries`: how many queries share them; 0 if they have no keys.
    `hashed`: the hash of the stream's keys by which events are spread over buckets; None: all go into one bucket.
    """

    columns: tuple[int, ...]
    queries: int = 0
    hashed: int | None = None


@dataclass(frozen=True, slots=True)
class Packing:
    """How tasks pack events.

    Parameters
    ----------
    schema
        The columns in which events are sent, with times in UTC: whatever the session's time zone, a checkpoint fits.
    timestamp
        The number of the column of times.
    name
        What users call that column.
    groups
        How events are packed; each event goes to every group.
    partitions
        The partitions of the state, if Spark does not tell tasks of another number.
    remedy
        What to do with events without a time.
    """

    schema: pa.Schema
    timestamp: int
    name: str
    groups: tuple[PackedGroup, ...]
    partitions: int
    remedy: str = "nulls='drop' leaves these events out"


def pack_partition(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the events of a Spark partition, packed by group and bucket; before them a row for :data:`OWNER`, if there are events.

    Raises
    ------
    EventError
        An event has no timestamp.
    """
    buckets = buckets_of_groups(packing.partitions, [group.queries for group in packing.groups])
    for place, table in enumerate(_portions(batches)):
        if not place:
            yield pa.RecordBatch.from_pydict({"bucket": [OWNER], "events": [b""]}, schema=PACKED_ARROW)
        _refuse_untimed(packing, table)
        typed = table if table.schema == packing.schema else table.cast(packing.schema)
        for group, numbers in zip(packing.groups, buckets, strict=True):
            yield _pack(group, typed, numbers)


def state_partitions(partitions: int) -> int:
    """Return the number of partitions of the checkpoint's state, of which Spark tells tasks.

    `partitions` are those of a task that Spark does not tell.
    """
    context = TaskContext.get()
    told = [] if context is None else [context.getLocalProperty(name) for name in _PARTITIONS]
    return next((int(number) for number in told if number is not None), partitions)


def number_of_buckets(partitions: int) -> int:
    """Return over how many buckets the keys of a query by itself are spread; `partitions` as in :func:`state_partitions`."""
    return BUCKETS_PER_PARTITION * state_partitions(partitions)


def buckets_of_groups(partitions: int, queries: Sequence[int]) -> list[npt.NDArray[np.int32]]:
    """Return the numbers of the buckets of each group.

    A run of one query in one bucket takes milliseconds even of few events. So the more queries a group has, the fewer buckets.

    Parameters
    ----------
    partitions
        As in :func:`state_partitions`.
    queries
        How many queries each group has; 0 for a group without keys, which has one bucket.
    """
    if list(queries) == [0]:
        return [np.zeros(1, np.int32)]
    each = [max(1, BUCKETS_PER_PARTITION // number) if number else 1 for number in queries]
    told = state_partitions(partitions)
    numbers = np.split(bucket_numbers(told, sum(each)).reshape(told, sum(each)), np.cumsum(each)[:-1], axis=1)
    # those without keys lie in partitions that follow each other
    return [own.ravel() if queries[group] else own[group % told] for group, own in enumerate(numbers)]


def group_of_bucket(bucket: int, partitions: int, queries: Sequence[int]) -> int | None:
    """Return the number of the group of a bucket, None if there is no such bucket; arguments as in :func:`buckets_of_groups`."""
    if len(queries) == 1:
        return 0
    return next((group for group, numbers in enumerate(buckets_of_groups(partitions, queries)) if bucket in numbers), None)


@lru_cache(maxsize=8)
def bucket_numbers(partitions: int, each: int) -> npt.NDArray[np.int32]:
    """Return the numbers of all buckets, so chosen that Spark sends `each` of them to every partition of the state.

    Of numbers that follow each other it sends up to twice as many to one of a few partitions as to another.

    Examples
    --------
    >>> bucket_numbers(2, 3).tolist()
    [2, 4, 5, 0, 1, 3]
    >>> partition_of(bucket_numbers(2, 3), 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    tried = 4 * each * partitions
    while True:
        parts = partition_of(np.arange(tried, dtype=np.int32), partitions)
        order, sizes = np.argsort(parts, kind="stable"), np.bincount(parts, minlength=partitions)
        if sizes.min() >= each:
            begins = np.cumsum(sizes) - sizes
            chosen: npt.NDArray[np.int32] = order[(begins[:, None] + np.arange(each)).ravel()].astype(np.int32)
            return chosen
        tried *= 2


def partition_of(numbers: npt.NDArray[np.int32], partitions: int) -> npt.NDArray[np.int32]:
    """Return the partition to which Spark sends each number of a column of integers: the remainder of its Murmur3 hash."""
    hashed = _rotated(numbers.view(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    hashed = _rotated(hashed ^ np.uint32(_SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    # the length of a number in bytes
    hashed ^= np.uint32(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = (hashed ^ hashed >> np.uint32(shift)) * np.uint32(factor)
    found: npt.NDArray[np.int32] = np.mod((hashed ^ hashed >> np.uint32(16)).view(np.int32), np.int32(partitions))
    return found


def _rotated(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    """Return the values with their bits rotated to the left."""
    return values << np.uint32(bits) | values >> np.uint32(32 - bits)


def _portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the batches in tables of about :data:`PORTION` bytes."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= PORTION:
            yield pa.Table.from_batches(gathered)
            gathered, size = [], 0
    if any(batch.num_rows for batch in gathered):
        yield pa.Table.from_batches(gathered)


def _refuse_untimed(packing: Packing, table: pa.Table) -> None:
    missing = table.column(packing.timestamp).null_count
    if missing:
        told = f"timestamp column {packing.name!r} holds {missing:,} NULL{'s' * (missing > 1)} in one partition of the events"
        raise EventError(f"{told}; {packing.remedy}")


def _pack(group: PackedGroup, table: pa.Table, buckets: npt.NDArray[np.int32]) -> pa.RecordBatch:
    """Return one row for each bucket of a group that has events."""
    events = table.select(group.columns).rename_columns([f"c{place}" for place in range(len(group.columns))])
    if group.hashed is None:
        return _rows(buckets[:1], [events])
    numbers = np.mod(table.column(group.hashed).to_numpy().astype(np.int64), len(buckets))
    # of 16 bits, numbers are sorted by counting
    small = numbers.astype(np.uint16) if len(buckets) <= 1 << 16 else numbers
    order = np.argsort(small, kind="stable")
    sorted_events = events.take(pa.array(order)).combine_chunks()
    sizes = np.bincount(numbers)
    present = np.flatnonzero(sizes)
    begins = np.cumsum(sizes) - sizes
    return _rows(buckets[present], [sorted_events.slice(begins[number], sizes[number]) for number in present.tolist()])


def _rows(buckets: npt.NDArray[np.int32], events: Iterable[pa.Table]) -> pa.RecordBatch:
    """Return a row for each bucket with its events, which are written into one buffer, and not copied."""
    sink, ends = pa.BufferOutputStream(), [0]
    for own in events:
        _write(sink, own)
        ends.append(sink.tell())
    places = pa.py_buffer(np.array(ends, np.int32))
    packed = pa.BinaryArray.from_buffers(pa.binary(), len(buckets), [None, places, sink.getvalue()])
    return pa.RecordBatch.from_arrays([pa.array(buckets), packed], schema=PACKED_ARROW)


def write_chunk(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    _write(sink, table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _write(sink: pa.BufferOutputStream, table: pa.Table) -> None:
    """Write a table to a sink as an Arrow stream."""
    with pa.ipc.new_stream(sink, table.schema, options=_WRITING) as writer:
        writer.write_table(table)


def read_chunk(packed: bytes) -> pa.Table:
    """Return the table that :func:`write_chunk` wrote."""
    with pa.ipc.open_stream(packed, options=_READING) as reader:
        return reader.read_all()


def read_column(packed: bytes, column: int) -> pa.ChunkedArray:
    """Return one column, by its number, of the table that :func:`write_chunk` wrote; the others are not decompressed."""
    with pa.ipc.open_stream(packed, options=pa.ipc.IpcReadOptions(use_threads=False, included_fields=[column])) as reader:
        return reader.read_all().column(0)


def rows_of_pieces(pieces: Sequence[bytes], figures: Figures) -> pd.DataFrame:
    """Return the pieces of a result in rows that Spark's stateful operator takes, with the figures in the first row.

    Without a piece there is one row, for the figures.
    """
    # imported here: it takes a second, and only workers of streams need it
    import pandas as pd

    rows = np.empty((max(1, len(pieces)), 2), object)
    rows[: len(pieces), 0] = pieces
    # to make a column of each, and to have Spark take it, takes as long as some steps of the engine
    rows[0, 1] = list(figures)
    return pd.DataFrame(rows, columns=_found_columns())


@lru_cache(maxsize=1)
def _found_columns() -> pd.Index[str]:
    """Return the names of the columns of :data:`FOUND`."""
    import pandas as pd

    return pd.Index(["found", "figures"])


def unpack_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the matches whose Arrow streams stand in the first column of `batches`."""
    for batch in batches:
        for packed in batch.column(0):
            with pa.ipc.open_stream(packed.as_buffer(), options=_READING) as reader:
                yield from reader
