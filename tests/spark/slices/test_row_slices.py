"""Rows without PARTITION BY are cut into slices of time where WITHIN bounds a match, and give what all rows give together."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.engine.row_patterns.slices import skips_rows, take_matches
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.plan.row_patterns.certainty import rows_before
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.reports.run_report import RunReport
from gpu_cep_spark.row_patterns import NarrowRows
from gpu_cep_spark.slices.marks import EACH, FLAG_BITS, OWN_BIT
from gpu_cep_spark.slices.row_slices import may_be_long, reason_against
from gpu_cep_spark.tasks.row_worker import match_rows
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses
from tests.spark.samples import as_set


def marked(rows: pa.Table, length: int, window: int, before: int) -> pa.Table:
    """The rows of each slice, with a last column as Spark's cut adds it; rows are in order of time."""
    times = np.array(rows["ts"].to_pylist(), np.int64)
    parts = []
    for number in sorted(set((times // length).tolist())):
        own = times // length == number
        held = own | ((times >= (number + 1) * length) & (times < (number + 1) * length + window))
        earlier = np.flatnonzero(times < number * length)
        if before and earlier.size:
            held |= (times >= times[earlier[-before:][0]]) & (times < number * length)
        parts.append(rows.filter(pa.array(held)).append_column("mark", pa.array(EACH * number + OWN_BIT * own[held])))
    return pa.concat_tables(parts)


def answer_in_slices(text: str, table: pa.Table, length: int, chance: random.Random) -> pa.Table | None:
    """What slices give together; None if these rows are not cut."""
    query = NarrowRows.of(text, table.schema, Options(), Settings())
    if reason_against(query.plan) is not None:
        return None
    work = query.sliced_work()
    window = query.plan.bound.window
    cut = marked(table.select(query.rows.names).sort_by("ts"), max(length, window.length), window.length, rows_before(query.plan))
    cut = cut.take(pa.array(chance.sample(range(len(cut)), len(cut)), pa.int64()))
    sent = cut.rename_columns([f"c{number}" for number in range(cut.num_columns)])
    # slices of one partition of Spark, and of others
    found = []
    for odd in (0, 1):
        part = sent.filter(pa.array([(mark >> FLAG_BITS) % 2 == odd for mark in cut["mark"].to_pylist()], pa.bool_()))
        found += [pa.Table.from_batches(match_rows(work, part.to_batches()), work.result)]
    rows = pa.concat_tables(found)
    rows = take_matches(rows) if skips_rows(query.bound) else rows
    return rows.rename_columns(query.result.names)


@given(clauses(ALONE + BESIDE + READING), st.randoms(use_true_random=False), st.integers(1, 8))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_slices_give_what_all_rows_give(drawn: Drawn, chance: random.Random, length: int) -> None:
    rest = drawn.clauses[drawn.clauses.index("MEASURES") :].replace(" WITH UNMATCHED ROWS", "").replace(" EVENTS", "")
    rest = rest if "WITHIN" in rest else rest.replace(" SUBSET U", " WITHIN 3 SUBSET U")
    rest = rest.replace("MATCH_NUMBER()", "1")
    size = drawn.table.num_rows
    assume(size > 0)
    times = np.cumsum([chance.choice([0, 0, 1, 2, 5]) for _ in range(size)]) + chance.randint(-9, 9)
    # Spark has no dictionaries
    plain = pa.schema([field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in drawn.table.schema])
    table = drawn.table.cast(plain).append_column("ts", pa.array(times, pa.int64()))
    text = f"MATCH_RECOGNIZE (ORDER BY ts, n {rest})"
    found = answer_in_slices(text, table, length, chance)
    assume(found is not None)
    assert as_set(found) == as_set(cep.match(table, text).cast(found.schema))


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW"])
@pytest.mark.parametrize("rows", ["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])
@pytest.mark.parametrize("length", [4, 7, 20])
def test_matches_that_reach_over_slices(skip: str, rows: str, length: int) -> None:
    chance = random.Random(length)
    times = np.sort([chance.randint(0, 400) for _ in range(500)])
    table = pa.table({"ts": times, "x": [chance.randint(0, 9) for _ in times], "id": range(len(times))})
    pattern = "PATTERN (S D* U{1,2}) WITHIN 4 DEFINE D AS x <= PREV(x), U AS x > PREV(x)"
    text = f"MATCH_RECOGNIZE (ORDER BY ts, id MEASURES count(*) AS n, FIRST(id) AS f {rows} AFTER MATCH SKIP {skip} {pattern})"
    found = answer_in_slices(text, table, length, chance)
    assert found is not None
    assert found.num_rows > 100
    assert as_set(found) == as_set(cep.match(table, text).cast(found.schema))


QUESTIONS = {
    "next row": ("AFTER MATCH SKIP TO NEXT ROW PATTERN (S D+) WITHIN 4 DEFINE D AS x < PREV(x)", {}),
    "rows before": ("AFTER MATCH SKIP TO NEXT ROW PATTERN (D+) WITHIN 4 DEFINE D AS x < PREV(x, 2)", {}),
    "past the last row": ("PATTERN (S D U) WITHIN 4 DEFINE D AS x < PREV(x), U AS x > PREV(x)", {}),
    "of a given length": ("PATTERN (S D+ U+) WITHIN 4 DEFINE D AS x < PREV(x), U AS x > PREV(x)", {"slices": 16}),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_spark_cuts_rows(spark: SparkSession, name: str) -> None:
    pattern, options = QUESTIONS[name]
    chance = random.Random(7)
    times = np.sort([chance.randint(-300, 300) for _ in range(600)])
    table = pa.table({"ts": times, "x": [chance.randint(0, 9) for _ in times], "id": range(len(times))})
    text = f'MATCH_RECOGNIZE (ORDER BY ts, id MEASURES count(*) AS n, FIRST(id) AS "first time", LAST(x) AS slice {pattern})'
    report = RunReport()
    found = cep.gpu_match(spark.createDataFrame(table), text, report=report, **options).toArrow()
    assert as_set(found) == as_set(cep.match(table, text).cast(found.schema))
    assert report.streams.startswith("rows are cut")
    assert report.counts["rows"] == len(times)
    if "SKIP TO NEXT ROW" in pattern:
        assert report.counts["matches"] == found.num_rows
    else:
        assert report.counts["candidates"] >= found.num_rows > 0


WHOLE = {
    "without WITHIN": "PATTERN (A B) DEFINE B AS x > 1",
    r"with AFTER MATCH SKIP TO a variable": "AFTER MATCH SKIP TO B PATTERN (A B) WITHIN 4 DEFINE B AS x > 1",
    r"with \^ or \$": "PATTERN (A B $) WITHIN 4",
    "with matches that may be empty": "PATTERN (A*) WITHIN 4",
    "with NEXT": "PATTERN (A) WITHIN 4 DEFINE A AS NEXT(x) > 1",
    "where conditions read the match": "PATTERN (A B+) WITHIN 4 DEFINE B AS x > FIRST(x)",
}


@pytest.mark.parametrize("reason", WHOLE)
def test_rows_that_are_not_cut(spark: SparkSession, reason: str) -> None:
    frame = spark.createDataFrame(pa.table({"ts": [1, 2, 3], "x": [1, 2, 3]}))
    text = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n {WHOLE[reason]})"
    with pytest.warns(UserWarning, match=rf"all rows go to one task; .* \(partitions are whole: rows cannot be cut {reason}"):
        cep.gpu_match(frame, text)
    with pytest.raises(UnsupportedError, match=f"slices=16 is not supported for MATCH_RECOGNIZE {reason}"):
        cep.gpu_match(frame, text, slices=16)


def test_long_matches_are_cut_if_slices_say_how(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.table({"ts": [1, 2, 3], "x": [1, 2, 3]}))
    text = "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A+) WITHIN 4)"
    with pytest.warns(UserWarning, match="are not cut unless slices= says how"):
        cep.gpu_match(frame, text)
    assert cep.gpu_match(frame, text, slices=8).toArrow().to_pylist() == [{"n": 3}]
    with pytest.raises(PatternError, match="must be at least as long as the window"):
        cep.gpu_match(frame, text, slices=2)
    assert "source     Spark reads the rows; rows are cut" in str(cep.events(frame).explain(text.replace("A+", "A B")))


@pytest.mark.parametrize(("pattern", "expected"), [("A B{1,3} C?", False), ("A B+", True), ("(A | B)*? C", True), ("PERMUTE(A, B)", False)])
def test_which_matches_may_be_long(pattern: str, expected: bool) -> None:
    text = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN ({pattern}) WITHIN 4)"
    query: Any = NarrowRows.of(text, pa.schema({"ts": pa.int64()}), Options(), Settings())
    assert may_be_long(query.plan.automaton) == expected
