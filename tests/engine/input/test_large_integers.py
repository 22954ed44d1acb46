"""Whole numbers in CSV and lines of JSON are read as they stand there, or are an error that names the column and the line."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input.formats import read_csv
from gpu_cep.engine.input.json_lines import read_json
from gpu_cep.errors import EventError
from tests.effort import examples

EDGES = [edge + step for edge in (-(1 << 63), 0, 1 << 53, 1 << 63, 1 << 64) for step in (-2, -1, 0, 1)]
INTEGERS = st.one_of(st.sampled_from(EDGES), st.integers(-(1 << 66), 1 << 66))


def as_csv(numbers: list[object]) -> pa.Table:
    held = "\n".join(["n,t", *(f"{'' if number is None else number},x" for number in numbers)])
    return read_csv(pa.py_buffer(held.encode()), "events.csv")


def as_json(numbers: list[object]) -> pa.Table:
    held = "\n".join(json.dumps({"t": "x", "n": number}) for number in numbers)
    return read_json(pa.py_buffer(held.encode()), "events.jsonl")


@pytest.mark.parametrize("read", [as_csv, as_json])
@examples(300, 3_000)
@given(st.lists(st.one_of(INTEGERS, st.none()), min_size=1, max_size=5).filter(any))
def test_whole_numbers_are_exact_or_an_error(read, numbers):
    known = [number for number in numbers if number is not None]
    signed, unsigned = (all(low <= number < high for number in known) for low, high in ((-(1 << 63), 1 << 63), (0, 1 << 64)))
    if signed or unsigned:
        assert read(numbers)["n"].to_pylist() == numbers
        assert read(numbers).schema.field("n").type == (pa.int64() if signed else pa.uint64())
    else:
        with pytest.raises(EventError, match=r"column 'n', such as (-?\d+) in line (\d+); .*text") as told:
            read(numbers)
        found = re.search(r"such as (-?\d+) in line (\d+)", str(told.value))
        assert numbers[int(found[2]) - 1 - (read is as_csv)] == int(found[1])


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
    inside = b'{"v": 3, "o": {"v": 0.5}}\n{"v": 36893488147419103232, "o": {"v": 3}}'
    with pytest.raises(EventError, match=r"column 'v', such as 36893488147419103232 in line 2"):
        read_json(pa.py_buffer(inside), "events.jsonl")


def test_columns_of_one_name_keep_their_values():
    table = read_csv(pa.py_buffer(b"a,a\n1,12345678901234567890\n2,3\n"), "events.csv")
    assert [column.to_pylist() for column in table.columns] == [[1, 2], [12345678901234567890.0, 3.0]]


def test_a_column_of_any_name_is_found():
    names = ('quote " and \\', "ü", "n.*")
    for name in names:
        with pytest.raises(EventError, match=re.escape(f"column {name!r}, such as {1 << 70} in line 2")):
            read_json(pa.py_buffer(f'{{"t": 1}}\n{json.dumps({name: 1 << 70})}\n'.encode()), "events.jsonl")
        quoted = name.replace('"', '""')
        with pytest.raises(EventError, match=re.escape(f"column {name!r}, such as {1 << 70} in line 3")):
            read_csv(pa.py_buffer(f'"{quoted}",t\n1,2\n{1 << 70},2\n'.encode()), "events.csv")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_numbers_that_floats_do_not_tell_apart_are_no_one_key(tmp_path, suffix):
    rows = [{"ts": 1, "type": "A", "id": (1 << 64) - 2}, {"ts": 2, "type": "B", "id": (1 << 64) - 1}]
    path = tmp_path / f"events{suffix}"
    if suffix == ".csv":
        path.write_text("\n".join(["ts,type,id", *(",".join(map(str, row.values())) for row in rows)]))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    assert cep.match(path, "PATTERN SEQ(A a, B b) RETURN b.id AS id")["id"].to_pylist() == [(1 << 64) - 1]
    with pytest.raises(EventError, match=r"column 'id': .* not in range.*; cast the column to text"):
        cep.match(path, "PATTERN SEQ(A a, B b) WHERE [id]")
