"""Turn timestamps that are text into times: ISO 8601 by itself, other forms by their format."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.cli.outcome import USAGE_FAULT, fail
from gpu_cep.errors import EventError

_ISO = r"^\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
_ZONE = r"[ T]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"
# The first that holds all times is taken. Texts without a zone fit no type with one, nor the other way round.
_TIMES = tuple(pa.timestamp(unit, zone) for unit, zone in product(("us", "ns"), (None, "UTC")))


def read_times(table: pa.Table, column: str, form: str | None) -> pa.Table:
    """Return the table with the column's texts as timestamps, read as ISO 8601 or in the format `form`.

    `form` is that of C's ``strptime``. Times with an offset become UTC. A text without characters is NULL.

    Raises
    ------
    EventError
        A text is no time of this form.
    """
    place = table.column_names.index(column)
    held = table.column(place).cast(pa.string()).combine_chunks()
    texts = pa.chunked_array([pc.if_else(pc.equal(pc.utf8_trim_whitespace(held), ""), pa.scalar(None, pa.string()), held)])
    times = _read_iso(texts, column) if form is None else _read_form(texts, column, form)
    return table.set_column(place, column, times)


def refuse_format(column: str, arrow: pa.DataType) -> None:
    """End the command because the column is no text, which the option asks for."""
    fail(f"--timestamp-format is for text, and the timestamp {column!r} is of type {arrow}: leave it out", USAGE_FAULT)


def _read_iso(texts: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    times = _cast(texts)
    if times is None:
        raise EventError(f"timestamp column {column!r}: {_fault(texts)}")
    return times


def _cast(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return texts as timestamps of the first type that takes all of them, or None."""
    for arrow in _TIMES:
        try:
            return texts.cast(arrow)
        except pa.ArrowInvalid:
            continue
    return None


def _fault(texts: pa.ChunkedArray) -> str:
    """Return why no type takes all of the texts."""
    has_zone = pc.match_substring_regex(texts, _ZONE)
    zoned, zoneless = texts.filter(has_zone), texts.filter(pc.invert(has_zone))
    for part in (zoned, zoneless):
        if _cast(part) is None:
            return _odd_text(part)
    return f"{zoned[0].as_py()!r} has a zone and {zoneless[0].as_py()!r} has none; all or none must have a zone"


def _odd_text(texts: pa.ChunkedArray) -> str:
    """Return what is wrong with the first text that fits no type that takes those before it."""
    first, last = 0, len(texts) - 1
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if _cast(texts.slice(0, middle + 1)) is None else (middle + 1, last)
    told = repr(texts[first].as_py())
    if _cast(texts.slice(first, 1)) is not None:
        return f"the times up to {told} are too far apart for nanoseconds, and too fine for microseconds"
    if pc.match_substring_regex(texts[first], _ISO).as_py():
        return f"{told} is no time"
    return f"{told} is no time in ISO 8601; say its format by --timestamp-format, such as '%d.%m.%Y %H:%M'"


def _read_form(texts: pa.ChunkedArray, column: str, form: str) -> pa.ChunkedArray:
    times = pc.strptime(texts, form, "us", error_is_null=True)
    odd = texts.filter(pc.and_(pc.is_null(times), pc.is_valid(texts)))
    if len(odd):
        raise EventError(f"timestamp column {column!r}: {odd[0].as_py()!r} is not of the form {form!r}")
    return times
