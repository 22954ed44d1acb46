"""MATCH_RECOGNIZE over files in slices of time, and over batches, returns the rows that it returns over all rows at once."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyarrow import csv

import gpu_cep as cep
from gpu_cep.errors import CepError, EventError, UnsupportedError
from tests.api.streams.test_row_streams import rows_of, streamed
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses
from tests.engine.input.files import files_of
from tests.engine.slices.test_slices import in_slices

CLAUSE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES S.x AS began, count(B.x) AS rises {} PATTERN (S B+) {}
DEFINE B AS x > PREV(x))"""
WITHIN = "WITHIN 20"


def timed(drawn: Drawn, chance: random.Random) -> pa.Table:
    times = np.cumsum([chance.choice([0, 0, 1, 2, 5]) for _ in range(drawn.table.num_rows)])
    return drawn.table.append_column("ts", pa.array(times, pa.int64()))


def outcome(events: Any, clause: str, **options: Any) -> tuple[type, str] | pa.Table:
    try:
        found = cep.match(events, clause, threads=1, **options)
        return found.read_all() if isinstance(found, pa.RecordBatchReader) else found
    except UnsupportedError:
        raise
    except CepError as fault:
        return type(fault), str(fault).splitlines()[0]


@given(
    clauses(ALONE + BESIDE + READING), st.randoms(use_true_random=False), st.integers(2, 6), st.integers(1, 3), st.booleans(), st.booleans()
)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_slices_return_what_the_table_does(
    drawn: Drawn, chance: random.Random, number: int, group: int, unordered: bool, sorts: bool
) -> None:
    clause, table = streamed(drawn), timed(drawn, chance)
    assume(table.num_rows)
    if unordered:
        table = table.take(pa.array(chance.sample(range(len(table)), len(table))))
    with files_of(table, group, 0, "file") as (path, events):
        expected = outcome(events, clause)
        with in_slices(number, sorts=sorts):
            try:
                found = outcome(path, clause, memory=1)
                read = outcome(path, clause, memory=1, result="reader")
            except UnsupportedError:
                assume("NEXT" not in clause and "$" not in clause and "EVENTS" not in clause)
                raise
    if not isinstance(expected, pa.Table):
        assert isinstance(found, tuple)
        assert found[0] is expected[0]
        return
    assert isinstance(found, pa.Table)
    assert found.schema.equals(expected.schema)
    # NaN is equal to no value, but its text is
    assert list(map(repr, found.to_pylist())) == list(map(repr, expected.to_pylist()))
    assert isinstance(read, pa.Table)
    assert rows_of(read) == rows_of(expected)


@given(clauses(ALONE + BESIDE), st.randoms(use_true_random=False), st.integers(1, 4))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_batches_return_what_the_table_does(drawn: Drawn, chance: random.Random, rows: int) -> None:
    clause, table = streamed(drawn), timed(drawn, chance)
    expected = outcome(table, clause)
    assume(isinstance(expected, pa.Table))
    read = outcome(table.to_reader(rows), clause, result="reader")
    assert isinstance(read, pa.Table)
    assert read.schema.equals(expected.schema)
    assert rows_of(read) == rows_of(expected)


def made(size: int) -> pa.Table:
    chance = np.random.default_rng(5)
    return pa.table({"ts": np.arange(size), "k": chance.choice(list("abc"), size), "x": chance.integers(0, 9, size)})


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(made(20_000), tmp_path / "rows.parquet", row_group_size=500)
    return str(tmp_path / "rows.parquet")


def test_memory_bounds_what_is_read(path: str) -> None:
    clause, profile = CLAUSE.format("", WITHIN), cep.Profile()
    found = cep.match(path, clause, memory="200KiB", profile=profile)
    assert found.equals(cep.match(made(20_000), clause))
    assert profile.slices is not None
    assert profile.slices[0] > 3


@pytest.mark.parametrize("run", [False, True])
def test_the_explanation_says_how_files_are_read(path: str, run: bool) -> None:
    told = str(cep.explain(path, CLAUSE.format("", WITHIN), memory="200KiB", run=run))
    assert re.search(r"^source     files are read in \d+ slices of time of at most 1MiB", told, re.MULTILINE)
    assert ("ran        rows " in told) == run
    assert "source" not in str(cep.explain(path, CLAUSE.format("", WITHIN), memory="200MB"))


def test_a_reader_gives_rows_before_all_batches_are_read() -> None:
    taken = []

    def batches() -> Any:
        for batch in made(1_000_000).to_batches(10_000):
            taken.append(1)
            yield batch

    reader = cep.match(pa.RecordBatchReader.from_batches(made(0).schema, batches()), CLAUSE.format("", WITHIN), result="reader")
    assert reader.read_next_batch().num_rows
    assert len(taken) < 20


@pytest.mark.parametrize(
    ("within", "more", "told"),
    [
        ("", "", "little memory= of MATCH_RECOGNIZE without WITHIN"),
        ("WITHIN 5 EVENTS", "", "WITHIN a number of rows"),
        (WITHIN, ", NEXT(B.x) AS behind", r"little memory= with NEXT"),
        ("WITHIN 1000000", "", r"the query needs about .* more than memory="),
    ],
)
def test_what_needs_all_rows_says_so(path: str, within: str, more: str, told: str) -> None:
    with pytest.raises(UnsupportedError, match=told):
        cep.match(path, CLAUSE.format(more, within), memory="200KiB")
    # they fit
    assert cep.match(path, CLAUSE.format(more, within), memory="200MB").num_rows


def test_rows_without_a_time_are_an_error(tmp_path: Path) -> None:
    rows = made(4_000)
    holed = rows.set_column(0, "ts", pa.array([None, *range(1, 4_000)], pa.int64()))
    pq.write_table(holed, tmp_path / "rows.parquet", row_group_size=200)
    with pytest.raises(EventError, match="'ts' holds 1 NULL"):
        cep.match(str(tmp_path / "rows.parquet"), CLAUSE.format("", WITHIN), memory="40KiB")


def test_other_files_fit_or_are_refused(tmp_path: Path) -> None:
    csv.write_csv(made(2_000), tmp_path / "rows.csv")
    clause = CLAUSE.format("", WITHIN)
    assert cep.match(tmp_path / "rows.csv", clause, memory="1MiB").equals(cep.match(made(2_000), clause))
    with pytest.raises(UnsupportedError, match=r"(?s)more than memory=1,024 bytes: only Parquet files are read in slices"):
        cep.match(tmp_path / "rows.csv", clause, memory=1_024)
