"""Events of the kinds of questions: prices that walk, runs of one type, levels that last; and the forms in which users hold them.

A table has the columns ts, key (dictionary of text, unless there is one stream), type (dictionary of text) and x; situations
have y, too. Rows come in the order of time with the keys interleaved at random. What lasts, does so in the events of one key.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.workloads.questions import DEFAULT_EVENTS, Workload, generate

KEY, TYPE, VALUE, SECOND = "key", "type", "x", "y"
RUN = 200  # events of a run of one type, on average
LEVEL = 10  # events for which a value stays, on average
SPREAD = 0.25  # of the logarithms of values: one in forty is more than twice another

# How the events of a workload are changed, if they are.
Shape = Callable[[pa.Table, np.random.Generator], pa.Table]


def streams_of(workload: Workload, rows: int) -> int:
    """Return the number of streams with which they are as long as the workload's own."""
    return max(1, workload.streams * rows // DEFAULT_EVENTS)


def make(workload: Workload, shape: Shape | None, rows: int) -> pa.Table:
    """Return the events as one chunk."""
    events = generate(workload, rows, streams_of(workload, rows))
    return events if shape is None else shape(events, np.random.default_rng(workload.seed + 1))


def walks(events: pa.Table, random: np.random.Generator) -> pa.Table:
    """Let the values of each key be a random walk, in hundredths."""
    return _with(events, VALUE, np.round(np.cumsum(random.normal(size=len(events))), 2))


def runs_of_types(events: pa.Table, random: np.random.Generator) -> pa.Table:
    """Let each key have an A, many B, a C, a Q, and so on."""
    rounds = len(events) // RUN + 1
    lengths = np.ones((rounds, 4), np.int64)
    lengths[:, 1] = random.integers(1, 2 * RUN, rounds)
    codes = np.resize(np.repeat(np.tile(np.arange(4, dtype=np.int32), rounds), lengths.reshape(-1)), len(events))
    ordered = np.empty_like(codes)
    ordered[_by_key(events)] = codes
    return _replaced(events, TYPE, pa.DictionaryArray.from_arrays(pa.array(ordered), pa.array(["A", "B", "C", "Q"])))


def levels(events: pa.Table, random: np.random.Generator) -> pa.Table:
    """Let two values of each key stay for some events each, between 0 and 100."""
    for name in (VALUE, SECOND):
        blocks = 2 * len(events) // LEVEL + 100
        values = np.repeat(random.random(blocks) * 100.0, random.geometric(1 / LEVEL, blocks))
        events = _with(events, name, values[: len(events)])
    return events


def even_values(events: pa.Table, random: np.random.Generator) -> pa.Table:
    """Let few values be more than twice another."""
    return _replaced(events, VALUE, pa.array(np.exp(SPREAD * random.normal(size=len(events)))))


def through_parquet(events: pa.Table, group: int | None = None) -> pa.Table:
    """Return the events in the chunks in which Parquet gives them, with a dictionary for each; `group` rows stand in a row group."""
    sink = pa.BufferOutputStream()
    pq.write_table(events, sink, row_group_size=group)
    return pq.read_table(pa.BufferReader(sink.getvalue()))


def with_own_texts(events: pa.Table) -> pa.Table:
    """Return the events with dictionaries that hold their own texts alone."""
    for name, column in zip(events.column_names, events.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            events = _replaced(events, name, pc.dictionary_encode(column.cast(column.type.value_type).combine_chunks()))
    return events


def in_chunks(events: pa.Table, rows: int = 10_000) -> pa.Table:
    """Return the events in chunks of so many rows, each with dictionaries of its own texts, as batches of other programs come."""
    return pa.concat_tables(with_own_texts(events.slice(begin, rows)) for begin in range(0, len(events), rows))


def plain_types(events: pa.Table) -> pa.Table:
    """Return the events with types as text without a dictionary."""
    return _replaced(events, TYPE, events[TYPE].combine_chunks().cast(pa.string()))


def integer_keys(events: pa.Table) -> pa.Table:
    """Return the events with numbers for keys instead of text."""
    return _replaced(events, KEY, events[KEY].chunk(0).indices)


def _with(events: pa.Table, name: str, values: np.ndarray) -> pa.Table:
    """Return the events with this column, of which `values` are those of the first key, then those of the second, and so on."""
    column = np.empty(len(events))
    column[_by_key(events)] = values
    return _replaced(events, name, pa.array(column))


def _replaced(events: pa.Table, name: str, column: pa.Array) -> pa.Table:
    if name not in events.column_names:
        return events.append_column(name, column)
    return events.set_column(events.column_names.index(name), name, column)


def _by_key(events: pa.Table) -> np.ndarray:
    return np.argsort(events[KEY].chunk(0).indices.to_numpy(), kind="stable")
