"""gpu_match answers MATCH_RECOGNIZE as match does, however the rows are spread."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.row_patterns import NarrowRows
from gpu_cep_spark.tasks import worker
from gpu_cep_spark.tasks.row_worker import match_rows
from tests.spark.samples import as_set, physical_plan

ROWS = pa.table(
    {
        "unread": pa.nulls(9, pa.string()),
        "ts": pa.array([dt.datetime(2024, 5, 1, 9, minute) for minute in (0, 1, 2, 3, 4, 5, 6, 7, 7)], pa.timestamp("us", "Europe/Zurich")),
        "Key": pa.array(["a", "b", None, "a", "b", None, "a", "b", "a"]),
        "price": pa.array([5, 9, 1, 3, 8, 2, 4, None, 1], pa.int32()),
        "paid": pa.array([Decimal("1.50"), None, *map(Decimal, ("2.25", "1.00", "0.10", "3", "4", "5", "6"))], pa.decimal128(9, 2)),
        "tags": pa.array([["x"], [], None, ["y"], [], [], [], [], ["z"]], pa.list_(pa.string())),
        "an `odd`.name": pa.array(range(9), pa.int64()),
    }
)
FALL = "PATTERN (S D+) DEFINE D AS price < PREV(price)"
QUERIES = {
    "one row": f"PARTITION BY key ORDER BY ts MEASURES FIRST(ts) AS t, LAST(price) AS low, sum(paid) AS paid, count(*) AS n {FALL}",
    "all rows": f"PARTITION BY key ORDER BY ts MEASURES CLASSIFIER() AS v ALL ROWS PER MATCH WITH UNMATCHED ROWS {FALL}",
    "descending": 'PARTITION BY "Key" ORDER BY ts DESC NULLS FIRST MEASURES count(*) AS n AFTER MATCH SKIP TO NEXT ROW PATTERN (^ A+)',
    "odd names": 'PARTITION BY key ORDER BY "an `odd`.name" MEASURES LAST("an `odd`.name") AS "odd ""m""" PATTERN (A+ $)',
    "window": "PARTITION BY key ORDER BY ts MEASURES count(*) AS n PATTERN (A+) WITHIN 2 MINUTES",
    "a partition of two": "PARTITION BY key, price ORDER BY ts MEASURES count(*) AS n PATTERN (A)",
    "only a count": "PARTITION BY price MEASURES count(*) AS n PATTERN (A{1,3})",
}


def clause(text: str) -> str:
    return f"MATCH_RECOGNIZE ({text})"


def spread(spark: SparkSession, table: pa.Table, partitions: int) -> DataFrame:
    return spark.createDataFrame(table).repartition(partitions)


def assert_same(frame: DataFrame, text: str, ordered: pa.Table, **options: Any) -> pa.Table:
    """The rows that match() returns for a table, once gpu_match() is known to return the same for a DataFrame."""
    expected = cep.match(ordered, clause(text), **options)
    assert_rows(cep.gpu_match(frame, clause(text), **options), expected)
    return expected


def assert_rows(found: DataFrame, expected: pa.Table) -> None:
    assert found.columns == expected.column_names
    got = found.toArrow()
    assert as_set(got) == as_set(expected.cast(got.schema))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("partitions", [1, 5])
@pytest.mark.surface
def test_the_answer_is_that_of_the_rows_in_one_table(spark: SparkSession, name: str, partitions: int) -> None:
    assert assert_same(spread(spark, ROWS, partitions), QUERIES[name], ROWS).num_rows, "a query without a match tests nothing"


