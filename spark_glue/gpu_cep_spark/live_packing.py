"""Pack the events of a streaming DataFrame into one Arrow stream for each bucket of keys, and unpack the matches.

Spark's stateful operator walks rows in Python, one by one. It therefore gets few of them: a bucket's
events of one task are one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.errors import EventError

# Buckets for each partition of the state, enough that hashing spreads keys evenly.
BUCKETS_PER_PARTITION = 32
# The bytes of events that a task packs at a time.
PORTION = 1 << 26
PACKED = "bucket int, events binary"
PACKED_ARROW = pa.schema({"bucket": pa.int32(), "events": pa.binary()})
# The settings by which Spark tells tasks how many partitions the state has: newer releases, and older ones.
_PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")


@dataclass(frozen=True, slots=True)
class Packing:
    """How tasks pack events.

    Parameters
    ----------
    schema
        The columns in which events are kept, with times in UTC: whatever the session's time zone, a checkpoint fits.
    timestamp
        The number of the column of times.
    name
        What users call that column.
    keyed
        Whether a hash of the stream's keys stands in the last column; else all events go into one bucket.
    partitions
        The partitions of the state, if Spark does not tell tasks of another number.
    remedy
        What to do with events without a time.
    """

    schema: pa.Schema
    timestamp: int
    name: str
    keyed: bool
    partitions: int
    remedy: str = "nulls='drop' leaves these events out"


def pack_partition(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the events of a Spark partition, packed by bucket.

    Raises
    ------
    EventError
        An event has no timestamp.
    """
    buckets = number_of_buckets(packing.partitions)
    for table in _portions(batches):
        _refuse_untimed(packing, table)
        yield _pack(packing, table if table.schema == packing.schema else table.cast(packing.schema), buckets)


def number_of_buckets(partitions: int) -> int:
    """Return over how many buckets keys are spread, by the partitions of the checkpoint's state, of which Spark tells tasks.

    `partitions` are those of a task that Spark does not tell.
    """
    context = TaskContext.get()
    told = [] if context is None else [context.getLocalProperty(name) for name in _PARTITIONS]
    return BUCKETS_PER_PARTITION * next((int(number) for number in told if number is not None), partitions)


def _portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Give the batches in tables of about :data:`PORTION` bytes."""
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


def _pack(packing: Packing, table: pa.Table, buckets: int) -> pa.RecordBatch:
    """Return one row for each bucket that has events."""
    if not packing.keyed:
        return _rows([0], [write_chunk(table)])
    last = table.num_columns - 1
    numbers = np.mod(table.column(last).to_numpy().astype(np.int64), buckets)
    # of 16 bits, numbers are sorted by counting
    small = numbers.astype(np.uint16) if buckets <= 1 << 16 else numbers
    order = np.argsort(small, kind="stable")
    events = table.remove_column(last).take(pa.array(order)).combine_chunks()
    present, begins = np.unique(numbers[order], return_index=True)
    ends = [*begins[1:].tolist(), len(order)]
    packed = [write_chunk(events.slice(begin, end - begin)) for begin, end in zip(begins.tolist(), ends, strict=True)]
    return _rows(present.tolist(), packed)


def _rows(buckets: list[int], packed: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(buckets, pa.int32()), pa.array(packed, pa.binary())], schema=PACKED_ARROW)


def write_chunk(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def read_chunk(packed: bytes) -> pa.Table:
    """Return the table that :func:`write_chunk` wrote."""
    with pa.ipc.open_stream(packed) as reader:
        return reader.read_all()


def unpack_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the matches whose Arrow streams stand in the first column of `batches`."""
    for batch in batches:
        for packed in batch.column(0):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from reader
