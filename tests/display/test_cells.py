"""Cells: every Arrow type as JSON holds it, and as a line of text."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.display.cells import json_lines, json_rows, tab_lines, texts
from gpu_cep.errors import UnsupportedError

SAMPLES = [
    (pa.array([1, None], pa.timestamp("ns", "UTC")), ["1970-01-01 00:00:00.000000001Z", None]),
    (pa.array([dt.date(2026, 3, 1)]), ["2026-03-01"]),
    (pa.array([dt.time(1, 2)]), ["01:02:00.000000"]),
    (pa.array([7, None], pa.duration("ns")), [7, None]),
    (pa.array([Decimal("1.20")]), ["1.20"]),
    (pa.array(["x", "y", None, "x"]).dictionary_encode(), ["x", "y", None, "x"]),
    (pa.array([float("nan"), float("inf"), -float("inf"), 0.5], pa.float32()), ["NaN", "Infinity", "-Infinity", 0.5]),
    (pa.array([0.1], pa.float32()), [0.10000000149011612]),
    (pa.array([1.5], pa.float16()), [1.5]),
    (pa.array([1e300, 1e-7, 123456789012345678.0, 1e15]), [1e300, 1e-7, 123456789012345678.0, 1e15]),
    (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
    (pa.array([b"\xff\x00", None, b""]), ["ff00", None, ""]),
    (pa.array([b"\xff\x00", None], pa.binary(2)), ["ff00", None]),
    (pa.array(["a", None], pa.string_view()), ["a", None]),
    (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), [[1, 2], None]),
    (pa.array([[1], None, []], pa.list_view(pa.int32())), [[1], None, []]),
    (pa.array([[dt.timedelta(seconds=1)]], pa.list_(pa.duration("ms"))), [[1_000]]),
    (pa.array([{"at": dt.date(2026, 3, 1), "v": float("nan")}, None]), [{"at": "2026-03-01", "v": "NaN"}, None]),
    (pa.array([[("k", 1), ("l", None)], None, []], pa.map_(pa.string(), pa.int8())), [[["k", 1], ["l", None]], None, []]),
    (pa.array([{}, None], pa.struct([])), [{}, None]),
    (pa.array([True, None]), [True, None]),
    (pc.run_end_encode(pa.array([1, 1, 2])), [1, 1, 2]),
    (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16))), [b"0123456789abcdef".hex()]),
    (pa.nulls(1), [None]),
]


def read(values: pa.Array) -> list[Any]:
    """The values of a column, as JSON gives them back."""
    lines = b"".join(json_lines(pa.table({"x": values}))).decode().split("\n")[:-1]
    return [json.loads(line)["x"] for line in lines]


@pytest.mark.parametrize(("values", "plain"), SAMPLES, ids=[str(values.type) for values, _ in SAMPLES])
def test_values_are_what_json_can_hold(values: pa.Array, plain: list[Any]) -> None:
    assert read(values) == plain
    assert read(values.slice(1)) == plain[1:]
    assert read(values.slice(0, 0)) == []


@pytest.mark.parametrize(("values", "plain"), SAMPLES, ids=[str(values.type) for values, _ in SAMPLES])
def test_scripts_get_the_same_with_what_is_nested_as_text(values: pa.Array, plain: list[Any]) -> None:
    rows = json.loads(json_rows(pa.table({"x": values})))
    for (told,), value in zip(rows, plain, strict=True):
        assert (json.loads(told) if isinstance(value, list | dict) or value == 2**64 - 1 else told) == value


LEAVES = st.sampled_from(
    [pa.int64(), pa.int8(), pa.uint64(), pa.float64(), pa.string(), pa.large_string(), pa.bool_(), pa.null(), pa.binary()]
)


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    structs = st.lists(inner, max_size=3).map(lambda kinds: pa.struct([(f'{number} "\\', kind) for number, kind in enumerate(kinds)]))
    return structs | inner.map(pa.list_) | inner.map(pa.large_list) | inner.map(lambda kind: pa.list_(kind, 2))


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Python values of an Arrow type."""
    if pa.types.is_struct(kind):
        some = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif pa.types.is_fixed_size_list(kind):
        some = st.lists(values_of(kind.value_type), min_size=2, max_size=2)
    elif pa.types.is_nested(kind):
        some = st.lists(values_of(kind.value_type), max_size=3)
    else:
        some = SCALARS[str(kind)]
    return st.none() | some


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int8": st.integers(-128, 127),
    "uint64": st.integers(0, 2**64 - 1),
    "double": st.floats(),
    "string": st.text(),
    "large_string": st.text('"\\\n\x00\x1f\x7f/é\u2028', max_size=5),
    "bool": st.booleans(),
    "null": st.none(),
    "binary": st.binary(max_size=3),
}


