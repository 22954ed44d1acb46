"""Write whole events as short texts: when the first and the last were, and what their attributes are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.display.cells import concatenate, texts

_TEXT = pa.large_string()


def event_texts(values: pa.Array, timestamp: str, attributes: tuple[str, ...], starts: pa.Array | None) -> pa.Array:
    """Return a text for each event, or for each list of events; NULL where there is none.

    Several events are told by their number, and by the first and the last of them.

    Parameters
    ----------
    values
        Structs, or lists of structs.
    timestamp, attributes
        The fields to tell; those that the structs lack are left out.
    starts
        A time for each text. A time of the same day is told without its date (None: with it).
    """
    first, last, counts = _ends(values)
    several, fields = pc.greater(counts, 1), [field.name for field in first.type]
    number = concatenate(counts.cast(_TEXT), pc.if_else(several, *(pa.scalar(word, _TEXT) for word in (" events", " event"))))
    if timestamp in fields:
        times = _times(_field(first, timestamp), _field(last, timestamp), starts)
        number = pc.if_else(several, concatenate(number, " ", times), times)
    told = {name: _values(_field(first, name), _field(last, name)) for name in attributes if name in fields}
    named = [part for name, text in told.items() for part in (f" {name}=", text)]
    return pc.if_else(first.is_valid(), concatenate(number, *named), pa.scalar(None, _TEXT))


def _ends(values: pa.Array) -> tuple[pa.StructArray, pa.StructArray, pa.Array]:
    """Return the first and the last event of each value, NULL where there is none, and the number of its events."""
    if pa.types.is_struct(values.type):
        return values, values, values.is_valid().cast(pa.int64())
    counts = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    lengths = counts.to_numpy()
    ends, events = np.cumsum(lengths), values.flatten()
    first, last = (events.take(pa.array(places, mask=lengths == 0)) for places in (ends - lengths, ends - 1))
    return first, last, counts


def _field(events: pa.StructArray, name: str) -> pa.Array:
    return pc.struct_field(events, [events.type.get_field_index(name)])


def _values(first: pa.Array, last: pa.Array) -> pa.Array:
    """Return the values of an attribute at the first and the last events."""
    begin, end = (pc.fill_null(texts(values), "NULL") for values in (first, last))
    return _span(begin, end, pc.not_equal(begin, end))


def _times(first: pa.Array, last: pa.Array, starts: pa.Array | None) -> pa.Array:
    """Return the times of the first and the last events; a day that was told before is not told again."""
    # at once, so that all have the same digits
    both = texts(pa.concat_arrays([first, last]))
    begin, end = both.slice(0, len(first)), both.slice(len(first))
    return _span(begin if starts is None else _shorten(begin, texts(starts)), _shorten(end, begin), pc.not_equal(begin, end))


def _shorten(times: pa.Array, told: pa.Array) -> pa.Array:
    """Return the texts of times without the date where the times `told` have the same."""
    same = pc.equal(*(pc.replace_substring_regex(each, " .*", "") for each in (times, told)))
    return pc.if_else(pc.fill_null(same, False), pc.replace_substring_regex(times, "^[^ ]+ ", ""), times)


def _span(first: pa.Array, last: pa.Array, differ: pa.Array) -> pa.Array:
    """Return the first text, and behind it the last one where they stand for different values."""
    return pc.if_else(differ, concatenate(first, " … ", last), first)
