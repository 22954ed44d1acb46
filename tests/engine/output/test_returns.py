"""RETURN: every aggregate over every type, NULLs, lists and expressions."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import EventError, PatternError, UnsupportedError

PATTERN = "PATTERN SEQ(A a+, B b) WITHIN 3"
NAN = math.nan


def returned(item, column, pattern=PATTERN):
    """The item for the match that binds all of the column's values to `a`."""
    size = len(column)
    events = pa.table({"ts": [0] * size + [1], "type": ["A"] * size + ["B"], "x": pa.concat_arrays([column, pa.nulls(1, column.type)])})
    found = cep.match(events, f"{pattern} RETURN {item} AS item")
    return found["item"][0].as_py(), found.schema.field("item").type


def instant(day):
    return datetime(2024, 1, day, tzinfo=UTC)


# type → (values, min, max, sum, avg): NULL is passed over.
VALUES = {
    "int64": (pa.array([3, None, -1]), -1, 3, 2, 1.0),
    "int8": (pa.array([127, None, 127], pa.int8()), 127, 127, 254, 127.0),
    "uint32": (pa.array([2**32 - 1, None, 1], pa.uint32()), 1, 2**32 - 1, 2**32, 2.0**31),
    "float64": (pa.array([0.5, None, -2.0]), -2.0, 0.5, -1.5, -0.75),
    "float32": (pa.array([0.5, None, -2.0], pa.float32()), -2.0, 0.5, -1.5, -0.75),
    "decimal": (
        pa.array([Decimal("1.25"), None, Decimal("-2.50")], pa.decimal128(6, 2)),
        Decimal("-2.50"), Decimal("1.25"), Decimal("-1.25"), -0.625,
    ),
    "duration": (
        pa.array([timedelta(3), None, timedelta(1)], pa.duration("ms")), timedelta(1), timedelta(3), timedelta(4), UnsupportedError,
    ),
    "string": (pa.array(["b", None, "é"]), "b", "é", PatternError, PatternError),
    "large_string": (pa.array(["b", None, ""], pa.large_string()), "", "b", PatternError, PatternError),
    "dictionary": (pa.array(["b", None, "a"]).dictionary_encode(), "a", "b", PatternError, PatternError),
    "date": (pa.array([date(2024, 1, 2), None, date(1969, 1, 1)]), date(1969, 1, 1), date(2024, 1, 2), PatternError, PatternError),
    "timestamp": (
        pa.array([instant(3), None, instant(1)], pa.timestamp("s", "UTC")), instant(1), instant(3), PatternError, PatternError,
    ),
    "bool": (pa.array([True, None, False]), False, True, PatternError, PatternError),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_min_and_max(name):
    column, least, greatest, _, _ = VALUES[name]
    assert returned("min(a.x)", column) == (least, column.type)
    assert returned("max(a.x)", column) == (greatest, column.type)


@pytest.mark.parametrize("name", VALUES)
def test_first_last_and_count(name):
    column = VALUES[name][0]
    assert returned("first(a.x)", column) == (column[0].as_py(), column.type)
    assert returned("last(a.x)", column) == (column[2].as_py(), column.type)
    assert returned("count(a.x)", column) == (2, pa.int64())
    assert returned("count(a)", column) == (3, pa.int64())
    assert returned("a.x", column) == (column.to_pylist(), pa.list_(column.type))
    assert returned("b.x", column) == (None, column.type)


@pytest.mark.parametrize("function", ["sum", "avg", "median"])
@pytest.mark.parametrize("name", VALUES)
def test_sum_avg_and_median(name, function):
    column, expected = VALUES[name][0], VALUES[name][3 if function == "sum" else 4]
    if isinstance(expected, type):
        with pytest.raises(expected, match=rf"{function}\("):
            returned(f"{function}(a.x)", column)
    else:
        assert returned(f"{function}(a.x)", column)[0] == expected


@pytest.mark.parametrize("name", VALUES)
def test_distinct_values(name):
    column = VALUES[name][0]
    assert returned("count(DISTINCT a.x)", column) == (1 if name == "int8" else 2, pa.int64())
    assert returned("count(DISTINCT a.x)", pa.chunked_array([column, column, column]).combine_chunks())[0] == (1 if name == "int8" else 2)


def test_every_nan_is_the_same_value():
    assert returned("count(DISTINCT a.x)", pa.array([NAN, 0.0, -0.0, NAN, None, 1.0]))[0] == 3


@pytest.mark.parametrize("name", VALUES)
def test_aggregates_over_no_value(name):
    column = VALUES[name][0]
    nothing = pa.nulls(3, column.type)
    assert [returned(f"{function}(a.x)", nothing)[0] for function in ("min", "max", "first", "last", "count")] == [None] * 4 + [0]
    assert returned("count(DISTINCT a.x)", nothing)[0] == 0
    for function, expected in zip(("sum", "avg", "median"), (*VALUES[name][3:], VALUES[name][4]), strict=True):
        if not isinstance(expected, type):
            assert returned(f"{function}(a.x)", nothing)[0] is None


@pytest.mark.parametrize("function", ["min", "max", "sum", "avg", "median"])
@pytest.mark.parametrize("values", [[NAN, 1.0, None], [1.0, None, NAN], [NAN, NAN, math.inf]])
def test_nan_goes_through(function, values):
    assert math.isnan(returned(f"{function}(a.x)", pa.array(values))[0])


def test_the_sum_of_types_is_their_own():
    assert returned("sum(a.x)", VALUES["int8"][0])[1] == pa.int64()
    assert returned("sum(a.x)", VALUES["float32"][0])[1] == pa.float64()
    assert returned("sum(a.x)", VALUES["decimal"][0])[1] == pa.decimal128(18, 2)
    assert returned("sum(a.x)", VALUES["duration"][0])[1] == pa.duration("ms")


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1], [2**63 - 1, 1, -1]])
def test_a_sum_that_overflows(values):
    with pytest.raises(EventError, match=r"integer overflow in the sum of 'x' over a binding; .*cast the column to DOUBLE"):
        returned("sum(a.x)", pa.array(values))


