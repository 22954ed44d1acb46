"""Read events from files and stdin, and write results to files and stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from gpu_cep.cli.outcome import USAGE_FAULT, fail
from gpu_cep.display.cells import json_lines
from gpu_cep.errors import EventError

PIPE = "-"
_CONTINUATION = b"\xff\xff\xff\xff"  # the first bytes of an Arrow stream

Writer = Callable[[pa.Table, BinaryIO], None]


def events_from(name: str) -> Any:
    """Return events in a form that the library takes.

    For ``-`` that is the table in stdin (Arrow file or stream, Parquet or CSV), else the path itself.
    """
    return _read_pipe(sys.stdin.buffer) if name == PIPE else name


def _read_pipe(source: BinaryIO) -> pa.Table:
    try:
        return _read(source.read())
    except (pa.ArrowInvalid, OSError) as fault:
        raise EventError(f"events: cannot read stdin: {fault}") from fault


def _read(held: bytes) -> pa.Table:
    """Return the table that bytes hold; their first ones tell the format."""
    source = pa.BufferReader(held)
    if held.startswith(b"ARROW1"):
        return pa.ipc.open_file(source).read_all()
    if held.startswith(_CONTINUATION):
        return pa.ipc.open_stream(source).read_all()
    return pa.parquet.read_table(source) if held.startswith(b"PAR1") else pa.csv.read_csv(source)


def check_target(name: str, suffixes: tuple[str, ...]) -> str:
    """Return the file's name if its suffix is one of `suffixes`, else end the command with an error."""
    if Path(name).suffix.lower() not in suffixes:
        fail(f"cannot tell the format of {name} from its suffix; expected one of {', '.join(suffixes)}", USAGE_FAULT)
    return name


def table_writer(name: str) -> Callable[[pa.Table], None]:
    """Return a function that writes a table to the file `name`, in the format of its suffix.

    For ``-`` it writes an Arrow stream to stdout.
    """
    if name == PIPE:
        return lambda table: _write_stream(table, sys.stdout.buffer)
    write = WRITERS[Path(check_target(name, tuple(WRITERS))).suffix.lower()]

    def write_file(table: pa.Table) -> None:
        with Path(name).open("wb") as target:
            write(table, target)

    return write_file


def print_json_lines(table: pa.Table, target: TextIO) -> None:
    """Write each row of the table as a JSON object on its own line."""
    for lines in json_lines(table):
        target.write(lines.decode())


def _write_file(table: pa.Table, target: BinaryIO) -> None:
    with pa.ipc.new_file(target, table.schema) as writer:
        writer.write_table(table)


def _write_stream(table: pa.Table, target: BinaryIO) -> None:
    with pa.ipc.new_stream(target, table.schema) as writer:
        writer.write_table(table)
    target.flush()


def _write_json(table: pa.Table, target: BinaryIO) -> None:
    target.writelines(json_lines(table))


WRITERS: dict[str, Writer] = {
    ".parquet": pa.parquet.write_table,
    ".pq": pa.parquet.write_table,
    ".csv": pa.csv.write_csv,
    ".arrow": _write_file,
    ".feather": _write_file,
    ".arrows": _write_stream,
    ".jsonl": _write_json,
}