def plain(value: Any) -> Any:
    """A value as JSON holds it, by the definition."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case bytes():
            return value.hex()
    return value


@given(st.data())
def test_columns_are_written_as_their_values_one_by_one(data: st.DataObject) -> None:
    kind = data.draw(st.recursive(LEAVES, nested, max_leaves=5))
    drawn = data.draw(st.lists(values_of(kind), max_size=5))
    begin = data.draw(st.integers(0, len(drawn)))
    values = pa.array(drawn, kind).slice(begin)
    assert json.dumps(read(values), sort_keys=True) == json.dumps([plain(value) for value in drawn[begin:]], sort_keys=True)


def test_lines_are_objects_of_all_columns_in_as_many_pieces_as_it_takes() -> None:
    table = pa.table({'a"': range(25_000), "b": [[1.0, 2.5]] * 25_000})
    pieces = list(json_lines(table))
    assert len(pieces) == 3
    lines = b"".join(pieces).splitlines()
    assert lines[0] == b'{"a\\"": 0, "b": [1.0, 2.5]}'
    assert [json.loads(line)['a"'] for line in lines] == list(range(25_000))
    assert b"".join(json_lines(table.slice(0, 0))) == b""
    assert len(json.loads(json_rows(table))) == 25_000
    assert json_rows(table.slice(0, 0)) == "[]"


def test_a_type_without_a_form_is_told() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(UnsupportedError, match=r"type sparse_union.* cannot be written as JSON"):
        list(json_lines(pa.table({"x": union})))


EARLY = '["1970-01-01 00:00:00", "1970-01-01 00:01:00"]'


@pytest.mark.parametrize(
    ("values", "written"),
    [
        (pa.array([None, "a b", '"']), [None, "a b", '"']),
        (pa.array(["a\tb\n", "\x1b[0m \\"]), ["a\\tb\\n", "\\u001b[0m \\"]),
        (pa.array(["x", None]).dictionary_encode(), ["x", None]),
        (pa.array([1.5, float("nan"), 2.0]), ["1.5", "NaN", "2.0"]),
        (pa.array([True]), ["true"]),
        (pa.array([b"\xff"]), ["ff"]),
        (pa.array([Decimal("1.20")]), ["1.20"]),
        (pa.array([dt.date(2026, 3, 1)]), ["2026-03-01"]),
        (pa.array([[{"v": "ü"}]]), ['[{"v": "ü"}]']),
        (pa.array([0, 60_000_000_000, None], pa.timestamp("ns")), ["1970-01-01 00:00:00", "1970-01-01 00:01:00", None]),
        (pa.array([0, 250_000], pa.timestamp("us")), ["1970-01-01 00:00:00.000", "1970-01-01 00:00:00.250"]),
        (pa.array([1_000], pa.timestamp("ns", "UTC")), ["1970-01-01 00:00:00.000001Z"]),
        (pa.array([1], pa.timestamp("ns")), ["1970-01-01 00:00:00.000000001"]),
        (pa.array([dt.time(1, 2), dt.time(1, 2, 3)]), ["01:02:00", "01:02:03"]),
        (pa.array([1_500_000_000], pa.time64("ns")), ["00:00:01.500"]),
        (pa.array([[0, 60], None, []], pa.list_(pa.timestamp("s"))).cast(pa.list_(pa.timestamp("us"))), [EARLY, None, "[]"]),
    ],
)
def test_texts_are_a_line_for_people(values: pa.Array, written: list[str | None]) -> None:
    assert texts(values).to_pylist() == written


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_lengths_of_time_have_days_and_a_clock(unit: str) -> None:
    lengths = pa.array([0, 540, -540, 86_400, -172_803, None], pa.duration("s")).cast(pa.duration(unit))
    assert texts(lengths).to_pylist() == ["00:00:00", "00:09:00", "-00:09:00", "1 day 00:00:00", "-2 days 00:00:03", None]
    least = texts(pa.array([-(2**63), 1], pa.duration("us"))).to_pylist()
    assert least == ["-106751991 days 04:00:54.775808", "00:00:00.000001"]


def test_lines_with_tabs_have_as_many_as_there_are_columns() -> None:
    table = pa.table({"a\tb": ["x\ty\n", None] * 6_000, "n": range(12_000)})
    pieces = list(tab_lines(table))
    assert len(pieces) == 3
    lines = b"".join(pieces).decode().split("\n")
    assert lines[:3] == ["a\\tb\tn", "x\\ty\\n\t0", "\t1"]
    assert (len(lines), lines[-1]) == (12_002, "")
    assert all(line.count("\t") == 1 for line in lines[:-1])
    assert b"".join(tab_lines(table.slice(0, 0))) == b"a\\tb\tn\n"


def test_scripts_hold_whole_numbers_up_to_their_own() -> None:
    numbers = pa.array([2**53 - 1, 2**53, -(2**53), -(2**63), None])
    rows = json.loads(json_rows(pa.table({"n": numbers, "l": [[1]] * 5, "d": numbers.cast(pa.duration("s"))})))
    texts = [2**53 - 1, str(2**53), str(-(2**53)), str(-(2**63)), None]
    assert rows == [[text, "[1]", text] for text in texts]
