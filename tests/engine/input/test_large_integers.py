"""Whole numbers in CSV and lines of JSON are read as they stand there; conditions and keys refuse those that they cannot read."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input.formats import read_csv
from gpu_cep.engine.input.json_lines import read_json
from gpu_cep.errors import EventError, UnsupportedError
from tests.effort import examples

EDGES = [edge + step for edge in (-(1 << 63), 0, 1 << 53, 1 << 63, 1 << 64) for step in (-2, -1, 0, 1)]
INTEGERS = st.one_of(st.sampled_from(EDGES), st.integers(-(1 << 66), 1 << 66))


def as_csv(numbers: list[object]) -> pa.Table:
    held = "\n".join(["n,t", *(f"{'' if number is None else number},x" for number in numbers)])
    return read_csv(pa.py_buffer(held.encode()), "events.csv")


def as_json(numbers: list[object]) -> pa.Table:
    held = "\n".join(json.dumps({"t": "x", "n": number}) for number in numbers)
    return read_json(pa.py_buffer(held.encode()), "events.jsonl")


def write(path: Path, rows: list[dict[str, object]]) -> None:
    csv = ["ts,type,id", *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(csv if path.suffix == ".csv" else map(json.dumps, rows)))


@pytest.mark.parametrize("read", [as_csv, as_json])
@examples(300, 3_000)
@given(st.lists(st.one_of(INTEGERS, st.none()), min_size=1, max_size=5).filter(any))
def test_whole_numbers_are_exact_or_an_error(read, numbers):
    known = [number for number in numbers if number is not None]
    signed, unsigned = (all(low <= number < high for number in known) for low, high in ((-(1 << 63), 1 << 63), (0, 1 << 64)))
    assert read(numbers)["n"].to_pylist() == numbers
    assert read(numbers).schema.field("n").type == (pa.int64() if signed else pa.uint64() if unsigned else pa.decimal128(38, 0))


@pytest.mark.parametrize("read", [as_csv, as_json])
def test_numbers_of_more_digits_than_decimals_have_are_an_error(read):
    assert read([10**38 - 1, 1, None])["n"].to_pylist() == [10**38 - 1, 1, None]
    with pytest.raises(EventError, match=r"events\.(csv|jsonl): column 'n' has whole numbers of more than 38 digits; .*text"):
        read([10**38, 1])


@pytest.mark.parametrize("read", [as_csv, as_json])
@pytest.mark.parametrize("numbers", [[0.5, 1 << 64, -(1 << 65)], [1e20, 3e22], [-1e300, 1e19], [2.0, 1e18]])
def test_floats_stay_floats(read, numbers):
    assert read(numbers)["n"].to_pylist() == [float(number) for number in numbers]


@pytest.mark.parametrize("read", [as_csv, as_json])
def test_columns_of_which_a_number_is_written_as_a_float_are_floats(read):
    numbers = [12345678901234567890, 2.0, -(1 << 70)]
    assert read(numbers)["n"].to_pylist() == [float(number) for number in numbers]


def test_numbers_inside_of_objects_are_not_the_columns():
    lines = b'{"v": 1e20, "o": {"v": 12345678901234567890}}\n{"v": 2e3, "o": {"v": 3}}'
    assert read_json(pa.py_buffer(lines), "events.jsonl")["v"].to_pylist() == [1e20, 2e3]
    inside = b'{"v": 3, "o": {"v": 0.5}, "t": "\\"v\\": 0.5"}\n{"v": 36893488147419103232, "o": {"v": 3}}'
    assert read_json(pa.py_buffer(inside), "events.jsonl")["v"].to_pylist() == [3, 36893488147419103232]


@pytest.mark.parametrize("large", [1 << 64, 1 << 70, 1e20])
@pytest.mark.parametrize("between", ["\n", "\r", "\r\n", "", " ", "\n\n \t\r"])
@pytest.mark.parametrize("within", ["", " ", "\n", "\r\n"])
def test_records_may_stand_beside_each_other_and_take_several_lines(large, between, within):
    rows = [{"v": 3, "o": {"v": 0.5}}, {"v": large, "o": {"v": 2.5}}, {"o": None, "v": -4}]
    held = between.join(json.dumps(row).replace(" ", within) for row in rows)
    for begin in ("", "\ufeff"):
        column = read_json(pa.py_buffer((begin + held).encode()), "events.jsonl")["v"]
        assert (column.to_pylist(), column.type == pa.float64()) == ([3, large, -4], isinstance(large, float))


def test_what_arrow_alone_takes_for_numbers_loses_no_digits():
    held = b'{"v": -4, "o": {"v": 0.5}, "w": -Inf}\n{"v": 36893488147419103233, "w": Inf}'
    assert read_json(pa.py_buffer(held), "events.jsonl")["v"].to_pylist() == [-4, 36893488147419103233]
    floats = b'{"w": -Inf, "t": "Inf", "v": 3}\n{"v": 1e300, "w": Inf}\n{"w": NaN}\n{"w": Infinity}'
    assert read_json(pa.py_buffer(floats), "events.jsonl")["v"].to_pylist() == [3.0, 1e300, None, None]


@pytest.mark.parametrize("written", [r"\u0076\/\"", r"v\/\u0022", r"v/\""])
def test_a_name_may_be_written_with_any_escapes(written):
    for large, kind in ((1e300, pa.float64()), (1 << 70, pa.decimal128(38, 0))):
        held = f'{{"{written}": {large}}}\n{{"{written}": 2, "o": 0.5}}'.encode()
        column = read_json(pa.py_buffer(held), "events.jsonl")['v/"']
        assert (column.type, column.to_pylist()) == (kind, [large, 2])


@pytest.mark.parametrize("numbers", [["1" * 20 + ".", "1"], ["1.e30", "1."], ["1" * 40 + ".", "2"], ["9" * 20, " 1."]])
def test_floats_of_csv_may_end_in_a_dot(numbers):
    table = read_csv(pa.py_buffer("\n".join(["n", *numbers]).encode()), "events.csv")
    assert table["n"].to_pylist() == [float(number) for number in numbers]


def test_columns_of_one_name_keep_their_values():
    table = read_csv(pa.py_buffer(b"a,a\n1,12345678901234567890\n2,3\n"), "events.csv")
    assert [column.to_pylist() for column in table.columns] == [[1, 2], [12345678901234567890.0, 3.0]]


@pytest.mark.parametrize("name", ['quote " and \\', "ü", "n.*"])
@pytest.mark.parametrize("large", [1 << 70, 1e20])
def test_a_column_of_any_name_is_found(name, large):
    tables = [read_json(pa.py_buffer(f'{{"t": 1}}\n{json.dumps({name: large})}\n'.encode()), "events.jsonl")]
    quoted = name.replace('"', '""')
    tables.append(read_csv(pa.py_buffer(f'"{quoted}",t\n,2\n{large},2\n'.encode()), "events.csv"))
    assert [table[name].to_pylist() for table in tables] == [[None, large]] * 2
    assert {table.schema.field(name).type == pa.float64() for table in tables} == {isinstance(large, float)}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_only_queries_that_read_a_large_column_are_refused(tmp_path, suffix):
    path = tmp_path / f"events{suffix}"
    write(path, [{"ts": 1, "type": "A", "id": -1}, {"ts": 2, "type": "B", "id": 1 << 70}])
    assert cep.match(path, "PATTERN SEQ(A a, B b)", output="count")["count"].to_pylist() == [1]
    assert cep.match(path, "PATTERN SEQ(A a, B b) RETURN b.id AS id")["id"].to_pylist() == [Decimal(1 << 70)]
    for asked in ("[id]", "a.id < b.id"):
        with pytest.raises(UnsupportedError, match=r"type decimal\(38, 0\)"):
            cep.match(path, f"PATTERN SEQ(A a, B b) WHERE {asked}")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_numbers_that_floats_do_not_tell_apart_are_no_one_key(tmp_path, suffix):
    rows = [{"ts": 1, "type": "A", "id": (1 << 64) - 2}, {"ts": 2, "type": "B", "id": (1 << 64) - 1}]
    path = tmp_path / f"events{suffix}"
    write(path, rows)
    assert cep.match(path, "PATTERN SEQ(A a, B b) RETURN b.id AS id")["id"].to_pylist() == [(1 << 64) - 1]
    with pytest.raises(EventError, match=r"column 'id': .* not in range.*; cast the column to text"):
        cep.match(path, "PATTERN SEQ(A a, B b) WHERE [id]")
