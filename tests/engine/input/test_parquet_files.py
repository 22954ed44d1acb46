"""Row groups of Parquet that hold nothing of use are not read, and text is read as dictionaries: no answer shows it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset, fs, parquet

import gpu_cep as cep
from gpu_cep.engine.input import parquet_files
from gpu_cep.engine.input.near_groups import near_groups
from gpu_cep.engine.input.row_groups import RowGroups
from gpu_cep.engine.input.sources import source_of
from tests.conformance.test_untimed_events import holes
from tests.drawn.neighbours import neighbour_cases
from tests.drawn.queries import AFTER_MATCH, Case, trend_cases, whole_language
from tests.drawn.situations import situation_cases
from tests.effort import examples
from tests.engine.input.files import LEVELS, files_of, sifted_cases, told

CASES = st.one_of(whole_language(max_size=16), trend_cases(after_match=AFTER_MATCH), neighbour_cases(), situation_cases())
OUTPUTS = ("matches", "events", "indices", "count", "compressed")


pytestmark = pytest.mark.usefixtures("short_files_have_dictionaries")


@examples(80, 1_000)
@given(CASES, st.sampled_from(OUTPUTS), st.sampled_from(("error", "drop", None)), st.data())
def test_files_answer_as_the_table_does(case, output, nulls, data):
    events, options = case.events, {}
    if nulls is not None:
        events, _ = data.draw(holes(events, case.options.get("timestamp", "ts")))
        options["nulls"] = nulls
    many = data.draw(st.sampled_from((0, 1 << 20)))
    group, cut = data.draw(st.sampled_from((1, 1, 2, 3, 100))), data.draw(st.integers(0, events.num_rows))
    files = files_of(events, group, cut, data.draw(st.sampled_from(("file", "folder", "glob", "dataset"))))
    with patch.object(parquet_files, "_MANY_ROWS", many), files as (given, table):
        assert told(given, case, output=output, **options) == told(table, case, output=output, **options)


@examples(80, 1_000)
@given(sifted_cases(), st.sampled_from(OUTPUTS), st.sampled_from((1, 1, 2, 3)), st.sampled_from(("file", "folder", "glob", "dataset")))
def test_files_of_which_little_is_read_answer_as_the_table_does(case, output, group, form):
    with files_of(case.events, group, case.events.num_rows // 2, form) as (given, table):
        assert told(given, case, output=output) == told(table, case, output=output)


@pytest.fixture
def levels(tmp_path: Path) -> Callable[..., str]:
    """A function that writes the events in row groups of five, with columns replaced, and returns the file's name."""

    def written(**columns: pa.Array) -> str:
        table = LEVELS
        for name, values in columns.items():
            place = table.schema.get_field_index(name)
            table = table.append_column(name, values) if place < 0 else table.set_column(place, name, values)
        parquet.write_table(table, tmp_path / "levels.parquet", row_group_size=5)
        return str(tmp_path / "levels.parquet")

    return written


def groups_read(events: Any, text: str, **options: Any) -> tuple[int, int] | None:
    """How many row groups a query reads, of how many; it must answer as over the table."""
    profile = cep.Profile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cep.AbsentValueWarning)
        found = cep.match(events, text, output="indices", profile=profile, **options)
        source = source_of(events)
        assert source is not None
        assert found.equals(cep.match(source.read(source.schema.names), text, output="indices", **options))
    return profile.groups


