"""Columns that conditions derive from others: a few events at a time, by several threads, as all at once."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.engine.lowering import programs
from gpu_cep.engine.lowering.column_programs import derive_column

_SIZE = 20
_QUERY = "PATTERN SEQ(A a, C c) WHERE skip_till_any_match {{ {} }} WITHIN 9"
_CONDITIONS = {
    "none": "c.x > a.y",
    "of a column": "c.x > 2.5 * a.x",
    "on both sides": "c.x + 1.5 > a.y * 2.0",
    "of two columns": "c.x > 2.5 * a.x + a.z",
    "of integers": "c.x > 1.5 * a.n",
    "several": "c.x > 2.5 * a.x AND c.y + 1.5 < 2.0 * a.x AND c.x - 3.5 > a.z",
}


def _layout(condition):
    numbers = pa.array(np.arange(_SIZE))
    floats = {name: numbers.cast(pa.float64()) for name in ("x", "y", "z")}
    events = pa.table({"ts": numbers, "type": pa.array(["A", "C"] * (_SIZE // 2)), "n": numbers, **floats})
    return gpu_cep.explain(events, _QUERY.format(condition)).plan.layout


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("condition", _CONDITIONS.values(), ids=_CONDITIONS)
def test_columns_are_derived_by_parts_as_at_once(condition, missing, threads):
    layout, random = _layout(condition), np.random.default_rng(5)
    nulls = random.random(_SIZE) < 0.3 if missing else None
    ints = [(random.integers(0, 4, _SIZE), nulls) for _ in layout.ints]
    floats = [(random.integers(0, 4, _SIZE).astype(np.float64), nulls) for _ in layout.floats]
    whole = [derive_column(program, ints, floats, _SIZE) for program in layout.derived]
    with patch.object(programs, "_DERIVED_AT_ONCE", 3):
        bank = programs.bank_of(layout, ints, floats, SimpleNamespace(vectors=lambda wanted, rows: None), np.arange(_SIZE), threads)
    expected = programs.make_bank(np, ints, [*floats, *whole], _SIZE)
    assert np.array_equal(bank.floats, expected.floats)
    assert np.array_equal(bank.ints, expected.ints)
    assert np.array_equal(bank.float_nulls, expected.float_nulls)
    assert np.array_equal(bank.int_nulls, expected.int_nulls)


def test_what_is_derived_is_derived():
    assert [len(_layout(condition).derived) for condition in _CONDITIONS.values()] == [0, 1, 2, 1, 1, 4]
