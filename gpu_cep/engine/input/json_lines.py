"""Read lines of JSON: numbers and truth values as they are, and texts that are times as a CSV file gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import product

import pyarrow as pa

from gpu_cep.engine.input.large_integers import FLOAT, LARGE, Written, keep_integers

_AS_TEXT = "write the numbers of {name!r} in quotes, as text"
# The types that Arrow tries for the texts of a CSV file. The first that takes all texts of a column is theirs.
_TIMES = (pa.date32(), *(pa.timestamp(unit, zone) for unit, zone in product(("s", "ns"), (None, "UTC"))))


def read_json(held: pa.Buffer, name: str, text: Sequence[str] = ()) -> pa.Table:
    """Return the table that lines of JSON hold, which errors call `name`.

    A column of texts that are all dates or times in ISO 8601 becomes one of dates or timestamps.
    Texts with an offset become UTC; beside texts without one they stay text. Inside of objects and
    lists, every text stays text.

    Parameters
    ----------
    text
        Columns whose texts stay text whatever they look like.

    Raises
    ------
    EventError
        Whole numbers of a column are too large.
    pyarrow.ArrowInvalid
        It is no JSON.
    """
    table = _read_plain(held)
    table = keep_integers(table, held, name, lambda each: _unsigned(held, each), lambda each: _first_large(held, each), _AS_TEXT)
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and field.name not in text:
            table = table.set_column(place, field.name, _type_texts(table.column(place)))
    return table


def _read_plain(held: pa.Buffer) -> pa.Table:
    """Return the table with all its texts as text."""
    from pyarrow.json import ParseOptions, read_json

    table = read_json(pa.BufferReader(held))
    plain = pa.schema([field.with_type(_without_times(field.type)) for field in table.schema])
    if plain == table.schema:
        return table
    # Arrow has taken texts for times, and lost their offsets
    return read_json(pa.BufferReader(held), parse_options=ParseOptions(explicit_schema=plain))


def _unsigned(held: pa.Buffer, column: str) -> pa.ChunkedArray:
    """Return a column as uint64."""
    from pyarrow.json import ParseOptions, read_json

    schema = pa.schema([(column, pa.uint64())])
    options = ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return read_json(pa.BufferReader(held), parse_options=options).column(column)


def _first_large(held: pa.Buffer, column: str) -> Written | None:
    """Return the first number of a column that is written with 19 digits or more; None if one is written as floats are."""
    lines = held.to_pybytes()
    if next(_numbers(lines, column, FLOAT, str), None) is not None:
        return None
    return next(_numbers(lines, column, rf"{LARGE}(?![0-9.eE])", int), None)


def _numbers(lines: bytes, column: str, pattern: str, kind: type) -> Iterator[Written]:
    """Yield the numbers of a column that fit a pattern; floats are looked for as `str`, whole numbers as `int`."""
    names = "|".join(re.escape(json.dumps(column, ensure_ascii=ascii_only)) for ascii_only in (True, False))
    for found in re.finditer(rf"(?:{names})\s*:\s*({pattern})".encode(), lines):
        begin, end = lines.rfind(b"\n", 0, found.start()) + 1, lines.find(b"\n", found.end())
        # the name may be that of a value inside of another, or stand in a text
        values = json.loads(lines[begin : None if end < 0 else end], parse_float=str, strict=False)
        if isinstance(values.get(column), kind):
            yield Written(found[1].decode(), found.start(1))


def _without_times(arrow: pa.DataType) -> pa.DataType:
    """Return a type with text in place of timestamps, also inside of objects and lists."""
    if pa.types.is_timestamp(arrow):
        return pa.string()
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(_without_times(field.type)) for field in arrow])
    return pa.list_(_without_times(arrow.value_type)) if pa.types.is_list(arrow) else arrow


def _type_texts(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as dates or timestamps if one type takes all of them, else as they are."""
    for arrow in _TIMES:
        try:
            return texts.cast(arrow)
        except pa.ArrowInvalid:
            continue
    return texts
