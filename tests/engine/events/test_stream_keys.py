"""Stream keys: every value its own stream, whatever its type; NULL one, NaN one, -0.0 as 0.0."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.events import stream_keys
from gpu_cep.engine.input.text_codes import ascends
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import DEFAULT_SETTINGS
from gpu_cep.queries.plans import make_plan

NAN = math.nan
COLUMNS = {
    "negative": pa.array([-5, 3, None, -5, 3, None, -7]),
    "sparse": pa.array([-(2**63), 2**63 - 1, None, -(2**63), 2**63 - 1, None, 0]),
    "int8": pa.array([-128, 127, None, -128, 127, None, 0], pa.int8()),
    "uint64": pa.array([2**62, 1, None, 2**62, 1, None, 0], pa.uint64()),
    "bool": pa.array([True, False, None, True, False, None, None]),
    "float": pa.array([0.0, NAN, None, -0.0, NAN, None, math.inf]),
    "float32": pa.array([0.0, NAN, None, -0.0, NAN, None, -math.inf], pa.float32()),
    "decimal": pa.array([Decimal("1.10"), Decimal("-2"), None, Decimal("1.1"), Decimal("-2"), None, Decimal(0)], pa.decimal128(10, 2)),
    "date": pa.array([date(1969, 1, 1), date(2024, 1, 1), None] * 2 + [date(1970, 1, 1)]),
    "timestamp": pa.array([datetime(1969, 1, 1), datetime(2024, 1, 1), None] * 2 + [None], pa.timestamp("ns", "Europe/Berlin")),
    "text": pa.array(["", "é", None, "", "é", None, "z"]),
    "dictionary": pa.array(["", "é", None, "", "é", None, "z"]).dictionary_encode(),
}
PATTERN = "PATTERN SEQ(a, b)"


def events(**columns):
    return pa.table({"ts": range(7), **columns})


def rank(value):
    """The order of keys: NULL first, NaN last, text by its bytes."""
    if value is None:
        return (0,)
    return (2,) if value != value else (1, value.encode() if isinstance(value, str) else value)


def streams(*columns):
    """The rows of each stream, by key."""
    values = list(zip(*(column.to_pylist() for column in columns), strict=True))
    keys = [tuple(rank(value) for value in row) for row in values]
    return [[row for row in range(7) if keys[row] == key] for key in sorted(set(keys))]


def paired(stream):
    return [{"a": a, "b": b} for a, b in zip(stream, stream[1:], strict=False)]


@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("name", COLUMNS)
def test_partition_by_one_column(name, ranked, monkeypatch):
    # keys that are not ranked before are so at the end
    monkeypatch.setattr(stream_keys, "_FEW", 1 << 10 if ranked else 0)
    table = events(k=COLUMNS[name])
    found = cep.match(table, PATTERN, partition_by="k", output="indices").to_pylist()
    assert found == [match for stream in streams(COLUMNS[name]) for match in paired(stream)]
    counts = cep.match(table, "PATTERN a", partition_by="k", output="count")
    assert counts["count"].to_pylist() == [len(stream) for stream in streams(COLUMNS[name])]
    assert [rank(key) for key in counts["k"].to_pylist()] == [rank(COLUMNS[name][stream[0]].as_py()) for stream in streams(COLUMNS[name])]
    assert counts.schema.field("k").type == COLUMNS[name].type


@pytest.mark.parametrize("second", ["negative", "sparse", "float", "text"])
@pytest.mark.parametrize("first", ["bool", "sparse", "date", "dictionary"])
def test_partition_by_two_columns(first, second):
    columns = COLUMNS[first], pa.concat_arrays([COLUMNS[second].slice(6), COLUMNS[second].slice(0, 6)])
    found = cep.match(events(j=columns[0], k=columns[1]), "PATTERN a", partition_by=["j", "k"], output="indices")
    assert found["a"].to_pylist() == [row for stream in streams(*columns) for row in stream]


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("name", COLUMNS)
def test_derived_keys_match_neither_null_nor_nan(name, prune):
    table = events(k=COLUMNS[name])
    values = COLUMNS[name].to_pylist()
    wanted = [match for stream in streams(COLUMNS[name]) for match in paired(stream) if values[stream[0]] == values[stream[0]] is not None]
    found = cep.match(table, f"{PATTERN} WHERE a.k = b.k", output="indices", prune=prune).to_pylist()
    assert found == sorted(wanted, key=lambda match: match["a"])


def test_derived_keys_beside_partition_by_keep_the_order_of_streams():
    table = events(j=[2, 1, 2, 1, 2, 1, 2], k=["x", "y", "y", "y", "x", "x", "y"])
    found = cep.match(table, f"{PATTERN} WHERE a.k = b.k", partition_by="j", output="indices").to_pylist()
    assert found == [{"a": 1, "b": 3}, {"a": 0, "b": 4}, {"a": 2, "b": 6}]


def test_more_key_values_than_events_allow_to_count():
    size = 3_000
    table = pa.table({"ts": range(size), "j": [n * 2**40 for n in range(size)], "k": [-n * 2**41 for n in range(size)]})
    counts = cep.match(table, "PATTERN a", partition_by=["j", "k"], output="count")
    assert counts["count"].to_pylist() == [1] * size
    assert counts["j"].to_pylist() == table["j"].to_pylist()


@pytest.mark.parametrize("text", [False, True])
def test_pairs_of_many_values_are_numbered_as_they_occur(text):
    """Of 120,000 pairs that there may be few occur: more than streams are counted for, and fewer than are sorted."""
    random = np.random.default_rng(3)
    first, second = random.integers(0, 300, 5_000), random.integers(0, 400, 5_000)
    keys = [f"{value:04}" for value in second.tolist()] if text else second.tolist()
    table = pa.table({"ts": range(5_000), "j": first, "k": keys})
    counts = cep.match(table, "PATTERN a", partition_by=["j", "k"], output="count").to_pylist()
    assert [(row["j"], row["k"], row["count"]) for row in counts] == [
        (*pair, count) for pair, count in sorted(Counter(zip(first.tolist(), keys, strict=True)).items())
    ]


@pytest.mark.parametrize("condition", ["", " WHERE a.k = b.k"])
def test_streams_of_two_keys_come_in_the_order_of_the_first(condition):
    """Also where derived keys split them."""
    events = pa.table({"ts": range(4), "type": list("ABAB"), "k": [0] * 4, "p": [2, 2, 1, 1], "q": [1, 1, 2, 2]})
    options = {"partition_by": ["p", "q"]}
    matches = cep.match(events, f"PATTERN SEQ(A a, B b){condition}", output="indices", **options)
    assert matches.to_pylist() == [{"a": 2, "b": 3}, {"a": 0, "b": 1}]
    counts = cep.match(events, f"PATTERN SEQ(A a, B b){condition}", output="count", **options)
    assert counts.to_pylist() == [{"p": 1, "q": 2, "count": 1}, {"p": 2, "q": 1, "count": 1}]


DICTIONARIES = {
    "ascending": ["", "a", "b", "é"],
    "descending": ["é", "b", "a", ""],
    "repeating": ["a", "a", "b", "é"],
    "with NULL": ["a", None, "b"],
}


@pytest.mark.parametrize("ranked", [1, stream_keys.RANKED])
@pytest.mark.parametrize("name", DICTIONARIES)
def test_streams_come_in_the_order_of_their_keys_whatever_that_of_the_dictionary(name, ranked, monkeypatch):
    monkeypatch.setattr(stream_keys, "RANKED", ranked)
    codes, values = np.array([2, 0, 1, 2, 0, 1, 0]), DICTIONARIES[name]
    keys = pa.DictionaryArray.from_arrays(pa.array(codes, mask=np.arange(7) == 6), pa.array(values))
    found = cep.match(events(k=keys), PATTERN, partition_by="k", output="indices").to_pylist()
    assert found == [match for stream in streams(keys) for match in paired(stream)]


@given(st.lists(st.integers(0, 3), max_size=6), st.integers(0, 100))
def test_values_ascend_if_each_is_greater_than_the_one_before(steps, before):
    """Also behind the first ones, which tell of most that they do not."""
    numbers = np.concatenate([np.arange(before), before + np.cumsum(steps)]).astype(int)
    values = pa.array([f"{number:04}" for number in numbers], pa.string())
    assert ascends(values) == all(earlier < later for earlier, later in pairwise(numbers))


@pytest.mark.parametrize("names", [*((name,) for name in COLUMNS), ("negative", "int8"), ("int8", "text"), ("date", "sparse")])
def test_codes_said_to_ascend_do_so_with_the_keys(names):
    table = events(**{name: COLUMNS[name] for name in names})
    plan = make_plan(f"{PATTERN} WITHIN 9", table.schema, make_options(timestamp="ts", partition_by=names), DEFAULT_SETTINGS)
    keys = stream_keys.encode_keys(event_columns(plan, table), plan.stream_keys)
    assert keys.ranks is not None
    order = np.argsort(keys.ranks, kind="stable")
    assert (keys.order.size == 0) == keys.ascends
    assert not keys.ascends or order.tolist() == list(range(len(keys.ranks)))
    assert keys.ascends or keys.order.tolist() == order.tolist()
