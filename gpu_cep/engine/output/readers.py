"""Hand results over as a reader of batches, which are made when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gpu_cep.errors import LESS_MEMORY, MatchLimitExceeded, ending_in


def reader_of(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.RecordBatchReader:
    """Return a reader of the rows of some tables of one schema; what making a table raises is raised by reading it."""
    return pa.RecordBatchReader.from_batches(schema, _batches(tables))


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    with ending_in(MatchLimitExceeded, "reading the result", LESS_MEMORY):
        for table in tables:
            yield from (batch for batch in table.to_batches() if batch.num_rows)