@pytest.mark.parametrize(
    "values",
    [
        [2**63 - 1, 1],
        [-(2**63), -1],
        [2**63 - 1, 1, -1],
        [2**63 - 1, None, 2**63 - 1],
        [-(2**63)] * 5,
        [2**62 + 1, 2**62 + 3, 2**62 + 2**10 + 1],
        [2**63 - 1, -(2**63), -(2**63), 2**33 + 7],
    ],
)
def test_an_average_of_integers_is_a_float_also_where_their_sum_overflows(values):
    present = [value for value in values if value is not None]
    assert returned("avg(a.x)", pa.array(values, pa.int64())) == (sum(present) / 1.0 / len(present), pa.float64())


def test_an_average_of_decimals_is_a_float_also_where_their_sum_overflows():
    values = [Decimal("9999999999999999.99")] * 20
    assert returned("avg(a.x)", pa.array(values, pa.decimal128(18, 2)))[0] == float(20 * (10**18 - 1)) / 20 / 100.0


@pytest.mark.parametrize("item", ["b.ts * 9223372036854775807 + 1", "sum(a.x) + 1", "-first(a.x) * 2"])
def test_an_expression_that_overflows(item):
    with pytest.raises(EventError, match="integer overflow in RETURN item 'item'"):
        returned(item, pa.array([2**63 - 1]))


NINES = pa.array([Decimal("99999999999999.9999")] * 2, pa.decimal128(18, 4))


@pytest.mark.parametrize("item", ["sum(a.x)", "first(a.x) + last(a.x)", "first(a.x) * 2", "round(first(a.x))", "ceil(last(a.x))"])
def test_a_decimal_of_too_many_digits_is_refused(item):
    with pytest.raises(EventError, match=r"RETURN item 'item' is \d+\.\d+, which has more digits than decimal128\(18, 4\) holds; add 0e0"):
        returned(item, NINES)
    assert returned(f"{item} + 0e0", NINES)[1] == pa.float64()
    clause = f"ORDER BY ts MEASURES {item.replace('a.', 'A.')} AS m PATTERN (A+) DEFINE A AS TRUE"
    with pytest.raises(EventError, match=r"measure 'm' is .* has more digits than decimal128"):
        cep.match(pa.table({"ts": range(2), "x": NINES}), f"MATCH_RECOGNIZE ({clause})")


@pytest.mark.parametrize(("item", "expected"), [("ceil(a.x)", "10.0"), ("round(a.x)", "10.0"), ("floor(-a.x)", "-10.0")])
def test_a_decimal_is_rounded_to_a_digit_more(item, expected):
    column = pa.array([Decimal("9.9")], pa.decimal128(2, 1))
    assert returned(item, column, "PATTERN SEQ(A a, B b)") == (Decimal(expected), pa.decimal128(3, 1))


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("max(a.x) - min(a.x)", 5),
        ("sum(a.x) / count(a.x)", 4.5),
        ("avg(a.x) * 2", 9.0),
        ("CASE WHEN count(DISTINCT a.x) = 2 THEN median(a.x) - median(b.ts) END", 3.5),
        ("count(DISTINCT a.type) + count(DISTINCT b.x)", 1),
        ("coalesce(last(a.x), -1)", -1),
        ("last(a.x)", None),
        ("last(a.x) + 1", None),
        ("sum(a.x) / (b.ts - 1)", None),
        ("count(a) > 2", True),
        ("b.ts - first(a.ts)", 1),
        ("least(first(a.x), b.ts)", 1),
        ("'text'", "text"),
        ("1.5", 1.5),
        ("TRUE", True),
        ("NULL", None),
        ("b.type = 'B' AND first(a.type) <> b.type", True),
        ("max(a.type) < b.type", True),
        ("first(a.type) = last(a.type)", True),
        ("min(a.type) IN ('A', 'C')", True),
        ("first(a.type) LIKE 'B%' OR max(a.type) IS NULL", False),
        ("CASE WHEN count(a) > 3 THEN 1 WHEN first(a.x) = 7 THEN 0.5 END", 0.5),
        ("CASE WHEN sum(a.x) > 9 THEN sum(a.x) * 9223372036854775807 ELSE -1 END", -1),
        ("CASE count(a) WHEN 3 THEN 'three' WHEN 2 THEN b.type END", "three"),
        ("CASE WHEN last(a.x) > 0 THEN 'up' WHEN b.ts > 0 THEN CASE WHEN b.ts > 9 THEN 'x' ELSE b.type END END", "B"),
        ("CASE WHEN count(a) = 3 THEN NULL ELSE max(a.type) END", None),
        ("CASE WHEN count(a) = 4 THEN NULL ELSE max(a.type) END", "A"),
        ("CASE WHEN count(a) = 3 THEN 'all' END = 'all'", True),
        ("coalesce(nullif(min(a.type), 'A'), nullif(b.type, 'A'), 'none')", "B"),
    ],
)
def test_expressions(item, expected):
    assert returned(item, pa.array([7, 2, None]))[0] == expected


