"""Read lines of JSON: numbers and truth values as they are, and texts that are times as a CSV file gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pyarrow as pa

from gpu_cep.engine.input.large_integers import FLOAT, keep_integers

# How a record begins, which may stand behind another on its line, and take several lines.
_BEGIN = re.compile(r"[^ \t\r\n]")
# A text, or what Arrow alone takes for a number.
_INFINITY = re.compile(r'("(?:[^"\\]|\\.)*")|\bInf\b', re.DOTALL)
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
        A column has whole numbers of more than 38 digits.
    pyarrow.ArrowInvalid
        It is no JSON.
    """
    table = _read_plain(held)
    table = keep_integers(table, name, lambda *each: _read_column(held, *each), lambda each: _has_float(held, each), _AS_TEXT)
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


def _read_column(held: pa.Buffer, column: str, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column of the outermost objects as values of a type."""
    from pyarrow.json import ParseOptions, read_json

    options = ParseOptions(explicit_schema=pa.schema([(column, kind)]), unexpected_field_behavior="ignore")
    return read_json(pa.BufferReader(held), parse_options=options).column(column)


def _has_float(held: pa.Buffer, column: str) -> bool:
    """Return whether a number of a column of the outermost objects is written as floats are."""
    names = "|".join(re.escape(json.dumps(column, ensure_ascii=ascii_only)) for ascii_only in (True, False))
    written = held.to_pybytes()
    # the name may be that of a value inside of another, stand in a text, or be written with other escapes
    if re.search(rf'(?:{names}|\\.[^"\\]*")\s*:\s*{FLOAT}'.encode(), written) is None:
        return False
    text = _INFINITY.sub(lambda found: found[1] or "Infinity", written.decode("utf-8-sig", "replace"))
    return any(isinstance(record.get(column), str) for record in _records(text))


def _records(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a text, with the numbers that are written as floats as text."""
    decoder, end = json.JSONDecoder(parse_float=str, parse_int=str.encode, strict=False), 0
    while (begin := _BEGIN.search(text, end)) is not None:
        record, end = decoder.raw_decode(text, begin.start())
        yield record


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
