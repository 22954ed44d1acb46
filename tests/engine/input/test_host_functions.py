"""Functions computed on the host, as columns: in conditions, over NULLs, in RETURN."""

from __future__ import annotations

import math
from datetime import date, datetime

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import PatternError

MOMENTS = [datetime(2024, 2, 29, 23, 59, 58), None, datetime(1969, 12, 31, 1, 2, 3)]
COLUMNS = {
    "n": pa.array([100, None, 1]),
    "f": pa.array([0.5, None, math.nan]),
    "s": pa.array(["  Ä b ", None, ""]),
    "d": pa.array([date(2024, 2, 29), None, date(1969, 12, 31)]),
    "t": pa.array(MOMENTS, pa.timestamp("ns")),
    "z": pa.array([datetime(2024, 6, 30, 23), None, datetime(2024, 1, 1)], pa.timestamp("s", "Europe/Berlin")),
}
EVENTS = pa.table({"ts": [1, 2, 3], **COLUMNS})
NAN = math.nan

VALUES = {
    "exp(a.f)": [math.exp(0.5), None, NAN],
    "ln(a.n)": [math.log(100), None, 0.0],
    "log10(a.n)": [2.0, None, 0.0],
    "log2(a.n)": [math.log2(100), None, 0.0],
    "sin(a.f)": [math.sin(0.5), None, NAN],
    "cos(a.n)": [math.cos(100), None, math.cos(1)],
    "tan(a.f)": [math.tan(0.5), None, NAN],
    "power(a.n, 0.5)": [10.0, None, 1.0],
    "lower(a.s)": ["  ä b ", None, ""],
    "upper(a.s)": ["  Ä B ", None, ""],
    "trim(a.s)": ["Ä b", None, ""],
    "length(a.s)": [6, None, 0],
    "substring(a.s, 3)": ["Ä b ", None, ""],
    "substring(a.s, 3, 1)": ["Ä", None, ""],
    "substring(a.s, 0, 4)": ["  Ä", None, ""],
    "year(a.d)": [2024, None, 1969],
    "month(a.d)": [2, None, 12],
    "day(a.t)": [29, None, 31],
    "dayofweek(a.d)": [5, None, 4],
    "hour(a.t)": [23, None, 1],
    "minute(a.t)": [59, None, 2],
    "second(a.t)": [58, None, 3],
    "month(a.z)": [7, None, 1],
    "hour(a.z)": [1, None, 1],
    "year(a.t) + length(a.s)": [2030, None, 1969],
    "length(trim(upper(a.s)))": [3, None, 0],
}


def test_trim_takes_spaces_alone():
    texts = pa.array(["\t x \n", " \u00a0x ", "  ", " x\t "])
    found = cep.match(pa.table({"ts": range(4), "s": texts}), "PATTERN a RETURN trim(a.s) AS s")
    assert found["s"].to_pylist() == ["\t x \n", "\u00a0x", "", "x\t"]


def same(left, right):
    return left == right or (left is not None and right is not None and left != left and right != right)


@pytest.mark.parametrize("item", VALUES)
def test_in_return(item):
    found = cep.match(EVENTS, f"PATTERN a RETURN {item} AS item")["item"].to_pylist()
    assert len(found) == 3
    assert all(same(*pair) for pair in zip(found, VALUES[item], strict=True)), found


@pytest.mark.parametrize("item", [item for item in VALUES if not isinstance(VALUES[item][0], str)])
def test_in_conditions(item):
    wanted = [row for row, value in enumerate(VALUES[item]) if value is not None and value > 1]
    assert cep.match(EVENTS, f"PATTERN a WHERE {item} > 1", output="indices")["a"].to_pylist() == wanted


def test_what_is_no_regular_expression_is_told_with_its_place():
    with pytest.raises(PatternError) as caught:
        cep.match(EVENTS, "PATTERN a WHERE regexp_like(a.s, '(ab') RETURN regexp_like(a.s, '['), regexp_like(NULL, '?')")
    assert [(fault.message, fault.span.column) for fault in caught.value.diagnostics] == [
        ("'(ab' is no regular expression: missing ): (ab", 17),
        ("'[' is no regular expression: missing ]: [", 48),
        ("'?' is no regular expression: no argument for repetition operator: ?", 71),
    ]


def test_between_bindings_and_over_dictionaries():
    events = pa.table({"ts": [1, 2, 3], "s": pa.array(["Ab", "aB", None]).dictionary_encode(), "t": pa.array([MOMENTS[0]] * 3)})
    pattern = "PATTERN SEQ(a, b) WHERE lower(a.s) = lower(b.s) AND upper(a.s) <> b.s AND year(a.t) = year(b.t)"
    assert cep.match(events, pattern, output="indices").to_pylist() == [{"a": 0, "b": 1}]
