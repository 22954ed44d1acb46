"""Parquet files that cuDF reads to the device, with a stand-in that reads by Arrow: the same matches as by Arrow."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset, fs, parquet

import gpu_cep as cep
from gpu_cep.engine.input import parquet_files
from gpu_cep.engine.input.device import gpu_files
from gpu_cep.engine.input.device.gpu_files import GpuFiles
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.sources import source_of
from tests.conformance.test_untimed_events import holes
from tests.drawn.queries import AFTER_MATCH, Case, whole_language
from tests.effort import examples
from tests.engine.input.files import files_of, sifted_cases, told
from tests.engine.slices.test_slices import OUTPUTS as SLICED
from tests.engine.slices.test_slices import in_slices, with_window
from tests.gpu import cudf_stand_in
from tests.gpu.foreign import strict_if_simulated

LEAST = np.iinfo(np.int64).min
ROWS = 60
TABLE = pa.table(
    {
        "ts": pa.array(np.arange(ROWS) * 7 % ROWS).cast(pa.timestamp("us", "UTC")),
        "type": [(None if e % 13 == 5 else "ABC"[e % 3]) for e in range(ROWS)],
        "large": pa.array([f"{e % 5}" for e in range(ROWS)], pa.large_string()),
        "at": pa.array([None if e % 7 == 0 else LEAST + e % 5 for e in range(ROWS)]).cast(pa.timestamp("ns")),
        "ms": pa.array(range(ROWS)).cast(pa.timestamp("ms", "Europe/Berlin")),
        "b": [None if e % 11 == 0 else e % 3 == 0 for e in range(ROWS)],
        **{f"i{width}": pa.array([None if e % 5 == 0 else e for e in range(ROWS)], f"int{width}") for width in (8, 16, 32, 64)},
        **{f"u{width}": pa.array(range(ROWS), f"uint{width}") for width in (8, 16, 32, 64)},
        "f4": pa.array([float("nan") if e % 5 == 0 else None if e % 5 == 1 else e / 4 for e in range(ROWS)], pa.float32()),
        "f8": pa.array([-0.0 if e % 2 else e / 3 for e in range(ROWS)]),
        "day": pa.array(range(ROWS), pa.int32()).cast(pa.date32()),
        "word": [(None if e % 17 == 2 else f"word {e % 4}") for e in range(ROWS)],
        "code": pa.array([f"{e % 4}" for e in range(ROWS)]).dictionary_encode(),
        "a.b": range(ROWS),
        "list": [[e] for e in range(ROWS)],
        "money": pa.array(range(ROWS)).cast(pa.decimal128(19)),
        "none": pa.nulls(ROWS),
    }
)
# datetime has no nanoseconds
INTEGERS = pa.schema([field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field for field in TABLE.schema])
BY_ARROW = ["day", "word", "code", "a.b", "list", "money", "none"]
PATTERN = "PATTERN SEQ(A a, B b) WITHIN 9 microseconds"


@pytest.fixture(scope="module")
def reads():
    return []


@pytest.fixture(scope="module", autouse=True)
def device(device, reads):
    found = strict_if_simulated(device)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gpu_cep_kernels.device.selection._find_device", lambda: found)
        patched.setitem(sys.modules, "cudf", cudf_stand_in.module())
        patched.setitem(sys.modules, "pylibcudf", cudf_stand_in.pylibcudf_module(found, reads))
        yield found


@pytest.fixture
def path(tmp_path):
    parquet.write_table(TABLE, tmp_path / "events.parquet", row_group_size=7, use_dictionary=["word"])
    return str(tmp_path / "events.parquet")


@examples(10, 200)
@given(st.one_of(whole_language(max_size=12), sifted_cases()), st.sampled_from(("matches", "events", "indices", "count")), st.data())
def test_the_same_matches_as_by_arrow(case, output, data):
    group, form = data.draw(st.sampled_from((1, 2, 3, 100))), data.draw(st.sampled_from(("file", "folder", "glob", "dataset")))
    files = files_of(case.events, group, case.events.num_rows // 2, form, data.draw(st.booleans()))
    with patch.object(parquet_files, "_SOME_ROWS", 1), files as (files, _):
        assert told(cep.gpu_files(files), case, output=output, engine="gpu") == told(files, case, output=output)


@examples(15, 400)
@given(st.one_of(whole_language(max_size=12), sifted_cases()), st.sampled_from(SLICED), st.sampled_from(AFTER_MATCH), st.data())
def test_the_same_matches_in_slices(case, output, after_match, data):
    case = with_window(case)
    case = Case(case.text, case.events, {name: value for name, value in case.options.items() if name != "after_match"})
    options, events = {"output": output, "after_match": after_match}, case.events
    nulls = data.draw(st.sampled_from((None, "error", "drop")))
    if nulls is not None and "nulls" not in case.options:
        events, _ = data.draw(holes(events, case.options.get("timestamp", "ts")))
        options["nulls"] = nulls
    group, form = data.draw(st.sampled_from((1, 2, 3))), data.draw(st.sampled_from(("file", "folder", "dataset")))
    with files_of(events, group, events.num_rows // 2, form, data.draw(st.booleans())) as (files, _):
        expected = told(files, case, **options)
        with in_slices(data.draw(st.integers(2, 8))):
            assert told(cep.gpu_files(files), case, engine="gpu", **options) == expected


def test_the_same_columns_as_by_arrow(path):
    part = cep.gpu_files(path).source.read_part(TABLE.column_names, None)
    expected = source_of(path).read(TABLE.column_names)
    assert isinstance(part.table, ResidentTable)
    assert part.table.schema.equals(expected.schema)
    # NaN equals NaN, and -0.0 is not 0.0
    assert repr(part.table.to_arrow().cast(INTEGERS).to_pylist()) == repr(expected.cast(INTEGERS).to_pylist())
    assert part.schema.equals(expected.schema)
    assert [name for name, column in part.table.columns.items() if isinstance(column, pa.ChunkedArray)] == BY_ARROW


def test_the_least_time_is_no_null(path):
    query = "PATTERN SEQ(a, b) WHERE a.at < b.at AND b.at IS NOT NULL WITHIN 2 microseconds RETURN a.at AS earlier, b.at AS later"
    found, expected = (cep.match(files, query, engine=engine) for files, engine in ((cep.gpu_files(path), "gpu"), (path, "cpu")))
    assert found.num_rows > 0
    assert found.equals(expected)


def test_who_reads_is_told(path):
    profile = cep.Profile()
    query = "PATTERN SEQ(A a, B b) WHERE a.day < b.day AND a.word <> b.word WITHIN 9 microseconds RETURN a.i8"
    cep.match(cep.gpu_files(path), query, profile=profile)
    who = "cuDF reads ts, type, i8 to the card; Arrow reads day (cuDF has no such type: date32[day]), word (it is text in dictionaries"
    assert who in str(profile)
    assert who in str(cep.explain(cep.gpu_files(path), query, run=True))


def test_row_groups_that_hold_nothing_are_not_read(tmp_path, reads):
    path = str(tmp_path / "types.parquet")
    parquet.write_table(pa.table({"ts": range(12), "type": [*"AAACCCCCCBBB"]}), path, row_group_size=3, use_dictionary=False)
    reads.clear()
    found = cep.match(cep.gpu_files(path), "PATTERN SEQ(A a, B b) WITHIN 8", output="indices", engine="gpu")
    assert found.to_pylist() == [{"a": 1, "b": 9}, {"a": 2, "b": 9}]
    assert reads == [(["ts", "type"], [[0, 3]])]


def test_files_that_differ(tmp_path):
    files = [str(tmp_path / "0.parquet"), str(tmp_path / "1.parquet")]
    for number, types in enumerate((pa.array(["A"]), pa.array(["B"]).dictionary_encode())):
        named = pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": str(number + 7).encode()})
        columns = {"ts": [number], "type": types, "x": [1], "id": [2], f"other {number}": ["x"]}
        table = pa.table(columns)
        parquet.write_table(table.cast(table.schema.set(3, named)), files[number], use_dictionary=False)
    part = cep.gpu_files(files).source.read_part(["ts", "type", "x", "id"], None)
    assert part.told.startswith("cuDF reads ts, x to the card; Arrow reads type (it is ")
    assert part.told.endswith("id (files describe it unlike each other)")
    found, expected = (cep.match(each, "PATTERN SEQ(A a, B b) WITHIN 1") for each in (cep.gpu_files(files), files))
    assert found.num_rows == 1
    assert found.equals(expected)


UNREAD = "cuDF cannot read columns ts, type of .*events.parquet: page 3; give the path itself"
LIBCUDF = (RuntimeError, ValueError, TypeError, OSError, IndexError, OverflowError, ArithmeticError)


@pytest.mark.parametrize(
    ("step", "fault", "error", "message"),
    [
        *(("load_row_groups", fault, cep.EventError, UNREAD) for fault in LIBCUDF),
        ("load_row_groups", MemoryError, cep.UnsupportedError, r"out of memory for columns ts, type of .*: page 3\n.*give the path itself"),
        ("open_series", NotImplementedError, cep.EventError, "events: cannot read .*events.parquet: page 3"),
    ],
)
def test_what_cudf_says_is_told(path, step, fault, error, message):
    files = cep.gpu_files(path)
    with patch.object(gpu_files, step, side_effect=fault("page 3")):
        with pytest.raises(error, match=message):
            cep.match(files, PATTERN, output="count")
        with in_slices(3), pytest.raises(error, match=message):
            cep.match(files, PATTERN, output="count")


@pytest.mark.parametrize(
    ("values", "options", "reason"),
    [
        ([1, 2], {"compression": "brotli"}, "compressed by BROTLI"),
        ([1, 2], {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}, "encoded by DELTA_BINARY_PACKED"),
        (["long " * 9] * 2, {}, "text in dictionaries, which cuDF would write out"),
        (["long " * 9] * 2, {"version": "1.0"}, "text in dictionaries, which cuDF would write out"),
    ],
)
def test_some_columns_are_read_by_arrow(tmp_path, values, options, reason):
    parquet.write_table(pa.table({"x": values}), tmp_path / "x.parquet", **options)
    part = cep.gpu_files(str(tmp_path / "x.parquet")).source.read_part(["x"], None)
    assert part.told == f"Arrow reads x (it is {reason})"
    assert part.table.column(0).to_pylist() == values


def test_a_type_that_cudf_reads_otherwise_is_noticed(path):
    with (
        patch.object(cudf_stand_in, "type_in_cudf", lambda kind: pa.int64() if kind == pa.int8() else kind),
        pytest.raises(cep.EventError, match="column 'i8': cuDF read int64, where the files have int8"),
    ):
        cep.gpu_files(path).source.read_part(["i8"], None)


def test_rows_that_are_missing_are_noticed(path):
    read = gpu_files.load_row_groups
    fewer = patch.object(gpu_files, "load_row_groups", lambda paths, groups, columns: read(paths, [own[1:] for own in groups], columns))
    with fewer, pytest.raises(cep.EventError, match="column 'ts': cuDF read 53 rows of 60"):
        cep.gpu_files(path).source.read_part(["ts"], None)


@pytest.fixture(params=["free", "allowed by gpu_memory"])
def bounded(request, device, monkeypatch):
    """Return how to bound the card's memory for a call: by what is free, or by an option."""

    def bound(most):
        if request.param != "free":
            return {"gpu_memory": most}, request.param
        monkeypatch.setattr(type(device), "free_memory", lambda _: most)
        return {}, request.param

    return bound


