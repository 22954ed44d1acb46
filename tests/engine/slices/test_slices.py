"""Files that are matched slice by slice answer as the table does: the same rows, order, numbers, warnings and errors."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, dataset, parquet

import gpu_cep as cep
from gpu_cep.engine.input import grouped_files, parquet_files, readers
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.input.sources import Source
from gpu_cep.engine.input.time_cut import cut_by_number
from gpu_cep.engine.slices import in_order
from gpu_cep.engine.slices.budget import FileReading
from gpu_cep.engine.slices.in_order import bring_in_order, sample_times
from gpu_cep.engine.slices.loading import rows_at, rows_between
from gpu_cep.engine.slices.sliced_plan import reach_of
from gpu_cep.live import sliced_rows
from gpu_cep.queries import sliced_plans
from tests.conformance.test_untimed_events import holes
from tests.drawn.neighbours import neighbour_cases
from tests.drawn.queries import AFTER_MATCH, Case, trend_cases, whole_language
from tests.effort import examples
from tests.engine.input.files import files_of, sifted_cases, told

OUTPUTS = ("matches", "events", "indices", "count")
CASES = st.one_of(whole_language(max_size=16), trend_cases(after_match=AFTER_MATCH), neighbour_cases(), sifted_cases())


@contextmanager
def in_slices(number: int, rows: int = 3, *, sorts: bool = False) -> Iterator[list[int]]:
    """Let files be cut into at most so many slices, and gather how many each run has; `rows` are read at a time for counts.

    They are written in order first if that is asked for.
    """
    taken: list[int] = []

    def chosen(files: Any, plan: Any, memory: Any) -> FileReading:
        if sorts:
            timestamp = plan.query.column_name(plan.query.timestamp)
            files = bring_in_order(files, plan, sample_times(files, timestamp), 400, 5)
        cut = cut_by_number(files.groups, reach_of(plan), number)
        taken.append(len(cut.slices))
        return FileReading(files, cut, 0)

    with (
        patch.object(sliced_plans, "choose_cut", chosen),
        patch.object(sliced_rows, "choose_cut", chosen),
        patch.object(Source, "is_large", lambda source, _: source.files is not None),
        patch.object(parquet_files, "_SOME_ROWS", 1),
        patch.object(grouped_files, "_ROWS", rows),
    ):
        yield taken


def with_window(case: Case) -> Case:
    """The query with a window, without which it is not cut."""
    return case if "WITHIN" in case.text.upper() else Case(f"{case.text} WITHIN 3", case.events, case.options)


@examples(60, 2_000)
@given(CASES, st.sampled_from(OUTPUTS), st.sampled_from((None, *AFTER_MATCH)), st.integers(2, 8), st.data())
def test_slices_answer_as_the_table_does(case, output, after_match, number, data):
    case, options = with_window(case), {} if after_match is None else {"after_match": after_match}
    events = case.events
    if data.draw(st.booleans()):
        events = events.sort_by(case.options.get("timestamp", "ts"))
    nulls = data.draw(st.sampled_from((None, None, "error", "drop")))
    if nulls is not None and "nulls" not in case.options:
        events, _ = data.draw(holes(events, case.options.get("timestamp", "ts")))
        options["nulls"] = nulls
    case = Case(case.text, events, {name: value for name, value in case.options.items() if name not in options})
    group, cut = data.draw(st.sampled_from((1, 1, 2, 3))), data.draw(st.integers(0, events.num_rows))
    files = files_of(events, group, cut, data.draw(st.sampled_from(("file", "folder", "glob", "dataset"))))
    with files as (given_, table):
        expected = told(table, case, output=output, **options)
        with in_slices(number, sorts=data.draw(st.booleans())):
            assert told(given_, case, output=output, **options) == expected


@examples(30, 600)
@given(CASES, st.sampled_from(OUTPUTS), st.sampled_from(AFTER_MATCH), st.integers(2, 8), st.data())
def test_a_reader_gives_the_same_rows(case, output, after_match, number, data):
    case = with_window(case)
    case = Case(case.text, case.events, {name: value for name, value in case.options.items() if name != "after_match"})
    with files_of(case.events, data.draw(st.sampled_from((1, 2, 3))), 0, "file") as (path, table):
        expected = outcome(table, case, output=output, after_match=after_match)
        assert outcome(table, case, output=output, after_match=after_match, result="reader") == expected
        with in_slices(number):
            found = outcome(path, case, output=output, after_match=after_match, result="reader")
        assert found[0] == expected[0]
        assert sorted(found[1]) == sorted(expected[1])


def outcome(events: Any, case: Case, **options: Any) -> tuple[Any, Any]:
    """The schema and the rows that match() gives, as text, or the error that it, or reading, raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cep.AbsentValueWarning)
        try:
            found = cep.match(events, case.text, **case.options, **options)
            table = found.read_all() if isinstance(found, pa.RecordBatchReader) else found
        except cep.CepError as error:
            return type(error), str(error)
    return table.schema, list(map(repr, table.to_pylist()))


