"""Read from a DataFrame's Parquet files, without a job, how many rows there are, how far times are apart and how large streams are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pyarrow.dataset import Expression

# Footers of more files are not read.
MOST_FILES = 64
# The row groups, and the rows at the beginning of each, that the shares of streams are counted in.
SAMPLED_GROUPS, SAMPLED_ROWS = 16, 1 << 14
# Streams with smaller shares than this are of no account.
LEAST_SHARE = 1 / 1024


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


def count_rows(df: DataFrame) -> int | None:
    """Return the number of rows of the files as for :func:`time_span`; None if it is not known."""
    try:
        rows = [pq.read_metadata(path).num_rows for path in _files(df)]
    except (OSError, pa.ArrowException, PySparkException):
        return None
    return sum(rows) if rows else None


def stream_shares(df: DataFrame, keys: Sequence[str]) -> list[float] | None:
    """Return the shares of rows that the largest streams have, by a sample of Parquet files; None if that is not known.

    Only files as for :func:`time_span` are sampled. A stream's share is the
    median of its shares in some row groups, so that it counts only if it is
    large in most of them. Only the choice whether streams are cut depends on it.
    """
    try:
        counted = [_shares_among(rows) for rows in _sampled(df, list(keys))]
    except (OSError, KeyError, pa.ArrowException, PySparkException):
        return None
    found: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for shares in counted:
        for stream, share in shares.items():
            found[stream].append(share)
    missing = [len(counted) - len(shares) for shares in found.values()]
    medians = [median([*shares, *[0.0] * absent]) for shares, absent in zip(found.values(), missing, strict=True)]
    return sorted((share for share in medians if share), reverse=True) if counted else None


class Sample(NamedTuple):
    """Rows of a sample, how many of them pass each filter, by its number, and how many pass some filter."""

    rows: int
    counts: Mapping[int, int]
    any: int


def sample_filters(
    df: DataFrame, filters: Mapping[int, Expression], columns: Sequence[str], folders: Mapping[str, Mapping[str, pa.Scalar]] | None = None
) -> Sample | None:  # fmt: skip
    """Return how many rows of a sample pass filters that read `columns`; the files are sampled as for :func:`stream_shares`.

    `folders` has, for the path of each file, what the names of its folders say of columns (None: nothing).
    None if there is no such sample. Only the choice who reads or shuffles rows depends on it, never a match.
    """
    try:
        sampled = [pa.table(rows) for rows in _sampled(df, list(columns), folders or {})]
        counts = {number: sum(rows.filter(each).num_rows for rows in sampled) for number, each in filters.items()}
        passed = sum(rows.filter(reduce(or_, filters.values())).num_rows for rows in sampled)
    except (OSError, KeyError, pa.ArrowException, PySparkException):
        return None
    size = sum(rows.num_rows for rows in sampled)
    return Sample(size, counts, passed) if size else None


def _sampled(
    df: DataFrame, columns: list[str], folders: Mapping[str, Mapping[str, pa.Scalar]] = MappingProxyType({})
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Yield the rows at the beginning of some row groups; raises KeyError if a file and its folders lack one of the columns."""
    groups = [(path, group) for path in _files(df) for group in range(pq.read_metadata(path).num_row_groups)]
    for path, group in groups[:: -(-len(groups) // SAMPLED_GROUPS) or 1]:
        with pq.ParquetFile(path) as file:
            told = {name: value for name, value in folders.get(str(path), {}).items() if name in columns}
            own = [name for name in columns if name not in told]
            if not set(own) <= set(file.schema_arrow.names):
                raise KeyError(columns)
            for rows in islice(file.iter_batches(SAMPLED_ROWS, row_groups=[group], columns=own), 1):
                yield reduce(lambda found, name: found.append_column(name, pa.repeat(told[name], found.num_rows)), told, rows)


def _shares_among(rows: pa.RecordBatch) -> dict[tuple[object, ...], float]:
    """Return the largest streams, of which `rows` have the keys, and their shares."""
    keys = rows.schema.names
    counts = pa.table(rows).group_by(keys).aggregate([([], "count_all")])
    large = counts.filter(pc.greater_equal(counts.column("count_all"), LEAST_SHARE * rows.num_rows))
    streams = zip(*(large.column(key).to_pylist() for key in keys), strict=True)
    return {stream: count / rows.num_rows for stream, count in zip(streams, large.column("count_all").to_pylist(), strict=True)}


def _files(df: DataFrame) -> list[Path]:
    """Return the files that `df` is read from, if all are on this machine and few enough; else none."""
    places = [urlsplit(file) for file in df.inputFiles()]
    local = all(place.scheme == "file" for place in places) and len(places) <= MOST_FILES
    return [Path(unquote(place.path)) for place in places] if local else []


def _ends(path: Path, name: str) -> Iterable[object]:
    """Yield the earliest and the latest value of each row group; raises KeyError if they are not known."""
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
