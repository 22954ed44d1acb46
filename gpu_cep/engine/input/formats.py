"""Read files of events that are loaded as a whole: CSV, lines of JSON, Arrow files and Arrow streams."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, utf_8_decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from gpu_cep.engine.input.arrow_streams import read_stream
from gpu_cep.engine.input.encodings import inspect_dictionaries, with_plain_texts
from gpu_cep.engine.input.event_files import COMPRESSIONS, EventFile, find_files, name_of_all, reading, shorten_name, split_suffix
from gpu_cep.engine.input.file_systems import locations_of
from gpu_cep.engine.input.json_lines import read_json
from gpu_cep.engine.input.large_integers import FLOAT, keep_integers
from gpu_cep.errors import EventError

PARQUET = (".parquet", ".pq")

_PEEKED = 1 << 20  # bytes of a file in which its header ends
# What may separate the columns of a CSV file; the first one in its header does.
_DELIMITERS = (b",", b";", b"\t", b"|")
# What to do about numbers that are too large.
_AS_TEXT = "read it as text, with pyarrow.csv.read_csv() and its ConvertOptions(column_types={{{name!r}: pyarrow.string()}})"
# What to do about files of other formats, by their suffixes.
_OTHERS = {
    ".json": "lines of JSON are read by the name .jsonl, and an array of JSON by pandas.read_json()",
    ".xlsx": "pandas.read_excel() reads it",
}
_QUOTED = re.compile(rb'"[^"]*"')
# A quoted field from its opening quote to the closing one, or to the end of the file if there is none.
_FIELD = re.compile(rb'(?:\A|[,;\t|\r\n])"(?:[^"]++|"")*+("?)')


def read_files(events: Any, text: Sequence[str] = ()) -> pa.Table:
    """Return the events of the files that locations name, one file behind the other.

    Columns of several files have the type in which those of all files meet. A column that a file
    lacks is NULL there.

    Parameters
    ----------
    events
        A path, a glob, a URI or a UPath, or a list of them.
    text
        Columns of CSV files that are read as text whatever they look like. Texts of such columns in
        lines of JSON stay text.

    Raises
    ------
    EventError
        A file cannot be read, its suffix names no format, or the columns of several do not meet.
    """
    found = [find_files(location) for location in locations_of(events)]
    tables = [_read_file(file, text) for each in found for file in each.files]
    if len(tables) == 1:
        return tables[0]
    with reading(name_of_all(found)):
        schemas = with_plain_texts([table.schema for table in tables])
        alike = [_recoded(table, schema) for table, schema in zip(tables, schemas, strict=True)]
        return pa.concat_tables(alike, promote_options="permissive")


def _recoded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with its texts in the encodings of `schema`."""
    if table.schema.equals(schema):
        return table
    inspect_dictionaries(table)
    return table.cast(schema)


def read_csv(held: pa.Buffer, name: str, text: Sequence[str] = ()) -> pa.Table:
    """Return the table that the bytes of a CSV file hold; its header tells what separates the columns.

    Raises
    ------
    EventError
        It is not UTF-8, or a quote is not closed: all lines behind it would become one value. Or a column has whole
        numbers of more than 38 digits.
    pyarrow.ArrowInvalid
        It is no CSV.
    """
    from pyarrow import csv

    _check_encoding(held, name)
    _check_quotes(held, name)
    parsing = csv.ParseOptions(delimiter=_delimiter(held.slice(0, min(_PEEKED, held.size)).to_pybytes()))

    def read(types: Mapping[str, pa.DataType], only: Sequence[str] = ()) -> pa.Table:
        converting = csv.ConvertOptions(column_types=types, include_columns=only)
        return csv.read_csv(pa.BufferReader(held), parse_options=parsing, convert_options=converting)

    def column(name: str, kind: pa.DataType) -> pa.ChunkedArray:
        return read({name: kind}, [name]).column(0)

    def has_float(name: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(column(name, pa.string()), f"^ *{FLOAT}")).as_py())

    return keep_integers(read(dict.fromkeys(text, pa.string())), name, column, has_float, _AS_TEXT)


def _check_encoding(held: pa.Buffer, name: str) -> None:
    if not held.size or _is_utf_8(held):
        return
    content = memoryview(held)
    line = bytes(content[: _first_odd_byte(content)]).count(b"\n") + 1
    own = "UTF-16" if bytes(content[:2]) in (BOM_UTF16_LE, BOM_UTF16_BE) else "WINDOWS-1252"
    told = f"line {line:,} is not UTF-8; convert the file, as by iconv -f {own} -t UTF-8"
    raise EventError(f"events: cannot read {shorten_name(name)}: {told}")


def _is_utf_8(held: pa.Buffer) -> bool:
    # as one text, whose bytes Arrow checks without a copy; its reader of CSV takes columns of other bytes as binary
    whole = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(np.array([0, held.size])), held])
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _first_odd_byte(content: memoryview) -> int:
    try:
        utf_8_decode(content, "strict", True)
    except UnicodeDecodeError as fault:
        return fault.start
    raise AssertionError("Arrow found a byte that is not UTF-8")


def _check_quotes(held: pa.Buffer, name: str) -> None:
    # quick for most files: closed quotes are even in number
    if np.count_nonzero(np.frombuffer(held, np.uint8) == ord('"')) % 2 == 0:
        return
    content = memoryview(held)
    opening = next((field.start() for field in _FIELD.finditer(content) if not field[1]), None)
    if opening is not None:
        line = bytes(content[: opening + 1]).count(b"\n") + 1
        told = f"the quote in line {line:,} is not closed; a quote inside quotes is written twice"
        raise EventError(f"events: cannot read {shorten_name(name)}: {told}")


def _read_file(file: EventFile, text: Sequence[str]) -> pa.Table:
    suffix = split_suffix(file.path)[0]
    reader = READERS.get(suffix)
    if reader is None:
        with reading(file.name):
            if file.system.get_file_info(file.path).type == fs.FileType.NotFound:
                raise FileNotFoundError
        suffixes = f"{', '.join((*PARQUET, *READERS))}, all but Parquet also with {' or '.join(COMPRESSIONS)} behind it"
        expected = f"expected one of {suffixes}{f'; {_OTHERS[suffix]}' if suffix in _OTHERS else ''}"
        raise EventError(f"events: cannot read {shorten_name(file.name)}: it has no known suffix; {expected}")
    with reading(file.name):
        return reader(file, text)


def _delimiter(begin: bytes) -> str:
    """Return what separates the columns in the first line of `begin`, outside of quotes."""
    header = _QUOTED.sub(b"", begin.partition(b"\n")[0])
    return next((each for each in _DELIMITERS if each in header), _DELIMITERS[0]).decode()


def _read_csv(file: EventFile, text: Sequence[str]) -> pa.Table:
    return read_csv(file.buffer(), file.name, text)


def _read_json(file: EventFile, text: Sequence[str]) -> pa.Table:
    return read_json(file.buffer(), file.name, text)


def _read_ipc(file: EventFile, text: Sequence[str]) -> pa.Table:
    return pa.ipc.open_file(file.buffer()).read_all()


def _read_ipc_stream(file: EventFile, text: Sequence[str]) -> pa.Table:
    return read_stream(file.buffer(), file.name)


READERS: dict[str, Callable[[EventFile, Sequence[str]], pa.Table]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".arrow": _read_ipc,
    ".feather": _read_ipc,
    ".arrows": _read_ipc_stream,
}
