"""Read lines of JSON: numbers and truth values as they are, and texts that are times as a CSV file gives them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pyarrow as pa

# The types that Arrow tries for the texts of a CSV file. The first that takes all texts of a column is theirs.
_TIMES = (pa.date32(), *(pa.timestamp(unit, zone) for unit, zone in product(("s", "ns"), (None, "UTC"))))


def read_json(held: pa.Buffer, text: Sequence[str] = ()) -> pa.Table:
    """Return the table that lines of JSON hold.

    A column of texts that are all dates or times in ISO 8601 becomes one of dates or timestamps.
    Texts with an offset become UTC; beside texts without one they stay text. Inside of objects and
    lists, every text stays text.

    Parameters
    ----------
    text
        Columns whose texts stay text whatever they look like.

    Raises
    ------
    pyarrow.ArrowInvalid
        It is no JSON.
    """
    table = _read_plain(held)
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and field.name not in text:
            table = table.set_column(place, field.name, _type_texts(table.column(place)))
    return table


def _read_plain(held: pa.Buffer) -> pa.Table:
    """Return the table with all its texts as text."""
    from pyarrow import json

    table = json.read_json(pa.BufferReader(held))
    plain = pa.schema([field.with_type(_without_times(field.type)) for field in table.schema])
    if plain == table.schema:
        return table
    # Arrow has taken texts for times, and lost their offsets
    return json.read_json(pa.BufferReader(held), parse_options=json.ParseOptions(explicit_schema=plain))


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