def test_files_that_do_not_fit(path, bounded):
    options, left = bounded(1_079)
    situations = "DEFINE x AS i8 > 3, y AS i8 < 9 PATTERN x before y WITHIN 9 microseconds"
    message = rf"takes about 1,080 bytes of the card, of which 1,079 are {left}\n.*give the path itself"
    with pytest.raises(cep.UnsupportedError, match=message):
        cep.match(cep.gpu_files(path), situations, engine="cpu", output="count", **options)


def test_slices_that_do_not_fit(path, bounded):
    options, left = bounded(150)
    with in_slices(3) as slices, pytest.raises(cep.UnsupportedError, match=f"of the card, of which 150 are {left}"):
        cep.match(cep.gpu_files(path), PATTERN, engine="cpu", **options)
    assert slices[0] > 1


def test_files_that_do_not_fit_are_read_in_slices(tmp_path, reads, bounded):
    path, rows = str(tmp_path / "ordered.parquet"), 200
    events = pa.table({"ts": range(rows), "type": [*"ABC"] * 66 + ["A", "B"], "x": np.arange(rows)})
    parquet.write_table(events, path, row_group_size=5, use_dictionary=False)
    options, _ = bounded(4_000)
    pattern, profile = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 4", cep.Profile()
    reads.clear()
    found = cep.match(cep.gpu_files(path), pattern, engine="cpu", output="indices", profile=profile, **options)
    assert found.equals(cep.match(path, pattern, engine="cpu", output="indices"))
    assert profile.slices[0] == len(reads) > 3
    assert profile.source == "cuDF reads ts, type, x to the card"
    assert max(len(groups) for _, (groups,) in reads) < 10
    told = str(cep.explain(cep.gpu_files(path), pattern, engine="cpu", **options))
    assert "slices of time of at most" in told
    assert "; cuDF reads ts, type, x to the card" in told