STEPS = pa.table({"ts": range(400), "type": ["A", "B"] * 200, "k": [0, 0, 1, 1] * 100, "x": [float(row) for row in range(400)]})
QUERY = "PATTERN SEQ(A a, B b) WITHIN 3"


@pytest.fixture
def steps(tmp_path: Path) -> str:
    parquet.write_table(STEPS, tmp_path / "steps.parquet", row_group_size=10)
    return str(tmp_path / "steps.parquet")


@pytest.fixture(autouse=True)
def _small_files_count() -> Iterator[None]:
    with patch.object(readers, "_MANY_ROWS", 0):
        yield


def test_a_run_holds_no_more_than_it_may(steps, monkeypatch):
    read: list[int] = []
    reading = parquet_files._chunks
    monkeypatch.setattr(parquet_files, "_chunks", lambda *of: read.append(reading(*of).num_rows) or reading(*of))
    profile = cep.Profile()
    found = cep.match(steps, QUERY, memory=8_000, output="indices", profile=profile)
    assert found.equals(cep.match(STEPS, QUERY, output="indices"))
    assert profile.slices is not None
    number, rows, of = profile.slices
    assert (number, of, sum(read)) == (len(read), 400, 400)
    assert rows > 400
    assert number > 5
    # 24 bytes a row for time, type and number
    assert max(read) <= 8_000 / 4 / 16
    assert str(profile).endswith(f"slices of time: {number}, which held {rows} rows of 400")
    both = cep.Profile()
    both.merge(profile)
    both.merge(profile)
    assert both.slices == (2 * number, 2 * rows, 800)


def test_what_fits_is_read_at_once(steps):
    profile = cep.Profile()
    cep.match(steps, QUERY, profile=profile)
    cep.match(steps, QUERY, memory="1MiB", profile=profile)
    cep.match(steps, "PATTERN SEQ(A a, B b)", memory="1MiB", profile=profile)
    assert profile.slices is None


@pytest.mark.parametrize(
    ("query", "options", "reason"),
    [
        ("PATTERN SEQ(A a, B b)", {}, "it cannot be answered by slices of time without a window"),
        ("PATTERN SEQ(A a, B b) WITHIN 4 EVENTS", {}, "with a window of a number of events"),
        (QUERY, {"output": "compressed"}, "with output='compressed'"),
        ("PATTERN SEQ(A a, B b) WITHIN 300", {}, "the window is long, or row groups are large"),
    ],
)
def test_what_cannot_be_cut_is_refused_if_it_does_not_fit(steps, query, options, reason):
    with pytest.raises(cep.UnsupportedError, match=reason) as caught:
        cep.match(steps, query, memory=8_000, **options)
    assert "needs about 1MiB for the events, more than memory=8,000 bytes" in str(caught.value)
    assert "hint: give memory='1MiB'" in str(caught.value)


def test_other_files_are_refused_if_they_do_not_fit(tmp_path):
    csv.write_csv(STEPS, tmp_path / "steps.csv")
    for events in (tmp_path / "steps.csv", dataset.dataset(tmp_path / "steps.csv", format="csv")):
        with pytest.raises(cep.UnsupportedError, match="only Parquet files are read in slices of time"):
            cep.match(events, QUERY, memory=8_000)
        assert cep.match(events, QUERY, memory="1MiB").num_rows == 200
    assert cep.match(STEPS, QUERY, memory=8_000).num_rows == 200


@pytest.mark.parametrize("wrong", [0, -1, True, "much", 1.5])
def test_a_wrong_size_is_refused(steps, wrong):
    with pytest.raises(cep.PatternError, match="memory must be a number of bytes"):
        cep.match(steps, QUERY, memory=wrong)


@pytest.mark.parametrize("keys", [None, "k"])
def test_bounds_hold_for_counts_of_slices(steps, keys):
    options = {"memory": 8_000, "after_match": "skip_past_last", "output": "count", "partition_by": keys}
    whole = cep.match(STEPS, QUERY, after_match="skip_past_last", output="count", partition_by=keys)
    kept = sum(whole["count"].to_pylist())
    assert cep.match(steps, QUERY, max_matches=kept, **options).equals(whole)
    with pytest.raises(cep.MatchLimitExceeded, match=f"more than max_matches={kept - 1:,} matches"):
        cep.match(steps, QUERY, max_matches=kept - 1, **options)


