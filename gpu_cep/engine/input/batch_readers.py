"""Take events that come batch by batch: a reader of record batches, or any iterator of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from gpu_cep.engine.input.encodings import decode_table
from gpu_cep.errors import EventError


def reader_of_batches(events: Iterator[Any]) -> pa.RecordBatchReader:
    """Return an iterator of batches as a reader of them.

    Raises
    ------
    EventError
        The iterator gives no batch, which would say what the columns are, or something else.
    """
    if isinstance(events, pa.RecordBatchReader):
        return events
    first = next(events, None)
    if first is None:
        raise EventError("events: the iterator gives no batch, and so no columns; give a pyarrow.RecordBatchReader, which has a schema")
    begin = list(_batches(first))
    return pa.RecordBatchReader.from_batches(first.schema, chain(begin, (each for given in events for each in _batches(given))))


def _batches(given: Any) -> list[pa.RecordBatch]:
    """Return what an iterator gives as batches."""
    if isinstance(given, pa.Table):
        return list(given.to_batches())
    if isinstance(given, pa.RecordBatch):
        return [given]
    raise EventError(f"events: the iterator gives {type(given).__name__}; expected pyarrow.RecordBatch or pyarrow.Table")


def tables_of(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Give the batches as tables, one after the other.

    Raises
    ------
    EventError
        A batch cannot be read.
    """
    number = 0
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as fault:
            raise EventError(f"events: cannot read batch {number:,}: {fault}") from fault
        number += 1
        yield decode_table(pa.Table.from_batches([batch]))
