"""Some events, tables as the bytes of each format, and bytes put into stdin."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

EVENTS = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "v": [1.0, 2.0, 3.0, 4.5]})


def stream_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def file_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(table, sink)
    return sink.getvalue()


def read_ipc(path: Path) -> pa.Table:
    with pa.ipc.open_file(str(path)) as reader:
        return reader.read_all()


def csv_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink)
    return sink.getvalue()


def put_in(monkeypatch: pytest.MonkeyPatch, held: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(held)))


def lines_of(table: pa.Table) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in table.to_pylist())


def semicolons_of(table: pa.Table) -> bytes:
    return csv_of(table).replace(b",", b";")


def unquoted_csv_of(table: pa.Table) -> bytes:
    return csv_of(table).replace(b'"', b"")


def gzip_of(table: pa.Table) -> bytes:
    return gzip.compress(csv_of(table))


def zstd_of(table: pa.Table) -> bytes:
    return pa.compress(stream_of(table), "zstd", asbytes=True)