@pytest.mark.parametrize(
    ("where", "read"),
    [
        ("a.x > 1 AND b.x > 1", 2),
        ("a.x > 1 AND b.x = 0", 3),
        ("a.x > 1", 4),  # b may be any B
        ("a.x IN (1, 2) AND b.x BETWEEN 1 AND 2", 2),
        ("NOT a.x <= 2 AND NOT (b.x < 3 OR b.x IS NULL)", 1),
        ("NOT (a.x < 2 AND a.s <> '00') AND b.x > 1", 3),
        ("2 <= a.x AND 1 < b.x", 2),
        ("(a.x = 0 OR a.s > '17') AND b.x = 0", 2),
        ("a.s < '04' AND b.s IN ('01', '11')", 2),
        ("a.x <> 0 AND b.x <> 0", 3),
        ("a.y > 3.5 AND b.y >= 3.5", 2),  # 3.5 stands in the last group but one
        ("a.y > 3.6 AND b.y > 3.6", 1),  # what no float of 32 bits is
        ("NOT a.y > 0 AND NOT b.y > 0", 4),  # which NaN satisfies
        ("a.y <> 0 AND b.y <> 0", 4),
        ("a.day >= DATE '2026-01-18' AND b.day > DATE '2026-01-08'", 3),
        ("a.at >= TIMESTAMP '2026-01-18 00:00:00Z' AND b.at > TIMESTAMP '2026-01-08 00:00:00Z'", 3),
        ("a.hole = 1 AND b.hole = 1", 3),
        ("a.hole IS NULL AND b.hole IS NULL", 1),
        ("a.x > 100000 AND b.x > 100000", 4),  # what no integer of 16 bits is
        ("a.x + 1 > 3 AND b.x > 1", None),  # may overflow
        ("a.big * 4 > 5 AND (a.x > 1 OR a.y > 9) AND b.x > 1", None),
        ("a.x > 1 AND b.x > 1 AND a.big + b.big > 1", 2),  # of matches alone
        ("a.x > 1 AND b.x > 1 AND a.wide < 9", None),  # may not fit a number of the engine's
    ],
)
def test_row_groups_are_left_out_by_their_statistics(levels, where, read):
    text = f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 30"
    given = levels()
    if "wide" in where or "big *" in where:
        outcome = told(given, Case(text, LEVELS))
        assert outcome == told(LEVELS, Case(text, LEVELS))
        assert outcome[0] is cep.EventError
    else:
        assert groups_read(given, text) == (None if read is None else (read, 4))


@pytest.mark.parametrize(
    ("pattern", "options", "read"),
    [
        ("SEQ(A a, B b) WHERE a.x = 3 WITHIN 30", {}, 4),
        ("SEQ(A a, B b) WHERE a.x = 3 WITHIN 2", {}, 2),
        ("SEQ(A a, B b) WHERE a.x = 3 WITHIN 2", {"prune": ["filter"]}, 4),
        ("SEQ(A a, B b) WHERE a.x = 0 AND b.x = 3 WITHIN 30", {}, 2),
        ("SEQ(A a, B b) WHERE a.x = 0 AND b.x = 3 WITHIN 5", {}, 0),  # far from each other
        ("SEQ(A a, OR(B b, N n)) WHERE a.x = 0 AND b.x = 3 AND n.x = 1 WITHIN 5", {}, 2),
        ("SEQ(A a, NOT(N n), B b) WHERE a.x = 3 WITHIN 2", {}, 2),
        ("SEQ(NOT(N n), A a) WHERE a.x = 3 WITHIN 2", {}, 4),  # one variable: nothing must be near it
        ("SEQ(NOT(N n), A a, B b) WHERE a.x = 3 WITHIN 6", {}, 3),
        ("SEQ(A a, B b) WHERE a.x = 3 WITHIN 2 seconds", {"timestamp": "at", "time_unit": "s"}, 1),
    ],
)
def test_row_groups_far_from_all_that_a_match_needs_are_left_out(levels, pattern, options, read):
    assert groups_read(levels(), f"PATTERN {pattern}", **options) == (read, 4)


@examples(200, 5_000)
@given(st.data(), st.sampled_from((np.int64, np.float64)))
def test_near_row_groups_are_those_within_a_window(data, kind):
    """Bounds of times are compared with numbers of any size."""
    lowest, highest = (-1e300, 1e300) if kind is np.float64 else (-(2**63), 2**63 - 1)
    time = st.one_of(st.integers(-9, 9), st.sampled_from((lowest, highest)))
    bounds = [sorted(pair) for pair in data.draw(st.lists(st.tuples(time, time), min_size=1, max_size=6))]
    length = data.draw(st.sampled_from((0, 1, 3, 2**63 - 1, 2**70)))
    marks = [np.array(data.draw(st.lists(st.booleans(), min_size=len(bounds), max_size=len(bounds)))) for _ in range(3)]
    number = np.arange(len(bounds))
    earliest, latest = np.array(bounds, kind).T
    groups = RowGroups(number, number, number, number, earliest, latest, number >= 0, number)

    def near(group, held):
        return any(max(bounds[group][0] - bounds[each][1], bounds[each][0] - bounds[group][1]) <= length for each in np.flatnonzero(held))

    expected = [(near(group, marks[0]) and near(group, marks[1])) or near(group, marks[2]) for group in number]
    assert near_groups(groups, length, [marks[:2], marks[2:]]).tolist() == expected


