"""The benchmark of who reads Parquet: its rows and its page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from benchmarks.rivals import spark_files
from benchmarks.spark.keys import Taken


def test_a_row_compares_each_way_with_the_files_road() -> None:
    best = {spark_files.FILES: Taken(2.0, 4.0), spark_files.SHUFFLED: Taken(5.0, 6.0), spark_files.PATH: Taken(1.0, 2.0)}
    assert spark_files.row("runs", best) == ["runs", "2.00", "5.00", "", "", "1.00", "2.5 / 1.5", "", "", "0.5 / 0.5"]
    assert spark_files.row("runs", {spark_files.SQL: Taken(3.0, 4.0)})[1:] == ["", "", "", "3.00", "", "", "", "", ""]


def test_the_page_says_what_was_measured() -> None:
    where = {"machine": "a machine", "day": "today", "load": "1.0", "commit": "abc", **dict.fromkeys(spark_files.PACKAGES, "1")}
    page = spark_files.markdown([spark_files.row("runs", {spark_files.FILES: Taken(2.0, 4.0)})], where, 400, 3, 2)
    assert "400 events" in page
    assert "| runs | 2.00 |" in page
    assert "SQL / files" in page


def test_counts_differ_by_no_more_than_ties() -> None:
    counted = {spark_files.FILES: 70_952, spark_files.SHUFFLED: 70_952, spark_files.BARE: 3_000_000, spark_files.PATH: 70_955}
    spark_files.refuse_other_counts("runs", counted | {spark_files.SQL: 70_960})
    for way, count in ((spark_files.SHUFFLED, 70_953), (spark_files.PATH, 71_100), (spark_files.SQL, 71_100)):
        with pytest.raises(AssertionError, match="runs: the ways count"):
            spark_files.refuse_other_counts("runs", counted | {way: count})


def test_a_record_of_some_leaves_that_of_all() -> None:
    kinds, words, usual = spark_files.IN_SQL, tuple(spark_files.WORDS), spark_files.EVENTS
    name = spark_files.record_name
    assert name(usual, kinds, words) == name(usual, kinds[::-1], words[::-1]) == "spark-files"
    assert name(40_000_000, kinds[:1], words) == "spark-files-40000000"
    assert name(usual, kinds, ("sql", "files")) == "spark-files-files-sql"
    assert name(usual, kinds[:1], words) == f"spark-files-{kinds[0]}"
    assert name(usual, kinds[:1], ("sql",)) == f"spark-files-{kinds[0]}-sql"


def test_workers_do_not_wait_for_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL is asked when all ways of Python are done, and only chosen ways are asked."""
    asked: list[str] = []

    def ask(way: str) -> int:
        asked.append(way)
        return 7

    def answers(_: object) -> dict[str, Callable[[], int]]:
        return {way: partial(ask, way) for way in spark_files.WAYS}

    monkeypatch.setattr(spark_files, "ways", answers)
    chosen = (spark_files.SQL, spark_files.FILES, spark_files.PATH)
    best = spark_files.measured(SimpleNamespace(kind=SimpleNamespace(name="runs")), 1, chosen)
    assert asked == [spark_files.FILES, spark_files.PATH] * 2 + [spark_files.SQL] * 2
    assert set(best) == set(chosen)
