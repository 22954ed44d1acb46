"""Turn Arrow values into text, column by column: exact JSON, and texts for people.

In JSON, times and decimals are text. Durations are integers, ticks of their
unit. Maps are lists of pairs. Bytes are text of hexadecimal digits. Floats
that are not finite are the texts NaN, Infinity and -Infinity. Bytes of text that are no
UTF-8 are the character �.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.readable import check_zones, is_text_or_view, readable_texts
from gpu_cep.errors import UnsupportedError

_ROWS_AT_ONCE = 10_000

# JavaScript's numbers hold every integer below this one exactly.
_SCRIPTS_WHOLE = 2.0**53

_TEXT = pa.large_string()
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_ESCAPES |= {chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in _ESCAPES}
_NOT_FINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
_HEXADECIMAL = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)


def json_lines(table: pa.Table) -> Iterator[bytes]:
    """Yield the rows as JSON objects, one on each line, in blocks of thousands of lines.

    Raises
    ------
    UnsupportedError
        A column has a type that cannot be written as JSON.
    EventError
        A column has times of an unknown zone.
    """
    check_zones(table.schema)
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield _bytes(concatenate(_object(batch.schema.names, batch.columns), "\n"))


def check_json(schema: pa.Schema) -> None:
    """Check that columns of these types can be written as JSON; raises as :func:`json_lines`."""
    check_zones(schema)
    for column in no_rows(schema).columns:
        _json(column.combine_chunks())


def json_rows(table: pa.Table) -> str:
    """Return the rows as a JSON array of arrays, for JavaScript; raises as :func:`json_lines`.

    Nested values, and integers that JavaScript cannot hold exactly, are text.
    """
    check_zones(table.schema)
    batches = (concatenate(_array(map(_script_value, batch.columns)), ",\n") for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE))
    rows = b"".join(map(_bytes, batches)).decode()
    return "[" + rows.removesuffix(",\n") + "]"


def tab_lines(table: pa.Table) -> Iterator[bytes]:
    """Yield a line of the names, and then one of each row's :func:`texts`, with tabs between them.

    NULL is empty text. Raises as :func:`json_lines`.
    """
    check_zones(table.schema)
    yield _bytes(concatenate(_join(_escape(pa.array([name], _TEXT)) for name in table.column_names), "\n"))
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield _bytes(concatenate(_join(pc.fill_null(texts(column), "") for column in batch.columns), "\n"))


def texts(values: pa.Array) -> pa.Array:
    """Return each value as a line of text, NULL as NULL; raises as :func:`json_lines`.

    Characters that end a line, or that a terminal would obey, are written as in JSON. Times have no
    fraction of a second that is 0 in all of them. Lengths of time are told in days, hours, minutes and seconds.
    """
    stored = coarsen(_storage(values))
    if pa.types.is_duration(stored.type):
        return _lengths(stored)
    if is_text_or_view(stored.type):
        return _escape(stored.cast(_TEXT))
    return pc.utf8_trim(_json(stored), '"')


def _lengths(durations: pa.Array) -> pa.Array:
    """Return lengths of time as days, if there are any, with hours, minutes and seconds: ``-2 days 10:00:00``."""
    ticks = durations.cast(pa.int64())
    per_day = 86_400 * _PER_SECOND[durations.type.unit]
    # division rounds towards 0, for the smallest number has no absolute value
    days = pc.divide(ticks, per_day)
    rest = pc.abs(pc.subtract(ticks, pc.multiply(days, per_day)))
    # the time of that moment of 1970-01-01, behind the date
    clock = pc.utf8_slice_codeunits(texts(rest.cast(pa.timestamp(durations.type.unit))), len("1970-01-01 "))
    whole = pc.abs(days)
    words = (pa.scalar(word, _TEXT) for word in ("", " day ", " days "))
    unit = pc.choose(pc.min_element_wise(whole, 2), *words)
    told = concatenate(pc.if_else(pc.equal(whole, 0), pa.scalar("", _TEXT), whole.cast(_TEXT)), unit, clock)
    return concatenate(pc.if_else(pc.less(ticks, 0), pa.scalar("-", _TEXT), pa.scalar("", _TEXT)), told)


def coarsen(values: pa.Array) -> pa.Array:
    """Return times, or lists of times, in the coarsest unit that holds all of them exactly; other values as they are."""
    for kind in _coarser(values.type):
        try:
            return values.cast(kind)
        except pa.ArrowInvalid:
            continue
    return values


def _coarser(kind: pa.DataType) -> tuple[pa.DataType, ...]:
    """Return the types that may replace `kind`, the coarsest first; none if it is no type of times."""
    if pa.types.is_list(kind):
        return tuple(map(pa.list_, _coarser(kind.value_type)))
    if pa.types.is_timestamp(kind):
        return tuple(pa.timestamp(unit, kind.tz) for unit in ("s", "ms", "us"))
    return (pa.time32("s"), pa.time32("ms"), pa.time64("us")) if pa.types.is_time(kind) else ()


def _json(values: pa.Array) -> pa.Array:
    """Return the values as JSON text; NULL stays NULL."""
    stored = _storage(values)
    for fits, written in _FORMS:
        if fits(stored.type):
            return written(stored)
    raise UnsupportedError(f"a value of type {stored.type} cannot be written as JSON")


def _storage(values: pa.Array) -> pa.Array:
    """Return the plain values of a dictionary-encoded, run-end-encoded or extension array, and readable texts."""
    match values:
        case pa.DictionaryArray():
            return _storage(values.dictionary_decode())
        case pa.RunEndEncodedArray():
            return _storage(pc.run_end_decode(values))
        case pa.ExtensionArray():
            return _storage(values.storage)
        case pa.StringArray() | pa.LargeStringArray() | pa.StringViewArray():
            return readable_texts(values)
    return values


def _text(values: pa.Array) -> pa.Array:
    return _quote(values.cast(_TEXT))


def _hexadecimal(values: pa.Array) -> pa.Array:
    offsets, held = _content(values.cast(pa.large_binary()))
    digits = pa.py_buffer(_HEXADECIMAL[np.frombuffer(held, np.uint8)])
    return concatenate('"', _strings(2 * offsets, digits, values.is_valid()), '"')


def _whole(values: pa.Array) -> pa.Array:
    return values.cast(pa.int64() if pa.types.is_duration(values.type) else values.type).cast(_TEXT)


def _floating(values: pa.Array) -> pa.Array:
    """Return each float in the fewest digits that read back the same, with a point or an exponent."""
    text = values.cast(pa.float64()).cast(_TEXT)
    written = pc.if_else(pc.match_substring_regex(text, "[.e]"), text, concatenate(text, ".0"))
    if pc.all(pc.is_finite(values)).as_py() is False:
        for name, told in _NOT_FINITE.items():
            written = pc.if_else(pc.equal(text, name), told, written)
    return written


def _struct(values: pa.StructArray) -> pa.Array:
    names = [field.name for field in values.type]
    written = _object(names, values.flatten()) if names else pa.scalar("{}", _TEXT)
    return pc.if_else(values.is_valid(), written, pa.scalar(None, _TEXT))


def _list(values: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return _lists(_value(values.flatten()), np.append(0, np.cumsum(lengths, dtype=np.int64)), values.is_valid())


def _map(values: pa.MapArray) -> pa.Array:
    places = values.offsets.to_numpy().astype(np.int64)
    begin, end = places[0], places[-1]
    pairs = _array(_value(half.slice(begin, end - begin)) for half in (values.keys, values.items))
    return _lists(pairs, places - begin, values.is_valid())


def _lists(items: pa.Array, places: npt.NDArray[np.int64], valid: pa.Array) -> pa.Array:
    """Return lists as text: list n holds the items from ``places[n]`` to before ``places[n + 1]``.

    A comma follows each item except the last of its list.
    """
    last = np.zeros(len(items), np.bool_)
    last[places[1:][np.diff(places) > 0] - 1] = True
    starts, held = _content(concatenate(items, pc.if_else(last, pa.scalar("", _TEXT), pa.scalar(", ", _TEXT))))
    return concatenate("[", _strings(starts[places], held, valid), "]")


def _value(values: pa.Array) -> pa.Array:
    return pc.fill_null(_json(values), "null")


def _script_value(values: pa.Array) -> pa.Array:
    """Return the values as :func:`_value` does, but as text where JavaScript has no exact value for them."""
    stored = _storage(values)
    if pa.types.is_nested(stored.type):
        return pc.fill_null(_quote(_json(stored)), "null")
    if pa.types.is_integer(stored.type) or pa.types.is_duration(stored.type):
        written, numbers = _whole(stored), stored.cast(pa.int64() if pa.types.is_duration(stored.type) else stored.type)
        beyond = pc.greater_equal(pc.abs(numbers.cast(pa.float64(), safe=False)), _SCRIPTS_WHOLE)
        return pc.fill_null(pc.if_else(beyond, concatenate('"', written, '"'), written), "null")
    return _value(stored)


def _object(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    keys = [json.dumps(name, ensure_ascii=False) + ": " for name in names]
    members = [part for key, column in zip(keys, columns, strict=True) for part in (", ", key, _value(column))]
    return concatenate("{", *members[1:], "}")


def _array(columns: Iterable[pa.Array]) -> pa.Array:
    members = [part for column in columns for part in (", ", column)]
    return concatenate("[", *members[1:], "]")


def _quote(text: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return concatenate('"', _escape(escaped), '"')


def _escape(text: pa.Array) -> pa.Array:
    """Return the text with control characters as JSON writes them."""
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        for character, written in _ESCAPES.items():
            text = pc.replace_substring(text, character, written)
    return text


def _join(columns: Iterable[pa.Array]) -> pa.Array:
    """Return one text per row: those of its columns with tabs between them."""
    return pc.binary_join_element_wise(*columns, pa.scalar("\t", _TEXT))


def concatenate(*parts: pa.Array | str) -> pa.Array:
    """Return one text per row, the concatenation of the row's parts; NULL if a part is NULL."""
    scalars = (pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts)
    return pc.binary_join_element_wise(*scalars, pa.scalar("", _TEXT))