@pytest.mark.parametrize(
    ("values", "test", "read"),
    [
        ([5.0, math.nan], "<> 5", None),  # statistics know 5 alone
        ([0.1], "> 0.1", 4),  # with 32 bits it is more
        ([0.7], "< 0.7", 4),  # and this one is less
        ([-0.0], "= 0", 4),
        ([0.0], ">= 0", 4),
        ([1e300], "> 1e301", 4),  # with 32 bits both are infinite
    ],
)
def test_floats_compare_as_the_engine_compares_them(levels, values, test, read):
    with np.errstate(over="ignore"):
        column = pa.array((values * 20)[:20], pa.float64()).cast(pa.float32())
    given = levels(y=pa.array(column.to_numpy(), from_pandas=False))
    assert groups_read(given, f"PATTERN SEQ(a, b) WHERE a.y {test} AND b.y {test}") == (None if read is None else (read, 4))


def test_rows_are_numbered_as_in_the_input_where_some_have_no_time(levels):
    times = pa.array([None if number in (2, 11) else number for number in range(20)])
    assert groups_read(levels(ts=times), "PATTERN SEQ(a, b) WHERE a.x = 2 AND b.x = 2", nulls="drop") == (1, 4)


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("SEQ(a, b) WHERE a.x > 1 AND b.x > 1", {"strategy": "strict_contiguity"}),
        ("SEQ(a, b) WHERE a.x > 1 AND b.x > 1", {"strategy": "partition_contiguity"}),
        ("SEQ(a, b) WHERE a.x > 1 AND b.x > 1 WITHIN 8 EVENTS", {}),
        ("SEQ(a, b) WHERE a.x > 1 AND b.x > 1", {"prune": False}),
        ("SEQ(a, b) WHERE a.x > 1 AND b.x > 1", {"prune": ["chain"]}),
        ("SEQ(a, b) WHERE a.x > 1 AND b.x > 1", {"algorithm": "brute_force"}),
        ("SEQ(a, NOT(n), b) WHERE a.x > 1 AND b.x > 1", {}),
        ("SEQ(a, b) WHERE a.x > 1 AND b.x > 1 AND length(a.s) > 1", {}),
    ],
)
def test_all_are_read_where_events_that_nothing_binds_matter(levels, pattern, options):
    assert groups_read(levels(), f"PATTERN {pattern}", **options) is None


def test_negated_variables_are_asked_for(levels):
    assert groups_read(levels(), "PATTERN SEQ(a, NOT(n), b) WHERE a.x = 0 AND b.x = 3 AND n.x = 1") == (3, 4)


def test_all_are_read_for_a_graph_whose_nodes_number_all_streams(levels):
    given, case = levels(), Case("PARTITION BY s PATTERN SEQ(a) WHERE a.x > 1", LEVELS)
    profile = cep.Profile()
    assert told(given, case, output="compressed", profile=profile) == told(LEVELS, case, output="compressed")
    assert profile.groups is None


@pytest.mark.parametrize(
    "times", [pa.array([*range(19), None]), pa.array([*range(19), None], pa.float64()), pa.array([*range(20)], pa.float64())]
)
def test_all_are_read_if_a_timestamp_may_be_missing(levels, times):
    text = "PATTERN SEQ(a, b) WHERE a.x = 0 AND b.x = 0"
    given = levels(ts=times)
    table = parquet.read_table(given)
    assert told(given, Case(text, table)) == told(table, Case(text, table))
    assert groups_read(given, text, nulls="drop") == (1, 4)
    if not times.null_count:
        assert groups_read(given, text) == (4, 4)


