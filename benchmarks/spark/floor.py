"""What Spark takes by itself: rows handed over to Python, and a column added up."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame


def handed_over(frame: DataFrame) -> DataFrame:
    """Return how many rows each partition hands over to Python, which does nothing with them."""

    def row_counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # local, so that it travels by value
        yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})

    return frame.mapInArrow(row_counts, "rows long")


def total(counts: DataFrame) -> int:
    """Return the sum of the last column."""
    row = counts.groupBy().sum(counts.columns[-1]).first()
    return int(row[0]) if row is not None and row[0] is not None else 0
