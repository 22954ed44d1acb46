"""Read the span of a DataFrame's times from the footers of its Parquet files, without a job."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

# Footers of more files are not read.
MOST_FILES = 64


def time_span(df: DataFrame, name: str, kind: pa.DataType) -> int | float | None:
    """Return the latest minus the earliest time in column `name` of type `kind`, in its ticks.

    It is read from footers of Parquet files on this machine, if there are at most
    :data:`MOST_FILES` with a column of this name. Else it is None. Only the length of slices
    depends on it, never a match.
    """
    try:
        ends = [end for path in _files(df) for end in _ends(path, name)]
        times = pa.array(ends).cast(kind)
        moments = times.cast(pa.float64() if pa.types.is_floating(kind) else _whole(kind)).to_pylist()
    except (OSError, KeyError, pa.ArrowException, PySparkException):
        return None
    return max(moments) - min(moments) if moments else None


def _files(df: DataFrame) -> list[Path]:
    """Return the files that `df` is read from, if all are on this machine and few enough; else none."""
    places = [urlsplit(file) for file in df.inputFiles()]
    local = all(place.scheme == "file" for place in places) and len(places) <= MOST_FILES
    return [Path(unquote(place.path)) for place in places] if local else []


def _ends(path: Path, name: str) -> Iterable[object]:
    """Give the earliest and the latest value of each row group; raises KeyError if they are not known."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    for group in groups:
        columns = {chunk.path_in_schema: chunk.statistics for chunk in map(group.column, range(group.num_columns))}
        statistics = columns[name]
        if statistics is None or not statistics.has_min_max:
            raise KeyError(name)
        yield from (statistics.min, statistics.max)


def _whole(kind: pa.DataType) -> pa.DataType:
    """Return the integer type that holds the ticks of a date or timestamp type."""
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()
