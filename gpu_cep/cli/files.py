"""Read events from files and stdin, and write results to files and stdout."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os.path import isdir
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from pyarrow.fs import LocalFileSystem

from gpu_cep.cli.outcome import OTHER_FAULT, USAGE_FAULT, fail
from gpu_cep.cli.timestamps import read_times, refuse_format
from gpu_cep.cli.whole_files import PIPE, write_whole
from gpu_cep.display.cells import check_json, json_lines
from gpu_cep.engine.input.arrow_streams import CONTINUATION, read_stream
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.encodings import decode_table, holds_text
from gpu_cep.engine.input.event_files import COMPRESSIONS, reading, split_suffix
from gpu_cep.engine.input.file_systems import is_uri, open_target
from gpu_cep.engine.input.formats import PARQUET, read_csv, read_files
from gpu_cep.engine.input.json_lines import read_json
from gpu_cep.engine.input.sources import Source, source_of
from gpu_cep.errors import CepError, Diagnostic, UnsupportedError

Writer = Callable[[pa.Table, BinaryIO], None]
# Rows and bytes of what is written at a time; the rows are those of a row group as Arrow writes a table.
_MANY_ROWS, _MANY_BYTES = 1 << 20, 1 << 26


def events_from(names: Sequence[str], timestamp: str = "ts", form: str | None = None) -> Source | pa.Table:
    """Return events as a source of columns, or as a table if they are read as a whole.

    `names` are paths, globs and URIs, whose files are read one behind the other, or ``-`` alone for
    stdin. If the column `timestamp` holds text, it is read as times: in the format `form`, or as ISO 8601.

    Raises
    ------
    EventError
        There are no events there, or only a part, or a text is no time.
    """
    text = () if form is None else (timestamp,)
    if PIPE in names and len(names) > 1:
        fail(f"{PIPE} is stdin, beside which no other events are read", USAGE_FAULT)
    asked = names[0] if len(names) == 1 else names
    events = source_of(asked) if asked != PIPE else _read_pipe(text)
    if events is None:
        events = decode_table(read_files(asked, text))
    place = events.schema.get_field_index(timestamp)
    if place < 0:
        # there is none of this name, or several; planning says so
        return events
    arrow = events.schema.field(place).type
    if pa.types.is_null(arrow):
        return whole(events)
    if holds_text(arrow):
        return read_times(whole(events), timestamp, form)
    if form is not None:
        refuse_format(timestamp, arrow)
    return events


def whole(events: Source | pa.Table) -> pa.Table:
    """Return the events as a table."""
    return events.read(events.schema.names) if isinstance(events, Source) else events


def _read_pipe(text: tuple[str, ...]) -> pa.Table:
    with reading("stdin"):
        held = b"" if sys.stdin is None else sys.stdin.buffer.read()
        if not held:
            raise ValueError("it is empty; expected an Arrow file or stream, Parquet, CSV or lines of JSON")
        return decode_table(_read(held, text))


def _read(held: bytes, text: tuple[str, ...]) -> pa.Table:
    """Return the table that bytes hold; their first ones tell the format."""

    def begins(magic: bytes) -> bool:
        """Return whether the bytes begin with `magic`, or are cut within it."""
        return magic.startswith(held[: len(magic)])

    for magic, compression in _COMPRESSED.items():
        if begins(magic):
            return _read(pa.CompressedInputStream(pa.BufferReader(held), compression).readall(), text)
    if begins(b"ARROW1"):
        return pa.ipc.open_file(pa.BufferReader(held)).read_all()
    if begins(CONTINUATION):
        return read_stream(pa.py_buffer(held), "stdin")
    if begins(b"PAR1"):
        return pa.parquet.read_table(pa.BufferReader(held))
    return read_json(pa.py_buffer(held), "stdin", text) if begins(b"{") else read_csv(pa.py_buffer(held), "stdin", text)


# The first bytes of what is compressed -> Arrow's name of the compression.
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def check_target(name: str, suffixes: tuple[str, ...]) -> str:
    """Return the file's name if its suffix is one of `suffixes`, else end the command with an error."""
    if Path(name).suffix.lower() not in suffixes:
        fail(f"cannot tell the format of {name} from its suffix; expected one of {', '.join(suffixes)}", USAGE_FAULT)
    return in_folder(name)


