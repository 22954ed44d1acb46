"""Write the events of files that lie in no order of time to temporary files, whose row groups are each of a short time."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.grouped_files import GroupedFiles, open_numbered
from gpu_cep.engine.input.machine_values import Array, machine_values
from gpu_cep.engine.input.row_numbers import Rows
from gpu_cep.engine.input.time_cut import SliceReach
from gpu_cep.engine.slices.untimed import refuse_missing_of
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.matches.groups import order_by_group

# Spans of time for each slice that is read: a window's overlap is read in whole spans.
SPANS_PER_SLICE, MOST_SPANS = 8, 1 << 12
# Rows from which a row group is worth its place in the footer.
_FEW_ROWS = 1 << 10
# Times of which the borders of spans are chosen.
_SAMPLE = 1 << 20
# Share of the memory that the part which is written may take: it is there as it was read, and in order.
_PARTS = 4


class Folder:
    """A temporary folder that is removed when nothing refers to it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="gpu-cep-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder."""
        self._remove()


@dataclass(frozen=True, slots=True)
class TimeSample:
    """Some of the times of all events, ascending; each stands for `weight` events."""

    times: Array
    weight: float

    def most_within(self, reach: SliceReach) -> int:
        """Return about how many events the longest reach of a single first event holds."""
        behind = np.searchsorted(self.times, self.times.astype(np.float64) + float(reach.window), side="right") - np.arange(len(self.times))
        return int(self.weight * behind.max(initial=0)) * (2 if reach.back else 1)


def sample_times(files: GroupedFiles, timestamp: str) -> TimeSample:
    """Return a sample of the times that events have; only this column is read."""
    rows = int(files.groups.rows.sum())
    stride = max(1, rows // _SAMPLE)
    taken = [_ticks(table, timestamp)[1][::stride] for table in files.parts(files.groups, [timestamp])]
    times = np.sort(np.concatenate(taken)) if taken else np.empty(0, np.int64)
    return TimeSample(times, rows / max(1, len(times)))


def bring_in_order(files: GroupedFiles, plan: Plan, sample: TimeSample, memory: int, spans: int) -> GroupedFiles:
    """Return the same events in temporary files, cut into about so many spans of time; rows keep their numbers.

    Events without a time are left out if the query of the plan says so. Parts of the files are read one after the other, and each is
    written as a file with a row group for each span. Events of equal times keep their order.

    Raises
    ------
    EventError
        The files cannot be read, the temporary files cannot be written, or an event has no time.
    """
    timestamp = plan.query.column_name(plan.query.timestamp)
    if not len(sample.times):
        # nothing that is read has a time
        return files
    folder, numbers = Folder(), _unused_name(files.schema)
    borders = np.unique(sample.times[np.arange(1, spans) * len(sample.times) // spans])
    try:
        for number, places in enumerate(_parts(files, memory // _PARTS)):
            part = files.read(places)
            assert part.numbers is not None, "its rows are numbered"
            refuse_missing_of(plan, files, part.table)
            table = part.table.append_column(numbers, pa.array(np.asarray(part.numbers)))
            _write(folder.path / f"{number:08}.parquet", _plain(table, files.schema), _spans(table, timestamp, borders), len(borders) + 1)
        return open_numbered(str(folder.path), files, timestamp, numbers, folder)
    except BaseException as fault:
        folder.close()
        if not isinstance(fault, OSError):
            raise
        remedy = "the environment variable TMPDIR names another folder"
        raise EventError(f"cannot write the events in order of time to {folder.path}: {fault.strerror or fault}; {remedy}") from fault


def spans_for(size: int, most: int, rows: int) -> int:
    """Return into how many spans of time events of `size` bytes are cut for slices of at most `most` bytes."""
    return max(2, min(MOST_SPANS, SPANS_PER_SLICE * size // max(1, most), rows // _FEW_ROWS))


def _parts(files: GroupedFiles, most: int) -> Iterator[Rows]:
    """Yield the places of row groups that are read together, of at most so many bytes each if a row group has not more."""
    through = np.cumsum(files.groups.size)
    begin = 0
    while begin < len(through):
        before = through[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(through, before + most, side="right")))
        yield np.arange(begin, end)
        begin = end


def _ticks(table: pa.Table, timestamp: str) -> tuple[npt.NDArray[np.bool_], Array]:
    """Return which events have a time, and these times in ticks."""
    column = table.column(timestamp)
    held = pc.invert(pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)))
    times = column.filter(held).combine_chunks()
    joined = times if isinstance(times, pa.Array) else pa.concat_arrays(times.chunks)
    values = machine_values(joined, timestamp)
    return held.to_numpy(), values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def _spans(table: pa.Table, timestamp: str, borders: Array) -> Rows:
    """Return the span in which each event lies; those without a time are in the one behind the last."""
    held, times = _ticks(table, timestamp)
    spans = np.full(table.num_rows, len(borders) + 1, np.int64)
    spans[held] = np.searchsorted(borders, times, side="right")
    return spans


def _write(path: Path, table: pa.Table, spans: Rows, count: int) -> None:
    """Write the events of each of `count` spans as a row group."""
    from pyarrow import parquet

    order, begins = order_by_group(spans, count + 1)
    in_order = table.take(pa.array(order))
    with parquet.ParquetWriter(path, table.schema, compression="lz4") as writer:
        for begin, end in zip(begins[:count].tolist(), begins[1 : count + 1].tolist(), strict=True):
            if end > begin:
                writer.write_table(in_order.slice(begin, end - begin), row_group_size=end - begin)


def _plain(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with texts as they are, so that a file has them in the types of the schema."""
    fields = [schema.field(field.name) if field.name in schema.names else field for field in table.schema]
    return table.cast(pa.schema(fields))


def _unused_name(schema: pa.Schema) -> str:
    name = "row"
    while name in schema.names:
        name += "_"
    return name