def test_a_text_that_only_events_left_out_have_is_not_called_absent(levels):
    given = levels(type=pa.array(["A"] * 5 + ["C"] * 15))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cep.match(given, "PATTERN SEQ(C a, A b) WHERE a.x > 2 AND b.x > 2").num_rows
        assert not cep.match(given, "PATTERN SEQ(C a, A b) WHERE a.x > 9 AND b.x > 9").num_rows
    with pytest.warns(cep.AbsentValueWarning, match="no event has type 'B'; there are 'A', 'C'"):
        cep.match(given, "PATTERN SEQ(B a, C b) WHERE a.x > 2 AND b.x > 2")
    with pytest.warns(cep.AbsentValueWarning, match="no event has type 'B'; there are 'A', 'C'"):
        cep.match(given, "PATTERN SEQ(B a, C b) WHERE a.x > 9 AND b.x > 9")


def test_no_more_is_read_if_texts_are_there(levels, monkeypatch):
    given, reads = levels(), []
    reading = parquet_files._table
    monkeypatch.setattr(parquet_files, "_table", lambda *of: reads.append(of) or reading(*of))
    assert not cep.match(given, "PATTERN SEQ(B a, A b) WHERE a.x = 3 AND b.x = 3").num_rows
    assert len(reads) == 1


