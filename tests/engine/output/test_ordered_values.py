"""Values that results read in the order of events: those of the input's rows, whatever the type, NULLs and the order."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine import run
from gpu_cep.engine.events.placed_matches import OrderedMatches
from gpu_cep.engine.output.ordered_values import ordered_values

_SIZE = 150
_RANDOM = np.random.default_rng(11)
_NUMBERS = _RANDOM.integers(-9, 9, _SIZE)
_FLOATS = np.where(_NUMBERS == 3, -0.0, np.where(_NUMBERS == 4, math.nan, _NUMBERS / 2))
_TIMES = np.sort(_RANDOM.integers(-500, 500, _SIZE))
_COLUMNS = {
    "int64": pa.array(_NUMBERS),
    "int32": pa.array(_NUMBERS, pa.int32()),
    "uint64": pa.array(_NUMBERS + 9, pa.uint64()),
    "float64": pa.array(_FLOATS),
    "float32": pa.array(_FLOATS, pa.float32()),
    "NULLs": pa.array(_NUMBERS, mask=_NUMBERS == 0),
    "float NULLs": pa.array(_FLOATS, mask=_NUMBERS == 0),
}
_CLOCKS = {
    "int64": pa.array(_TIMES),
    "int32": pa.array(_TIMES, pa.int32()),
    "float64": pa.array(_TIMES / 4),
    "timestamp": pa.array(_TIMES, pa.timestamp("us", "UTC")),
    "date": pa.array(_TIMES.astype(np.int32), pa.date32()),
}
_QUERIES = {
    "chain": "PATTERN SEQ(A a, B b+, C c) WHERE skip_till_next_match { [k] AND b[i].x >= a.x } WITHIN 40 events "
    "RETURN a.ts AS since, b[1].x AS low, last(b.x) AS high, last(b.ts) AS late, count(b) AS many, avg(b.x) AS mean, c.x AS x, c.y AS y",
    "singles": "PATTERN SEQ(A a, C c) WHERE skip_till_any_match { c.x > a.x } WITHIN 9 events RETURN a.x AS x, c.ts AS until, c.y AS y",
    "one of two": "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE skip_till_next_match { [k] AND b.x > a.x AND d.x < c.x } "
    "WITHIN 40 events RETURN a.x AS a, b.ts AS b, c.x AS c, d.ts AS d",
    "neighbours": "PATTERN SEQ(a, b+, c+) WHERE partition_contiguity { [k] AND b[i].x >= a.x AND c[1].x < a.x AND c[i].x < a.x } "
    "RETURN a.ts AS since, last(b.x) AS high, b[1].x AS first, last(c.ts) AS until, b.x AS steps, c AS others",
    "absent": "PATTERN SEQ(A a, B b*, C c?) WHERE skip_till_next_match { [k] AND b[i].x >= a.x } WITHIN 20 events "
    "RETURN a.x AS x, last(b.x) AS high, b.x AS lows, b.ts AS times, c.ts AS until, sum(b.x) AS sum, "
    "min(b.x) AS low, max(b.ts) AS late, median(b.x) AS middle, count(b.x) AS known, count(DISTINCT b.x) AS others",
}


def _events(clock, column):
    random = np.random.default_rng(12)
    kinds = pa.array(random.choice(list("ABCD"), _SIZE)).dictionary_encode()
    return pa.table({"ts": clock, "type": kinds, "k": random.integers(0, 3, _SIZE), "x": column, "y": pa.array(_NUMBERS)})


def _check(events, query, **options):
    answer = cep.match(events, query, threads=2, **options)
    other = cep.match(events, query, algorithm="brute_force", **options)
    assert answer.num_rows
    assert answer.schema == other.schema
    # as text, which tells -0.0 from 0.0, and not NaN from NaN
    assert repr(answer.to_pylist()) == repr(other.to_pylist())


@pytest.mark.parametrize("query", _QUERIES.values(), ids=_QUERIES)
@pytest.mark.parametrize("column", _COLUMNS.values(), ids=_COLUMNS)
def test_values_of_a_column_that_conditions_read(column, query):
    _check(_events(_CLOCKS["int64"], column), query)


@pytest.mark.parametrize("query", _QUERIES.values(), ids=_QUERIES)
@pytest.mark.parametrize("clock", _CLOCKS.values(), ids=_CLOCKS)
def test_times(clock, query):
    _check(_events(clock, _COLUMNS["float64"]), query)


@pytest.mark.parametrize("after_match", ["skip_past_last", "skip_to_next"])
def test_values_of_some_matches_by_key(after_match):
    query = _QUERIES["neighbours"].replace("[k] AND ", "")
    _check(_events(_CLOCKS["timestamp"], _COLUMNS["int64"]), query, partition_by="k", after_match=after_match)


@pytest.mark.parametrize("query", _QUERIES.values(), ids=_QUERIES)
def test_whole_events(query):
    _check(_events(_CLOCKS["timestamp"], _COLUMNS["float64"]), query.partition(" RETURN")[0])


def test_columns_that_are_at_hand():
    held = []

    def watched(plan, columns, ordered):
        held.append(ordered_values(plan, columns, ordered))
        return held[-1]

    with patch.object(run, "ordered_values", watched):
        for column in _COLUMNS.values():
            cep.match(_events(_CLOCKS["int64"], column), _QUERIES["singles"])
    assert [sorted(each) for each in held] == [[0, 3], [0], [0], [0, 3], [0], [0], [0]]


@pytest.mark.usual
@pytest.mark.parametrize(("query", "columns"), [(_QUERIES["one of two"], 2), (_QUERIES["one of two"].partition(" RETURN")[0], 3)])
def test_a_column_is_looked_up_once_for_all_variables(query, columns):
    with patch.object(OrderedMatches, "rows_of_ends", autospec=True, side_effect=OrderedMatches.rows_of_ends) as looked_up:
        cep.match(_events(_CLOCKS["int64"], _COLUMNS["float64"]), query)
    # and once for rows, which say what is absent
    assert looked_up.call_count == columns + 1