def test_whole_events_and_their_lists():
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "A", "B"], "x": [5, None, 7]})
    found = cep.match(events, f"{PATTERN} RETURN a, b, count(a) AS n", columns=["x"])
    assert found.schema.types[2:] == [pa.list_(pa.struct([("x", pa.int64())])), pa.struct([("x", pa.int64())]), pa.int64()]
    assert found.to_pylist()[0] == {"match_start": 1, "match_end": 3, "a": [{"x": 5}, {"x": None}], "b": {"x": 7}, "n": 2}


def test_what_conditions_cannot_read_can_be_returned():
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [[1, 2], None], "m": pa.array([Decimal("1.5")] * 2, pa.decimal128(38, 2))})
    found = cep.match(events, f"{PATTERN} RETURN a.x, b.x AS last, first(a.m) AS m, count(a.x) AS n")
    assert found.drop(["match_start", "match_end"]).to_pylist() == [{"x": [[1, 2]], "last": None, "m": Decimal("1.50"), "n": 1}]
    with pytest.raises(UnsupportedError, match="decimals up to 18 digits"):
        cep.match(events, f"{PATTERN} RETURN sum(a.m)")


def test_a_return_table_is_itself_a_table_of_events():
    events = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"]})
    inner = cep.match(events, "PATTERN SEQ(A a, B b) WITHIN 1 RETURN b.ts - a.ts AS took")
    found = cep.match(inner, "PATTERN SEQ(x, y) WHERE x.took = y.took", timestamp="match_start", output="indices")
    assert found.to_pylist() == [{"x": 0, "y": 1}]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a", None, b""]),
        pa.array([[1], None, []], pa.list_(pa.int64())),
        pa.array([{"n": 1}, None, {"n": None}]),
        pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([Decimal("1.5"), None, Decimal(10**30)], pa.decimal128(38, 2)),
        pa.array([Decimal("1.5"), None, Decimal(10**30)], pa.decimal256(60, 2)),
        pa.array([pa.MonthDayNano([1, 2, 3]), None, pa.MonthDayNano([0, 0, 0])]),
        pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float64(), 2)),
    ],
    ids=lambda column: str(column.type),
)
def test_a_cell_that_cannot_be_computed_with_is_null_or_not(column):
    events = pa.table({"ts": [1, 2, 3], "x": column})
    measured = cep.match(events, "MATCH_RECOGNIZE (ORDER BY ts MEASURES E.x IS NULL AS absent PATTERN (E))")
    assert measured["absent"].to_pylist() == [False, True, False]
    seen = cep.match(events, "DEFINE A AS ts <= 2, B AS ts > 2 PATTERN A meets B RETURN last(A.x) IS NULL AS absent", detect="early")
    assert seen["absent"].to_pylist() == [True]
    for condition, rows in (
        ("e.x IS NULL", [1]),
        ("e.x IS NOT NULL", [0, 2]),
        ("count(e.x) > 0", [0, 2]),
        ("e.ts > 2 OR e.x IS NULL", [1, 2]),
    ):
        assert cep.match(events, f"PATTERN e WHERE {condition}", output="indices")["e"].to_pylist() == rows
    several = "PATTERN SEQ(d, e{2}) WHERE count(e.x) = 1 AND (d.x IS NULL OR e[i].ts > 1) AND (last(e.x) IS NOT NULL OR d.ts > 9)"
    assert cep.match(events, several, output="indices").to_pylist() == [{"d": 0, "e": [1, 2]}]
    found = cep.match(events, "PATTERN e RETURN e.x IS NULL AS absent, e.x IS NOT NULL AND e.ts > 1 AS present")
    assert found["absent"].to_pylist() == [False, True, False]
    assert found["present"].to_pylist() == [False, False, True]


def test_an_integer_beyond_64_bits_is_named_by_its_column():
    events = pa.table({"ts": [1, 2], "n": pa.array([1, 2**64 - 1], pa.uint64())})
    with pytest.raises(EventError, match="column 'n': Integer value 18446744073709551615 not in range"):
        cep.match(events, "PATTERN e RETURN coalesce(e.n, 0) AS n")