PATTERNS = st.sampled_from(["S D+", "(A | D)*? S", "S {- D* -} A", "PERMUTE(S, D)", "^ A+ $", "(D S?)+ | A"])
SKIPS = st.sampled_from(["", "AFTER MATCH SKIP TO NEXT ROW", "AFTER MATCH SKIP PAST LAST ROW"])
OUTPUTS = st.sampled_from(["ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH OMIT EMPTY MATCHES"])
DEFINES = st.sampled_from(["D AS x < PREV(x)", "D AS x > 3, S AS y", "S AS x IS NULL, D AS count(*) < 3", "A AS x = FIRST(x)"])


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, pa.Table]:
    """A row pattern over a table of a few rows with ties in its order."""
    rows = draw(st.integers(0, 12))
    columns = {
        "x": (pa.int64(), st.none() | st.integers(0, 5)),
        "t": (pa.int32(), st.none() | st.integers(0, 4)),
        "k": (pa.string(), st.none() | st.sampled_from("ab")),
        "y": (pa.bool_(), st.booleans()),
    }
    table = pa.table({name: pa.array(draw(st.lists(each, min_size=rows, max_size=rows)), kind) for name, (kind, each) in columns.items()})
    keys = draw(st.sampled_from(["PARTITION BY k", "PARTITION BY k, y"]))
    order = draw(st.sampled_from(["", "ORDER BY t", "ORDER BY t DESC", "ORDER BY t NULLS FIRST, x"]))
    measures = "MEASURES CLASSIFIER() AS c, MATCH_NUMBER() AS m, FIRST(x) AS f, sum(x) AS s, LAST(y) AS y2, max(t) AS latest"
    defines = draw(DEFINES)
    pattern = draw(PATTERNS.filter(lambda each: all(name.split()[0] in each for name in defines.split(", "))))
    return f"{keys} {order} {measures} {draw(OUTPUTS)} {draw(SKIPS)} PATTERN ({pattern}) DEFINE {defines}", table


@given(questions(), st.integers(1, 4))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
def test_any_question(spark: SparkSession, question: tuple[str, pa.Table], partitions: int) -> None:
    text, table = question
    # rows that ORDER BY leaves equal are ordered by all columns that are read
    bound = NarrowRows.of(clause(text), table.schema, Options(), Settings())
    ties = [bound.rows.names[number] for number in bound.work().ties]
    ordered = table.sort_by([(name, "ascending") for name in ties]) if ties else table
    assert_same(spread(spark, table, partitions), text, ordered)


@given(questions(), st.randoms(use_true_random=False), st.integers(1, 5))
def test_a_worker_answers_alike_in_any_order_of_rows_and_of_batches(question: tuple[str, pa.Table], random: Any, size: int) -> None:
    text, table = question
    query = NarrowRows.of(clause(text), table.schema, Options(), Settings())
    sent = table.select(query.rows.names)
    sent = sent.rename_columns([f"c{number}" for number in range(sent.num_columns)])
    shuffled = sent.take(pa.array(random.sample(range(len(table)), len(table)), pa.int64()))

    def answers(rows: pa.Table) -> list[str]:
        return as_set(pa.Table.from_batches(match_rows(query.work(), rows.to_batches(max_chunksize=size)), query.result))

    assert answers(shuffled) == answers(sent)


def test_partitions_that_do_not_fit_wait_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.concat_tables([ROWS] * 3)
    query = NarrowRows.of(clause(QUERIES["one row"]), rows.schema, Options(), Settings())
    sent = rows.select(query.rows.names).rename_columns([f"c{number}" for number in range(len(query.rows))])
    whole = [*match_rows(query.work(), sent.to_batches())]
    monkeypatch.setattr(worker, "bytes_of_events", lambda *_: 1)
    parts = [*match_rows(query.work(), sent.to_batches(max_chunksize=4))]
    assert len(parts) > len(whole) == 1
    assert as_set(pa.Table.from_batches(parts)) == as_set(pa.Table.from_batches(whole))


@pytest.mark.surface
def test_one_shuffle_and_only_the_columns_that_are_read(spark: SparkSession, tmp_path: Any) -> None:
    path = str(tmp_path / "rows")
    spark.createDataFrame(ROWS.drop_columns(["tags"])).write.parquet(path)
    plan = physical_plan(cep.gpu_match(spark, path, clause(QUERIES["one row"])))
    assert plan.count("Exchange") == plan.count("MapInArrow") > 0
    schema = next(line for line in plan.splitlines() if "ReadSchema" in line)
    assert all(name in schema for name in ("ts", "Key", "price", "paid"))
    assert "unread" not in schema


