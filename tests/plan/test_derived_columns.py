"""What conditions compute from one event's numbers becomes a column of the bank."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.plan.programs import BANK_COLUMNS
from tests.plan.test_planner import planned


@pytest.mark.parametrize(
    ("condition", "derived"),
    [
        ("b.y > 2 * a.y", ["mul_float"]),
        ("b.y > a.y * a.y - a.x", ["sub_float"]),
        ("b.y > a.x", ["float_of_int"]),
        ("b.y + 1 > a.y + 1", ["add_float"]),
        ("b.y + 1 > a.y + 2", ["add_float", "add_float"]),
        ("b.y + a.y > 1", []),
        ("b.x > a.x + 1", []),
        ("b.y > a.y / 2", []),
        ("b.y > a.y", []),
    ],
)
def test_which_parts_are_computed_ahead(condition, derived):
    plan = planned(f"PATTERN SEQ(a, b) WHERE {condition}")
    assert [program.code[-1][0] for program in plan.layout.derived] == derived
    (judged,) = plan.branches[0].conditions
    is_comparison = [name.partition("_")[0] for name, *_ in judged.program.code] == ["load", "load", "gt"]
    assert is_comparison == (bool(derived) or condition == "b.y > a.y")


def test_events_at_every_place_share_a_column():
    plan = planned("PATTERN SEQ(a, b+, c) WHERE b[i].y > b[i-1].y + 1 AND c.y < last(b.y) + 1 AND c.y < first(b.y) + 1 AND c.y > a.y + 1")
    assert len(plan.layout.derived) == 1


def test_a_full_bank_takes_no_derived_columns():
    def columns(width):
        schema = {"ts": pa.array([1, 2]), **{f"y{n}": pa.array([1.0, 3.0]) for n in range(width)}}
        related = " AND ".join(f"b.y{n} > a.y{n} + {n / width}" for n in range(width))
        events = pa.table(schema)
        assert cep.match(events, f"PATTERN SEQ(a, b) WHERE {related}", output="count")["count"].to_pylist() == [1]
        return len(cep.explain(events, f"PATTERN SEQ(a, b) WHERE {related}").plan.layout.derived)

    assert columns(BANK_COLUMNS // 2) == BANK_COLUMNS // 2
    assert columns(BANK_COLUMNS - 1) == 1
    assert columns(BANK_COLUMNS) == 0


NUMBERS = st.none() | st.sampled_from([0.0, -0.0, 1.0, 1.5, 3.0, 1e308, math.nan, math.inf])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(NUMBERS, st.none() | st.integers(-2, 3) | st.just(2**60)), max_size=8),
    st.sampled_from(["b.y > 2 * a.y", "b.y + b.x >= a.y * a.y", "b.y <> a.x", "b.y - 1 <= a.y AND b.x = a.y + 0"]),
    st.sampled_from(["skip_till_next_match", "skip_till_any_match", "robust_skip_till_next_match", "strict_contiguity"]),
)
def test_nulls_and_special_numbers(rows, condition, strategy):
    floats, ints = zip(*rows, strict=True) if rows else ((), ())
    events = pa.table({"ts": pa.array(range(len(rows)), pa.int64()), "y": pa.array(floats, pa.float64()), "x": pa.array(ints, pa.int64())})
    query = f"PATTERN SEQ(a, b) WHERE {strategy} {{ {condition} }} WITHIN 6"
    found = cep.match(events, query, output="indices").to_pylist()
    assert found == cep.match(events, query, output="indices", algorithm="brute_force").to_pylist()
