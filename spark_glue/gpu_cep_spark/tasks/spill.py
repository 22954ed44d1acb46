"""Spill events to disk if a worker may not hold them all.

They are split by a hash of their stream's keys, and read back stream by stream.

The files have no names, so the system removes them however the process ends.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.errors import CepError

Hashes = npt.NDArray[np.uint64]

# Events are split by so many bits of the hash at a time, into two to this power files.
BITS = 5
_LEVELS = 64 // BITS
# Events are sorted by file in portions, since sorting takes several times their memory: this share of the limit, and at most so many bytes.
PORTIONS, PORTION = 8, 1 << 26
# The hash of NULL, and the factor by which the hash of a row depends on the order of its columns.
_NULL, _COLUMN = 0x6A09E667F3BCC909, 0x9E3779B97F4A7C15

_log = logging.getLogger("gpu_cep")


@dataclass(frozen=True, slots=True)
class Room:
    """The bytes of events that a worker holds at a time, and the folder in which the others wait.

    `hashes` returns for each row of a table the hash of its stream; None if all rows are one stream.
    """

    limit: int
    folder: str
    hashes: Callable[[pa.Table], Hashes] | None


def whole_streams(batches: Iterable[pa.RecordBatch], room: Room, level: int = 0) -> Generator[pa.Table, None, None]:
    """Yield all rows of `batches` in tables of at most ``room.limit`` bytes, each stream whole in one.

    A table of a single stream may be larger. `level` is the number of times that the rows have been
    split by their hashes.

    Raises
    ------
    CepError
        The folder of `room` does not take the rows; the message says why.
    """
    gathered, size, rest = deque[pa.RecordBatch](), 0, iter(batches)
    splits = room.hashes is not None and level < _LEVELS
    while (size <= room.limit or not splits) and (batch := next(rest, None)) is not None:
        gathered.append(batch)
        size += batch.nbytes
    if size <= room.limit or not splits:
        if gathered:
            yield pa.Table.from_batches(gathered)
        return
    with ExitStack() as files:
        for file in _split(_portions(gathered, rest, min(room.limit // PORTIONS, PORTION)), room, level, files):
            yield from whole_streams(file.read(), replace(room, hashes=None) if file.holds_one_stream else room, level + 1)


def stream_hashes(columns: EventColumns, keys: Iterable[int]) -> Hashes:
    """Return a hash of the values of `keys` for each row.

    It is the same for values that are the same key: all NULLs, all NaNs, and zeros of either sign.
    """
    combined = np.zeros(len(columns), np.uint64)
    for key in keys:
        combined = _mix(combined * np.uint64(_COLUMN) + _column_hashes(columns, key))
    return combined


def spill_folder(environment: Mapping[str, str], partition: int) -> str:
    """Return one of the folders that Spark itself spills to; partitions take turns."""
    folders = [folder for folder in environment.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(folder)]
    return folders[partition % len(folders)] if folders else tempfile.gettempdir()


@dataclass(slots=True)
class _SpillFile:
    """A file in `folder` of the rows whose hashes agree in some bits, with their lowest and highest hash."""

    folder: str
    file: IO[bytes]
    writer: Any
    lowest: int = (1 << 64) - 1
    highest: int = 0

    @property
    def holds_one_stream(self) -> bool:
        """Return whether all rows have the same hash, so that splitting further is useless."""
        return self.lowest == self.highest

    def write(self, rows: pa.Table, hashes: Hashes) -> None:
        """Append rows, whose hashes are given."""
        with _naming(self.folder):
            self.writer.write_table(rows)
        self.lowest, self.highest = min(self.lowest, int(hashes.min())), max(self.highest, int(hashes.max()))

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, which is possible once: the file is removed after the last of them."""
        with _naming(self.folder), self.file:
            self.writer.close()
            self.file.seek(0)
            yield from pa.ipc.open_stream(self.file)


def _spill_file(schema: pa.Schema, folder: str, files: ExitStack) -> _SpillFile:
    with _naming(folder):
        file = tempfile.TemporaryFile(prefix="gpu_cep-", dir=folder)  # noqa: SIM115 (`files` closes it)
        files.callback(_discard, file)
        return _SpillFile(folder, file, pa.ipc.new_stream(file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")))


def _discard(file: IO[bytes]) -> None:
    # what a full disk has not taken is not needed any more
    with suppress(OSError):
        file.close()


@contextmanager
def _naming(folder: str) -> Iterator[None]:
    """Turn an error of the disk inside into a CepError that names the folder."""
    try:
        yield
    except OSError as fault:
        events = f"events that do not fit in memory cannot wait in {folder}: {fault.strerror or fault}"
        raise CepError(f"{events}; make room there, or raise worker_memory=") from fault


def _portions(gathered: deque[pa.RecordBatch], rest: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Yield the batches in tables of about `size` bytes; no batch is referenced after its table."""
    portion, taken = [], 0
    for batch in chain(_drain(gathered), rest):
        portion.append(batch)
        taken += batch.nbytes
        if taken >= size:
            yield pa.Table.from_batches(portion)
            portion, taken = [], 0
    if portion:
        yield pa.Table.from_batches(portion)


def _drain(gathered: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while gathered:
        yield gathered.popleft()


def _split(portions: Iterator[pa.Table], room: Room, level: int, files: ExitStack) -> list[_SpillFile]:
    """Write all rows to files by the next bits of their hashes; `files` closes files that are not read."""
    assert room.hashes is not None
    written: dict[int, _SpillFile] = {}
    size = 0
    for portion in portions:
        size += portion.nbytes
        hashes = room.hashes(portion)
        numbers = (hashes >> np.uint64(BITS * level) & np.uint64((1 << BITS) - 1)).astype(np.uint8)
        order = np.argsort(numbers, kind="stable")
        rows, hashes = portion.take(pa.array(order)), hashes[order]
        present, begins = np.unique(numbers[order], return_index=True)
        for number, begin, end in zip(present.tolist(), begins.tolist(), [*begins[1:].tolist(), len(order)], strict=True):
            if number not in written:
                written[number] = _spill_file(rows.schema, room.folder, files)
            written[number].write(rows.slice(begin, end - begin), hashes[begin:end])
    _log.info("%s bytes of events do not fit %s: they wait in %d files in %s", f"{size:,}", f"{room.limit:,}", len(written), room.folder)
    return list(written.values())


def _column_hashes(columns: EventColumns, column: int) -> Hashes:
    if columns.type(column).kind is Kind.STRING:
        text = columns.texts.codes(column)
        distinct = [*map(hash, text.values.to_pylist()), _NULL]
        return _mix(np.array(distinct, np.int64).view(np.uint64))[text.codes]
    values = columns.key_values(column)
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values.astype(np.float64))
    found = _mix(values.astype(np.float64 if values.dtype.kind == "f" else np.int64).view(np.uint64))
    nulls = columns.null_mask(column)
    return found if nulls is None else np.where(nulls, np.uint64(_NULL), found)


def _mix(values: Hashes) -> Hashes:
    """Return the values with their bits mixed, by the finaliser of SplitMix64.

    Every bit depends on all bits of the value. Different values stay different.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
