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
    begin, schema = _batches(first), first.schema
    # Arrow takes the memory of any batch for columns of the types that it was told
    later = (_fitted(each, schema) for given in events for each in _batches(given))
    return pa.RecordBatchReader.from_batches(schema, chain(begin, later))


def _batches(given: Any) -> list[pa.RecordBatch]:
    """Return what an iterator gives as batches."""
    if isinstance(given, pa.Table):
        return list(given.to_batches())
    if isinstance(given, pa.RecordBatch):
        return [given]
    rows = "; for rows give pyarrow.Table.from_pylist(list(events))" if isinstance(given, dict) else ""
    raise EventError(f"events: the iterator gives {type(given).__name__}; expected pyarrow.RecordBatch or pyarrow.Table{rows}")


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` of a batch, which may have more; raise ArrowInvalid if one is missing or of another type."""
    if batch.schema.equals(schema):
        return batch
    for field in schema:
        if batch.schema.names.count(field.name) != 1:
            raise pa.ArrowInvalid(f"a batch of the iterator has not one column {field.name!r}, as the first batch has")
        kind = batch.schema.field(field.name).type
        if kind != field.type:
            raise pa.ArrowInvalid(f"column {field.name!r} of a batch is {kind}, and of the first batch {field.type}; cast it to that")
    return pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def tables_of(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield the batches as tables, one after the other.

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