def test_small_row_groups_are_read_together(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_TOGETHER", 10)
    rows = iter(range(40))
    with parquet.ParquetWriter(tmp_path / "t.parquet", pa.schema([("ts", pa.int64())])) as file:
        for size in (4, 6, 4, 7, 11, 2, 2, 2):
            file.write_table(pa.table({"ts": [next(rows) for _ in range(size)]}))
    source = source_of(str(tmp_path / "t.parquet"))
    assert source is not None
    assert source.files is not None
    turns = list(source.files.read_in_turns(["ts"], None))
    assert [(turn.groups, turn.table.num_rows) for turn in turns] == [(2, 10), (1, 4), (1, 7), (1, 11), (3, 6)]
    assert pa.concat_tables([turn.table for turn in turns]).column("ts").to_pylist() == list(range(38))
    monkeypatch.setattr(parquet_files, "_BYTES_TOGETHER", 1)
    assert [turn.groups for turn in source.files.read_in_turns(["ts"], None)] == [1] * 8


def test_folders_named_by_values_are_left_out_by_their_names(tmp_path):
    table = LEVELS.append_column("shop", pa.array(["north", "south"] * 10))
    parquet.write_to_dataset(table, tmp_path / "shops", partition_cols=["shop"])
    text = "PATTERN SEQ(a, b) WHERE a.shop = 'south' AND b.shop = 'south'"
    assert groups_read(tmp_path / "shops", text) == (1, 2)
    assert groups_read(dataset.dataset(tmp_path / "shops", partitioning="hive"), text) == (1, 2)


def test_a_file_of_other_types_is_read_whole(tmp_path):
    parquet.write_table(LEVELS, tmp_path / "a.parquet", row_group_size=5)
    parquet.write_table(LEVELS.set_column(2, "x", LEVELS["x"].cast(pa.int64())), tmp_path / "b.parquet", row_group_size=5)
    assert groups_read(f"{tmp_path}/*.parquet", "PATTERN SEQ(a, b) WHERE a.x = 0 AND b.x = 0") == (5, 8)


def test_a_data_set_with_a_filter_of_its_own_is_read_as_it_is(levels):
    part = dataset.dataset(levels()).filter(dataset.field("ts") > 3)
    found = cep.match(part, "PATTERN SEQ(a, b) WHERE a.x = 3 AND b.x = 3", output="indices")
    assert found.equals(cep.match(part.to_table(), "PATTERN SEQ(a, b) WHERE a.x = 3 AND b.x = 3", output="indices"))


def test_row_groups_that_a_data_set_lacks_are_not_counted(levels):
    (whole,) = dataset.dataset(levels()).get_fragments()
    part = dataset.FileSystemDataset([whole.subset(row_group_ids=[1, 3])], whole.physical_schema, whole.format, whole.filesystem)
    assert groups_read(part, "PATTERN SEQ(a, b) WHERE a.x = 3 AND b.x = 3") == (1, 2)
    # the footer of a file also counts the rows of others
    assert source_of(part).files.count_rows() == len(part.to_table())


def test_explain_says_how_many_row_groups_were_read(levels):
    text = "PATTERN SEQ(a, b) WHERE a.x = 3 AND b.x = 3"
    assert "\n  row groups of Parquet read: 1 of 4" in str(cep.explain(levels(), text, run=True))
    assert "row groups" not in str(cep.explain(LEVELS, text, run=True))
    profile = cep.Profile()
    cep.match(levels(), text, profile=profile)
    assert str(profile).endswith("row groups of Parquet read: 1 of 4")
    both = cep.Profile()
    both.merge(profile)
    both.merge(profile)
    assert both.groups == (2, 8)


@pytest.fixture
def ten_groups(tmp_path, monkeypatch):
    """A file of ten row groups, whose text comes as dictionaries, and its rows."""
    monkeypatch.setattr(parquet_files, "_SOME_ROWS", 10)
    table = pa.table({"ts": np.arange(100), "type": np.array(["A", "B", "N"])[np.arange(100) ** 2 % 3]})
    parquet.write_table(table, tmp_path / "events.parquet", row_group_size=10)
    return tmp_path / "events.parquet", table


@pytest.mark.parametrize(("low", "high"), [(70, 90), (50, 90), (0, 20), (20, 100)])
def test_row_groups_keep_their_order_if_others_are_left_out(ten_groups, low, high):
    path, table = ten_groups
    text = f"PATTERN SEQ(A a, B b) WHERE a.ts >= {low} AND b.ts >= {low} AND a.ts < {high} AND b.ts < {high} WITHIN 3"
    profile = cep.Profile()
    found = cep.match(path, text, output="indices", profile=profile)
    assert profile.groups == ((high - low) // 10, 10)
    assert found.num_rows
    assert found.equals(cep.match(table, text, output="indices"))


@pytest.mark.parametrize("groups", [[7, 8], [5, 6, 7, 8], [2, 3]])
def test_a_data_set_of_some_row_groups_is_read_in_its_own_order(ten_groups, groups):
    """Arrow does not keep the order in which it is given row groups."""
    path, _ = ten_groups
    kind = dataset.ParquetFileFormat()
    fragment = kind.make_fragment(str(path), fs.LocalFileSystem(), row_groups=groups)
    given = dataset.FileSystemDataset([fragment], fragment.physical_schema, kind, fs.LocalFileSystem())
    text = "PATTERN SEQ(A a, B b) WHERE a.ts < 86 AND b.ts < 86 WITHIN 3"
    found = cep.match(given, text, output="indices")
    assert found.num_rows
    assert found.equals(cep.match(given.to_table(), text, output="indices"))


def test_files_in_memory_are_read(tmp_path):
    sink = pa.BufferOutputStream()
    parquet.write_table(LEVELS, sink, row_group_size=5)
    held = dataset.ParquetFileFormat().make_fragment(pa.py_buffer(sink.getvalue()))
    given = dataset.FileSystemDataset([held], held.physical_schema, held.format)
    assert groups_read(given, "PATTERN SEQ(a, b) WHERE a.x = 3 AND b.x = 3") == (1, 4)


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize(
    ("kind", "storage"),
    [(pa.uuid(), pa.array([b"a" * 16, None, None, b"b" * 16], pa.binary(16))), (pa.json_(), pa.array(["1", None, None, "2"])),
     (pa.bool8(), pa.array([1, None, None, 0], pa.int8()))],
    ids=["uuid", "json", "bool8"],
)  # fmt: skip
def test_values_whose_statistics_arrow_cannot_compare_are_null_or_not(kind, storage, group, tmp_path):
    events = pa.table({"ts": range(4), "id": pa.ExtensionArray.from_storage(kind, storage)})
    parquet.write_table(events, tmp_path / "events.parquet", row_group_size=group)
    for condition, rows in (("a.id IS NULL", [1, 2]), ("a.id IS NOT NULL AND a.ts > 0", [3]), ("NOT (a.id IS NULL)", [0, 3])):
        found = cep.match(tmp_path / "events.parquet", f"PATTERN a WHERE {condition}", output="indices")
        assert found["a"].to_pylist() == rows