@pytest.mark.parametrize("hole", [float("nan"), None])
def test_times_that_are_missing_in_slices(tmp_path, hole):
    # a file without statistics is read for each slice
    for number, times in enumerate(([float(time) for time in range(8)], [hole, 9.0])):
        events = pa.table({"ts": pa.array(times, pa.float64()), "type": [*"AB"] * (len(times) // 2)})
        parquet.write_table(events, tmp_path / f"{number}.parquet", row_group_size=2, write_statistics=number == 0)
    case = Case("PATTERN SEQ(A a, B b) WITHIN 1", pa.table({}), {})
    with in_slices(3) as slices:
        found, expected = told(cep.gpu_files(tmp_path), case, engine="gpu"), told(tmp_path, case)
    assert slices[0] > 1
    assert found == expected
    assert "of 10 events" in found[1]


def test_without_an_order_of_time_there_are_no_slices(tmp_path):
    path = str(tmp_path / "shuffled.parquet")
    parquet.write_table(pa.table({"ts": np.arange(4_000) * 1_237 % 4_000, "type": [*"AB"] * 2_000}), path, row_group_size=50)
    with pytest.raises(cep.UnsupportedError, match=r"in no order of time, in which slices could be read\n.*give the path itself"):
        cep.match(cep.gpu_files(path), "PATTERN SEQ(A a, B b) WITHIN 4", engine="cpu", gpu_memory=100_000)


def test_files_that_change_are_noticed(path):
    files = cep.gpu_files(path)
    parquet.write_table(TABLE.slice(1), path, row_group_size=7)
    with pytest.raises(cep.EventError, match="replaced, changed or deleted"):
        files.source.read_part(["ts"], None)


def test_what_cannot_be_read_to_the_card(tmp_path, path):
    (tmp_path / "x.csv").write_text("ts\n1\n")
    with pytest.raises(cep.EventError, match="expected paths of Parquet files"):
        cep.gpu_files(str(tmp_path / "x.csv"))
    there = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    with pytest.raises(cep.UnsupportedError, match=r"it is not a file of this machine\n.*give the path itself"):
        cep.gpu_files(dataset.dataset(Path(path).name, filesystem=there))
    for call in (cep.match, cep.explain):
        with pytest.raises(cep.UnsupportedError, match="memory= is not supported with gpu_files"):
            call(cep.gpu_files(path), PATTERN, memory="1GB")
    with pytest.raises(cep.UnsupportedError, match="not supported with algorithm='brute_force'"):
        cep.match(cep.gpu_files(path), PATTERN, algorithm="brute_force")
    with pytest.raises(cep.EventError, match="cannot read GpuFiles; match and explain take it"):
        cep.match_all(cep.gpu_files(path), {"p": PATTERN})


def test_without_cudf(path, monkeypatch):
    assert isinstance(cep.gpu_files(path), GpuFiles)
    monkeypatch.setitem(sys.modules, "cudf", None)
    with pytest.raises(cep.EngineUnavailable, match=r"gpu_files\(\) is not available: .*cudf"):
        cep.gpu_files(path)