def _bytes(text: pa.Array) -> bytes:
    """Return the bytes of all rows, concatenated."""
    return bytes(_content(text)[1])


def _content(values: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Buffer]:
    """Return the offsets (rows + 1 of them, from 0) and the bytes of large strings or binaries."""
    if len(values) == 0:
        return np.zeros(1, np.int64), pa.py_buffer(b"")
    _, offsets, held = values.buffers()
    places = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return places - places[0], (held or pa.py_buffer(b"")).slice(places[0], places[-1] - places[0])


def _strings(offsets: npt.NDArray[np.int64], held: pa.Buffer, valid: pa.Array) -> pa.Array:
    """Return the text between each two offsets of the bytes `held`, NULL where not valid."""
    text = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(np.ascontiguousarray(offsets)), held)
    return pc.if_else(valid, text, pa.scalar(None, _TEXT))


# The first form that fits a type is taken: durations come before the temporal types, which include them.
_FORMS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (pa.types.is_null, lambda values: pa.nulls(len(values), _TEXT)),
    (pa.types.is_boolean, lambda values: values.cast(_TEXT)),
    (pa.types.is_integer, _whole),
    (pa.types.is_duration, _whole),
    (pa.types.is_floating, _floating),
    (pa.types.is_temporal, _text),
    (pa.types.is_decimal, _text),
    (pa.types.is_string, _text),
    (pa.types.is_large_string, _text),
    (pa.types.is_string_view, _text),
    (pa.types.is_binary, _hexadecimal),
    (pa.types.is_large_binary, _hexadecimal),
    (pa.types.is_fixed_size_binary, _hexadecimal),
    (pa.types.is_binary_view, _hexadecimal),
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_large_list, _list),
    (pa.types.is_fixed_size_list, _list),
    (pa.types.is_list_view, _list),
    (pa.types.is_large_list_view, _list),
)
