"""What the footers of Parquet files say of the times in a DataFrame, without a job: a hint, on which no match depends."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

# Of more files the footers are not read.
MOST_FILES = 64


def time_span(df: DataFrame, name: str, kind: pa.DataType) -> int | float | None:
    """How far apart the earliest and the latest time are in a column of type `kind`, in its ticks; None if it is not known.

    It is known of DataFrames that are read from a few Parquet files on this
    machine, in which the column has the same name.
    """
    try:
        ends = [end for path in _files(df) for end in _ends(path, name)]
        times = pa.array(ends).cast(kind)
        moments = times.cast(pa.float64() if pa.types.is_floating(kind) else _whole(kind)).to_pylist()
    except (OSError, KeyError, pa.ArrowException, PySparkException):
        return None
    return max(moments) - min(moments) if moments else None


def _files(df: DataFrame) -> list[Path]:
    """The files of this machine that `df` is read from; none if there are others, or many."""
    places = [urlsplit(file) for file in df.inputFiles()]
    local = all(place.scheme == "file" for place in places) and len(places) <= MOST_FILES
    return [Path(unquote(place.path)) for place in places] if local else []


def _ends(path: Path, name: str) -> Iterable[object]:
    """The earliest and the latest value of each row group; KeyError if they are not known."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    for group in groups:
        columns = {chunk.path_in_schema: chunk.statistics for chunk in map(group.column, range(group.num_columns))}
        statistics = columns[name]
        if statistics is None or not statistics.has_min_max:
            raise KeyError(name)
        yield from (statistics.min, statistics.max)


def _whole(kind: pa.DataType) -> pa.DataType:
    """The integers that values of a type are."""
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()