def in_folder(name: str) -> str:
    """Return the name of a file to be written; end the command if it cannot be written there.

    That is so if there is no such folder, or no such file system.
    """
    try:
        system, path = open_target(name) if is_uri(name) else (LocalFileSystem(), name)
    except (OSError, pa.ArrowException) as fault:
        fail(f"cannot write {name}: {fault}", OTHER_FAULT)
    folder = Path(path).parent
    if isinstance(system, LocalFileSystem) and not isdir(folder):
        fail(f"cannot write {name}: there is no folder {folder}", OTHER_FAULT)
    return name


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A file, or ``-`` for stdout, that a table is written to, and the function that writes its format."""

    name: str
    _write: Writer

    def check(self, schema: pa.Schema) -> None:
        """Check that the format can hold the columns of a table; nothing is opened for that.

        Raises
        ------
        UnsupportedError
            It cannot hold some; the message names them.
        """
        refused = _refused(schema, self._write)
        if refused:
            columns = ", ".join(f"{field.name!r} ({_kind(field.type)})" for field in refused)
            others = ", ".join(suffix for suffix, write in WRITERS.items() if not _refused(schema, write))
            raise UnsupportedError([Diagnostic(f"{self.name} cannot hold {columns}", hint=_fitting(refused, others))])

    def write(self, table: pa.Table) -> None:
        """Write the table whole or not at all; raises as :meth:`check` and :func:`write_whole`."""
        self.check(table.schema)
        write_whole(self.name, lambda target: self._write(table, target))

    def write_parts(self, reader: pa.RecordBatchReader) -> int:
        """Write what a reader gives, whole or not at all, and return the number of rows; raises as :meth:`write` and the reader.

        A file of most formats is written part by part.
        """
        self.check(reader.schema)
        begin = _PARTS.get(self._write)
        # what is no file would keep the parts before an error
        if begin is None or self.name == PIPE or _is_no_file(self.name):
            table = reader.read_all()
            self.write(table)
            return int(table.num_rows)
        rows = 0

        def write(target: BinaryIO) -> None:
            nonlocal rows
            with begin(target, reader.schema) as writer:
                for part in _parts(reader):
                    writer.write_table(part)
                    rows += part.num_rows

        write_whole(self.name, write)
        return rows


def _fitting(refused: Sequence[pa.Field], others: str) -> str:
    """Return what to write in place of columns that a format cannot hold; `others`: the formats that can."""
    if any(pa.types.is_nested(field.type) for field in refused):
        return f"RETURN single values, as in RETURN a.v AS low, or ask for --output events; whole events fit {others}"
    return f"leave the column out, or cast it to text before its events are matched; as it is, it fits {others}"


def table_target(name: str) -> TableTarget:
    """Return the target that `name` stands for, in the format of its suffix; ``-`` takes an Arrow stream."""
    if name == PIPE:
        return TableTarget(name, _write_stream)
    suffix, compression = split_suffix(name)
    if suffix not in WRITERS or (compression and suffix in PARQUET):
        known = f"{', '.join(WRITERS)}, all but Parquet also with {' or '.join(COMPRESSIONS)} behind it"
        fail(f"cannot tell the format of {name} from its suffix; expected one of {known}", USAGE_FAULT)
    write = WRITERS[suffix]
    return TableTarget(in_folder(name), write if compression is None else partial(_write_compressed, write, compression))


def _refused(schema: pa.Schema, write: Writer) -> list[pa.Field]:
    """Return the columns that a format cannot hold."""
    return [field for field in schema if not _can_write(field, write)]


def _can_write(field: pa.Field, write: Writer) -> bool:
    try:
        write(no_rows(pa.schema([field])), io.BytesIO())
    except (pa.ArrowException, CepError):
        return False
    return True


def _kind(arrow: pa.DataType) -> str:
    """Return the name of a type without those of its parts."""
    return str(arrow).partition("<")[0]


def _is_no_file(name: str) -> bool:
    return Path(name).exists() and not Path(name).is_file()


def _parts(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield what a reader gives in larger parts."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _MANY_ROWS or size >= _MANY_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _write_file(table: pa.Table, target: BinaryIO) -> None:
    with pa.ipc.new_file(target, table.schema) as writer:
        writer.write_table(table)


def _write_stream(table: pa.Table, target: BinaryIO) -> None:
    writer = pa.ipc.new_stream(target, table.schema)
    writer.write_table(table)
    # the end marker, which a `with` would write after an error, too
    writer.close()
    target.flush()


_TABS = pa.csv.WriteOptions(delimiter="\t")


def _write_tabs(table: pa.Table, target: BinaryIO) -> None:
    pa.csv.write_csv(table, target, _TABS)


def _write_compressed(write: Writer, compression: str, table: pa.Table, target: BinaryIO) -> None:
    held = pa.BufferOutputStream()
    with pa.CompressedOutputStream(held, compression) as packed:
        write(table, packed)
    target.write(held.getvalue())


def _write_json(table: pa.Table, target: BinaryIO) -> None:
    check_json(table.schema)
    target.writelines(json_lines(table))


WRITERS: dict[str, Writer] = {
    ".parquet": pa.parquet.write_table,
    ".pq": pa.parquet.write_table,
    ".csv": pa.csv.write_csv,
    ".tsv": _write_tabs,
    ".arrow": _write_file,
    ".feather": _write_file,
    ".arrows": _write_stream,
    ".jsonl": _write_json,
    ".ndjson": _write_json,
}
# Functions that open a file to which tables are written one after the other, by the function that writes a whole one.
_PARTS: dict[Writer, Callable[[BinaryIO, pa.Schema], Any]] = {
    pa.parquet.write_table: pa.parquet.ParquetWriter,
    pa.csv.write_csv: pa.csv.CSVWriter,
    _write_tabs: lambda target, schema: pa.csv.CSVWriter(target, schema, write_options=_TABS),
    _write_file: pa.ipc.new_file,
}