def test_bounds_hold_over_all_slices(steps):
    with pytest.raises(cep.MatchLimitExceeded, match="max_matches=150"):
        cep.match(steps, QUERY, memory=8_000, max_matches=150)
    with pytest.raises(cep.MatchLimitExceeded, match="more than max_matches=50 matches"):
        cep.match(steps, QUERY, memory=8_000, max_matches=50, after_match="skip_past_last")
    kept = cep.match(STEPS, QUERY, after_match="skip_past_last").num_rows
    found = cep.match(steps, QUERY, memory=8_000, max_matches=kept, after_match="skip_past_last", output="events")
    assert found.equals(cep.match(STEPS, QUERY, after_match="skip_past_last", output="events"))


def test_an_error_in_a_late_slice_is_raised_by_reading(tmp_path):
    path = tmp_path / "holes.parquet"
    table = STEPS.set_column(3, "x", pa.array([*range(399), 2**63 - 1]))
    parquet.write_table(table, path, row_group_size=10)
    query = "PATTERN SEQ(A a, B b) WHERE b.x + 1 > 5 WITHIN 3"
    with pytest.raises(cep.EventError) as expected:
        cep.match(table, query)
    reader = cep.match(path, query, memory=8_000, result="reader")
    assert reader.read_next_batch().num_rows
    with pytest.raises(cep.EventError) as caught:
        reader.read_all()
    assert str(caught.value) == str(expected.value)
    assert "at input row 399" in str(caught.value)


def test_a_file_that_is_cut_short_under_way_is_named(steps):
    reader = cep.match(steps, QUERY, memory=8_000, result="reader")
    assert reader.read_next_batch().num_rows
    Path(steps).write_bytes(Path(steps).read_bytes()[:40])
    with pytest.raises(cep.EventError, match=r"cannot read .*steps\.parquet"):
        reader.read_all()


def test_a_missing_time_is_an_error_of_all_events(tmp_path):
    shuffled = [float(number * 7 % 400) for number in range(399)]
    for times in ([*range(399), None], [*map(float, range(399)), math.nan], [*shuffled, math.nan]):
        path = tmp_path / "holes.parquet"
        parquet.write_table(STEPS.set_column(0, "ts", pa.array(times)), path, row_group_size=10)
        with pytest.raises(cep.EventError, match=r"timestamp column 'ts' holds 1 (NULL|NaN), of 400 events"):
            cep.match(path, QUERY, memory=8_000)


def test_bound_events_take_memory(steps):
    profile = cep.Profile()
    reader = cep.events(steps, partition_by="k").match(QUERY, memory=8_000, result="reader", profile=profile)
    assert reader.read_all().num_rows == 200
    assert profile.slices is not None


@pytest.mark.parametrize("number", [7, 14, 40])
def test_a_match_waits_for_those_of_later_slices_that_end_before_it(tmp_path, number):
    """Of two nested matches the inner one ends first and is kept, though the outer one begins in an earlier slice."""
    times = [6 * pair + step for pair in range(10) for step in range(4)]
    nested = pa.table({"ts": times, "type": list("AABB") * 10, "x": [1, 2, 2, 1] * 10})
    parquet.write_table(nested, tmp_path / "nested.parquet", row_group_size=1)
    query, options = "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 4", {"after_match": "skip_past_last", "output": "indices"}
    with in_slices(number) as taken:
        found = cep.match(tmp_path / "nested.parquet", query, **options)
    assert taken == [number]
    assert found.to_pylist() == [{"a": 4 * pair + 1, "b": 4 * pair + 2} for pair in range(10)]


SHUFFLED = STEPS.take(pa.array(np.random.default_rng(5).permutation(400)))