@pytest.mark.surface
def test_without_partition_by_there_is_one_task_and_a_warning(spark: SparkSession) -> None:
    text = f"ORDER BY ts, price MEASURES LAST(price) AS low {FALL}"
    with pytest.warns(UserWarning, match="no PARTITION BY: all rows go to one task"):
        assert assert_same(spread(spark, ROWS, 3), text, ROWS).num_rows


def test_keywords_supply_clauses_and_functions(spark: SparkSession) -> None:
    text = f"MEASURES twice(LAST(price)) AS low {FALL}"
    assert_same(spread(spark, ROWS, 3), text, ROWS, partition_by="Key", order_by="ts", functions={"twice": lambda x: x * 2})


def test_a_tree_and_bound_events(spark: SparkSession) -> None:
    frame, text = spark.createDataFrame(ROWS), clause(QUERIES["one row"])
    assert_rows(cep.gpu_match(frame, cep.parse(text)), cep.match(ROWS, text))
    assert_rows(cep.events(frame).match(text), cep.match(ROWS, text))


@pytest.mark.usual
def test_a_report(spark: SparkSession) -> None:
    from gpu_cep_spark import RunReport

    report = RunReport()
    found = cep.gpu_match(spread(spark, ROWS, 3), clause(QUERIES["one row"]), report=report).toArrow()
    assert report.counts["events"] == len(ROWS)
    assert report.counts["matches"] == found.num_rows == 3
    assert "cannot be cut with PARTITION BY" in report.streams


FAULTS = {
    "unknown column": (f"ORDER BY tss MEASURES price AS p {FALL}", {}, PatternError, "line 1, column 27: .*'tss'"),
    "output": (f"MEASURES price AS p {FALL}", {"output": "count"}, UnsupportedError, "output='count' is not supported for MATCH_RECOG"),
    "strategy": (f"MEASURES price AS p {FALL}", {"strategy": "skip_till_any_match"}, PatternError, "strategy=.* is not for row patterns"),
    "slices": (f"MEASURES price AS p {FALL}", {"slices": "1 hour"}, UnsupportedError, "slices='1 hour' is not supported for MATCH_RECOG"),
    "scan": (f"MEASURES price AS p {FALL}", {"scan": "files"}, UnsupportedError, "scan='files' is not supported for MATCH_RECOGNIZE"),
    "brute force": (f"MEASURES price AS p {FALL}", {"algorithm": "brute_force"}, UnsupportedError, "not supported under Spark"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.surface
def test_faults_are_told_on_the_driver(spark: SparkSession, name: str) -> None:
    text, options, error, message = FAULTS[name]
    with pytest.raises(error, match=message):
        cep.gpu_match(spark.createDataFrame(ROWS), clause(text), **options)


def test_what_the_engine_cannot_answer_is_told_on_the_driver(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(plan: Any, table: pa.Table, **_: Any) -> None:
        assert not table.num_rows
        raise UnsupportedError("too many states")

    monkeypatch.setattr("gpu_cep.engine.row_patterns.answers.answer_row_pattern", refuse)
    with pytest.raises(UnsupportedError, match="too many states"):
        cep.gpu_match(spark.createDataFrame(ROWS), clause(QUERIES["one row"]))


def test_an_error_of_the_match_names_the_pattern(spark: SparkSession) -> None:
    text = clause(f"PARTITION BY key ORDER BY ts MEASURES count(*) AS n AFTER MATCH SKIP TO S {FALL}")
    found = cep.gpu_match(spark.createDataFrame(ROWS), text)
    with pytest.raises(PySparkException, match=r"(?s)EventError: AFTER MATCH SKIP TO LAST S: .*; the pattern is MATCH_RECOGNIZE"):
        found.collect()


@pytest.mark.surface
def test_the_table_function(spark: SparkSession) -> None:
    cep.register(spark)
    spark.createDataFrame(ROWS).createOrReplaceTempView("ticks")
    text = clause(QUERIES["one row"])
    assert_rows(spark.sql(f"SELECT * FROM gpu_match(TABLE(ticks), pattern => '{text}')"), cep.match(ROWS, text))
    with pytest.raises(AnalysisException, match="output='count' is not supported for MATCH_RECOGNIZE"):
        spark.sql(f"SELECT * FROM gpu_match(TABLE(ticks), pattern => '{text}', output => 'count')").collect()
