"""Cells: every Arrow type as JSON holds it, and as a line of text."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from gpu_cep.cells import cell_text, plain_rows


@pytest.mark.parametrize(
    ("values", "plain"),
    [
        (pa.array([1, None], pa.timestamp("ns", "UTC")), ["1970-01-01 00:00:00.000000001Z", None]),
        (pa.array([dt.date(2026, 3, 1)]), ["2026-03-01"]),
        (pa.array([7], pa.duration("ns")), [7]),
        (pa.array([Decimal("1.20")]), ["1.20"]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
        (pa.array([float("nan"), float("inf"), -float("inf"), 0.5]), ["NaN", "Infinity", "-Infinity", 0.5]),
        (pa.array([b"\xff"]), ["ff"]),
        (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), [[1, 2]]),
        (pa.array([[dt.timedelta(seconds=1)]], pa.list_(pa.duration("ms"))), [[1_000]]),
        (pa.array([{"at": dt.date(2026, 3, 1), "v": float("nan")}, None]), [{"at": "2026-03-01", "v": "NaN"}, None]),
        (pa.array([True, None]), [True, None]),
        (pa.nulls(1), [None]),
    ],
)
def test_values_are_what_json_can_hold(values, plain):
    rows = plain_rows(pa.table({"x": values}))
    assert [row["x"] for row in rows] == plain
    json.dumps(rows, allow_nan=False)


@pytest.mark.parametrize(("value", "text"), [(None, ""), ("a b", "a b"), (1.5, "1.5"), (True, "true"), ([{"v": "ü"}], '[{"v": "ü"}]')])
def test_cells_are_a_line_of_text(value, text):
    assert cell_text(value) == text