@pytest.fixture
def shuffled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """Events in no order of time, and the folder in which temporary files are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(in_order, "_FEW_ROWS", 4)
    parquet.write_table(SHUFFLED, tmp_path / "shuffled.parquet", row_group_size=20)
    return str(tmp_path / "shuffled.parquet"), folder


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("after_match", AFTER_MATCH)
def test_files_in_no_order_are_written_in_order_first(shuffled, output, after_match):
    path, folder = shuffled
    profile, options = cep.Profile(), {"output": output, "after_match": after_match, "partition_by": "k"}
    reader = cep.match(path, QUERY, memory=16_000, result="reader", profile=profile, **options)
    assert list(folder.iterdir())
    reader.read_all()
    del reader
    assert not list(folder.iterdir())
    assert cep.match(path, QUERY, memory=16_000, **options).equals(cep.match(SHUFFLED, QUERY, **options))
    assert profile.slices is not None
    assert profile.slices[0] > 2
    assert not list(folder.iterdir())


def test_temporary_files_are_removed_after_an_error(shuffled):
    path, folder = shuffled
    with pytest.raises(cep.MatchLimitExceeded):
        cep.match(path, QUERY, memory=16_000, max_matches=3)
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_is_named(shuffled, monkeypatch):
    path, folder = shuffled
    monkeypatch.setattr(in_order, "_write", lambda *_: _raise(OSError(28, "No space left on device")))
    with pytest.raises(cep.EventError, match=rf"cannot write the events in order of time to {folder}.*: No space left on device; .*TMPDIR"):
        cep.match(path, QUERY, memory=16_000)
    assert not list(folder.iterdir())


def _raise(error: Exception) -> None:
    raise error


def test_a_window_that_holds_too_much_is_refused_before_files_are_written(shuffled):
    path, folder = shuffled
    with pytest.raises(cep.UnsupportedError, match="the window is long"):
        cep.match(path, "PATTERN SEQ(A a, B b) WITHIN 300", memory=16_000)
    assert not list(folder.iterdir())


def test_explain_says_how_files_are_read(steps, tmp_path):
    profile = cep.Profile()
    ran = cep.explain(steps, QUERY, memory=8_000, run=True, profile=profile)
    assert ran.counts is not None
    assert ran.counts["matches"] == 200
    assert profile.slices is not None
    number, rows, _ = profile.slices
    slices = f"files are read in {number} slices of time of at most 1MiB, which hold {rows / 400:.2f} × the rows"
    at_once = "the events would take about 1MiB at once, of 1MiB that they may take"
    assert ran.source == f"{slices}: {at_once}"
    explained = cep.explain(steps, QUERY, memory=8_000)
    assert f"source     {ran.source}" in str(explained)
    assert explained.counts is None
    assert cep.events(steps).explain(QUERY, memory=8_000).source == explained.source
    whole = cep.explain(steps, QUERY, memory="1MiB")
    assert whole.source == "files are read at once: that takes about 1MiB, of 1MiB that they may take"
    unbounded = cep.explain(steps, "PATTERN SEQ(A a, B b)", memory="1MiB")
    assert unbounded.source == "files are read at once: the query cannot be answered by slices of time without a window"
    assert cep.explain(STEPS, QUERY, memory=8_000).source == ""
    with pytest.raises(cep.UnsupportedError, match="the window is long"):
        cep.explain(steps, QUERY.replace("3", "300"), memory=8_000)


def test_explain_writes_nothing_in_order(tmp_path, monkeypatch):
    shuffled = STEPS.take(np.random.default_rng(1).permutation(400))
    parquet.write_table(shuffled, tmp_path / "shuffled.parquet", row_group_size=10)
    written: list[int] = []
    monkeypatch.setattr(in_order, "_write", lambda *_: written.append(1))
    explained = cep.explain(tmp_path / "shuffled.parquet", QUERY, memory=8_000)
    assert explained.source.startswith("files are written in the order of time first, in ")
    assert not written


@given(st.lists(st.integers(-3, 9) | st.floats(-3, 9), max_size=12), st.integers(-4, 10), st.integers(-4, 10), st.booleans(), st.data())
def test_rows_between_two_times(ticks, low, high, ascending, data):
    """Rows whose times ascend are one slice, which holds what a comparison of each time finds."""
    times = np.array(sorted(ticks) if ascending else ticks, np.float64 if any(isinstance(each, float) for each in ticks) else np.int64)
    low, high = min(low, high), max(low, high)
    borders = data.draw(st.lists(st.integers(0, len(times)), max_size=3).map(sorted))
    near = rows_between(Pieces.of(np.split(times, borders)), low, high)
    found = rows_at(pa.table({"ts": times}), near)["ts"].to_numpy()
    np.testing.assert_array_equal(found, times[(times >= low) & (times <= high)])
    np.testing.assert_array_equal(times[near], found)
    assert isinstance(near, slice) or not ascending


def test_pieces_that_ascend_need_not_follow_each_other():
    near = rows_between(Pieces.of([np.array([3, 4]), np.array([], np.int64), np.array([1, 2])]), 2, 3)
    assert np.asarray(near).tolist() == [True, False, False, True]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_count_shows_equal_keys_alike_however_events_are_divided(tmp_path: Path, kind: pa.DataType) -> None:
    keys = pa.array([-0.0, 0.0, None, -0.0] * 10, kind)
    parquet.write_table(pa.table({"ts": range(40), "y": keys}), tmp_path / "events.parquet", row_group_size=3)
    query = "PARTITION BY y PATTERN SEQ(a, b) WITHIN 4"
    whole = cep.match(parquet.read_table(tmp_path / "events.parquet"), query, output="count")
    assert [str(key) for key in whole.column("y").to_pylist()] == ["None", "0.0"]
    with in_slices(4):
        assert repr(cep.match(str(tmp_path / "events.parquet"), query, output="count").to_pylist()) == repr(whole.to_pylist())
