"""Pearson's correlation of fixed-size lists (the predicate of 004, section 8)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep

Lists = list[list[float | None] | None]


def events(lists: Lists, other: Lists | None = None, values: pa.DataType = pa.float64()) -> pa.Table:  # noqa: B008
    width = max(len(each) for each in lists if each is not None)
    types = pa.list_(values, width)
    return pa.table(
        {
            "ts": range(len(lists)),
            "type": ["AB"[number % 2] for number in range(len(lists))],
            "h": pa.array(lists, types),
            "g": pa.array(other or lists[::-1], types),
        }
    )


def pairs(table: pa.Table, **options: Any) -> list[float | None]:
    """The correlations of all pairs of an A and a later B."""
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match {TRUE} RETURN corr(a.h, b.h) AS c"
    return list(cep.match(table, query, **options)["c"].to_pylist())


def test_it_is_pearsons() -> None:
    rng = np.random.default_rng(3)
    lists = rng.normal(size=(8, 20)).tolist()
    expected = [np.corrcoef(lists[a], lists[b])[0, 1] for a in range(0, 8, 2) for b in range(1, 8, 2) if a < b]
    assert pairs(events(lists)) == pytest.approx(expected, rel=1e-12)


def test_lists_of_one_direction_correlate() -> None:
    table = events([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    assert pairs(table) == [1.0, -1.0, -1.0]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (None, None),
        ([1.0, None, 3.0], None),
        ([0.1, 0.1, 0.1], None),
        ([1.0, math.nan, 3.0], math.nan),
        ([1.0, math.inf, 3.0], math.nan),
        ([5e-324, 0.0, 0.0], None),
    ],
)
def test_what_has_no_correlation(other: list[float | None] | None, expected: float | None) -> None:
    for lists in ([[1.0, 2.0, 4.0], other], [other, [1.0, 2.0, 4.0]]):
        assert pairs(events(lists)) == pytest.approx([expected], nan_ok=True)


@pytest.mark.parametrize("values", [pa.int8(), pa.int64(), pa.float32(), pa.float16(), pa.uint16()])
def test_numbers_of_all_types(values: pa.DataType) -> None:
    lists: Lists = [[1, 2, 5, 9], [4, 4, 8, 7]]
    assert pairs(events(lists, values=values)) == pairs(events(lists)) != [None]


def test_slices_and_chunks() -> None:
    lists = np.random.default_rng(5).normal(size=(9, 3)).tolist()
    whole = events([None, *lists])
    chunked = pa.concat_tables([whole.slice(1, 4), whole.slice(5)])
    assert chunked["h"].num_chunks == 2
    assert pairs(chunked) == pairs(whole.slice(1).combine_chunks())


CONDITIONS = [
    "corr(a.h, b.h) > 0.1",
    "corr(a.h, a.g) > 0 OR corr(b.h, b.g) > 0",
    "corr(a.h, b.g) > corr(a.g, b.h)",
    "corr(a.h, b.h) IS NULL",
    "corr(a.h, b.h) > 0 AND a.h IS NOT NULL",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_agree_with_the_definition(condition: str) -> None:
    rng = np.random.default_rng(7)
    lists: Lists = rng.integers(0, 3, (14, 3)).astype(float).tolist()
    lists[4], lists[7] = None, [1.0, None, 2.0]
    table = events(lists, rng.normal(size=(14, 3)).tolist())
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match {{ {condition} }} WITHIN 9"
    found = cep.match(table, query, output="indices")
    assert found.num_rows
    assert found.equals(cep.match(table, query, output="indices", algorithm="brute_force"))
    assert found.equals(cep.match(table, query, output="indices", algorithm="lazy_chain"))


def test_events_of_one_binding() -> None:
    table = events(np.random.default_rng(8).normal(size=(10, 4)).tolist())
    query = """PATTERN SEQ(A a, B b+) WHERE skip_till_any_match { corr(b[i].h, b[i-1].h) > 0 AND corr(first(b.h), a.h) > 0 }
        RETURN a.ts AS a, b.ts AS bs, corr(first(b.h), last(b.h)) AS c"""
    rows = cep.match(table, query).to_pylist()
    lists = table["h"].to_pylist()
    for row in rows:
        first, last = row["bs"][0], row["bs"][-1]
        assert row["c"] == pytest.approx(np.corrcoef(lists[first], lists[last])[0, 1], rel=1e-12)
        assert np.corrcoef(lists[first], lists[row["a"]])[0, 1] > 0
    assert any(len(row["bs"]) > 1 for row in rows)


def test_lists_of_two_lengths_side_by_side() -> None:
    table = events([[1.0, 2.0, 4.0], [2.0, 1.0, 5.0]]).append_column("w", pa.array([[1.0, 2.0], [5.0, 3.0]], pa.list_(pa.float64(), 2)))
    query = "PATTERN SEQ(A a, B b) RETURN corr(a.h, b.h) AS h, corr(a.w, b.w) AS w"
    assert cep.match(table, query).to_pylist()[0]["w"] == -1.0
    assert cep.match(table, query)["h"].to_pylist() == pairs(table)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("corr(a.h, b.w) > 0", "corr() takes lists of one length, not of 3 and 2"),
        ("corr(a.h, b.ts) > 0", "b.ts is of type integer, not a fixed-size list of numbers"),
        ("corr(a.h, b.any) > 0", "b.any is of type list<item: double>, not a fixed-size list of numbers"),
        ("corr(a.h, b.words) > 0", "not a fixed-size list of numbers"),
        ("corr(a.h, 1) > 0", "1 is of type integer, not a fixed-size list of numbers"),
        ("corr(a.h) > 0", "corr() takes 2 arguments, not 1"),
        ("a.h = b.h", "a.h is of type fixed_size_list<item: double>[3], which cannot be compared or computed with"),
        ("corr(a.h, max(b.h)) > 0", "cannot apply max() to fixed_size_list<item: double>[3]"),
    ],
)
def test_faults(condition: str, message: str) -> None:
    table = pa.table(
        {
            "ts": [1, 2],
            "type": ["A", "B"],
            "h": pa.array([[1.0, 2.0, 3.0]] * 2, pa.list_(pa.float64(), 3)),
            "w": pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float64(), 2)),
            "any": [[1.0, 2.0, 3.0]] * 2,
            "words": pa.array([["x", "y", "z"]] * 2, pa.list_(pa.string(), 3)),
        }
    )
    with pytest.raises(cep.PatternError) as fault:
        cep.match(table, f"PATTERN SEQ(A a, B b+) WHERE {condition}")
    assert message in str(fault.value)


def test_a_list_is_correlated_and_asked_whether_it_is_null() -> None:
    lists = pa.array([[1, 2, 4], None, [2, 4, 8], [4, 2, 1]], pa.list_(pa.int64(), 3))
    events = pa.table({"ts": [1, 2, 3, 4], "h": lists})
    query = """
        PATTERN SEQ(a, b) WHERE (corr(a.h, b.h) > 0.9 OR b.h IS NULL) AND a.h IS NOT NULL
        RETURN a.ts AS a, b.ts AS b, b.h IS NULL AS lost
    """
    found = cep.match(events, query, strategy="skip_till_any_match")
    assert [tuple(row.values())[2:] for row in found.to_pylist()] == [(1, 2, True), (1, 3, False)]
