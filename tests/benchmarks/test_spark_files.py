"""The benchmark of who reads Parquet: its rows and its page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from benchmarks.kinds.questions import KINDS
from benchmarks.record import pages
from benchmarks.record.machine import package_version, processor_name, slug
from benchmarks.rivals import spark_files
from benchmarks.rivals.spark_records import (
    AUTO,
    BARE,
    FILES,
    PATH,
    SHUFFLED,
    SQL,
    WAYS,
    Record,
    RecordError,
    merged,
    new_record,
    page_of,
    refuse_losses,
    row,
)
from benchmarks.spark.keys import PACKAGES, Taken

WHERE = {"machine": "a machine", "day": "today", "load": "1.0", "commit": "abc", "cores": "2", **dict.fromkeys(PACKAGES, "1")}


def record(found: dict[str, dict[str, Taken]], **where: str) -> Record:
    return new_record(WHERE | where, 400, 3, found)


def test_a_row_compares_each_way_with_the_files_road() -> None:
    best = {FILES: Taken(2.0, 4.0), SHUFFLED: Taken(5.0, 6.0), PATH: Taken(1.0, 2.0)}
    assert row("runs", best) == ["runs", "2.00", "5.00", "", "", "1.00", "2.5 / 1.5", "", "", "0.5 / 0.5"]
    assert row("runs", {SQL: Taken(3.0, 4.0)})[1:] == ["", "", "", "3.00", "", "", "", "", ""]


def test_the_page_says_what_was_measured() -> None:
    page = page_of(record({"runs": {FILES: Taken(2.0, 4.0)}, "mixed": {AUTO: Taken(2.0, 4.0), SHUFFLED: Taken(2.5, 2.0)}}), 40)
    assert "400 events" in page
    assert "of at most 40;" in page
    assert "| runs | 2.00 |" in page
    assert "SQL / files" in page
    assert "| mixed | 2.00 | 2.50 | 0.8 / 2.0 |" in page
    assert "\n- Commit abc; load average 1.0 before the first run, above 0 where others were at work; best of 3.\n" in page


def test_a_run_of_some_questions_leaves_the_others() -> None:
    before = record({"robust": {FILES: Taken(2.0, 4.0)}, "funnel": {FILES: Taken(3.0, 4.0), SQL: Taken(9.0, 9.0)}})
    run = record({"v_shape": {FILES: Taken(7.0, 7.0)}, "funnel": {FILES: Taken(1.0, 2.0)}}, commit="def")
    found = merged(before, run, spark_files.IN_SQL)
    assert list(found["questions"]) == ["v_shape", "funnel", "robust"]
    assert found["questions"]["robust"] == before["questions"]["robust"]
    assert found["questions"]["funnel"] == run["questions"]["funnel"]
    assert {name: said["commit"] for name, said in found["measured"].items()} == {"v_shape": "def", "funnel": "def", "robust": "abc"}
    page = page_of(found, 40)
    assert "- Commit def; load average 1.0 before the first run, above 0 where others were at work; best of 3. v_shape, funnel." in page


def test_a_run_that_would_leave_less_is_refused() -> None:
    before = record({"funnel": {FILES: Taken(3.0, 4.0), SQL: Taken(9.0, 9.0)}})
    refuse_losses(before, WHERE, ["funnel"], [FILES, SQL])
    refuse_losses(before, WHERE, ["v_shape"], [FILES])
    with pytest.raises(RecordError, match="has funnel by SQL, which this run leaves out; ask it too, or add --no-record"):
        refuse_losses(before, WHERE, ["v_shape", "funnel"], [FILES])
    with pytest.raises(RecordError, match="was made with pyarrow 1, cores 2; move it away"):
        refuse_losses(before, WHERE | {"pyarrow": "2", "cores": "3"}, ["v_shape"], [FILES])


def test_a_dozen_questions_are_asked_without_names() -> None:
    asked = spark_files.parsed([]).kinds
    assert len(asked) >= 12
    assert {*asked} | spark_files.BY_NAME == {*spark_files.IN_SQL}
    assert not {*asked} & spark_files.BY_NAME
    windows = {name: KINDS[name].within for name in asked}
    assert all(windows.values()), windows


def test_nothing_is_measured_for_a_run_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(spark_files, "RESULTS", tmp_path)
    versions = {each: package_version(each) for each in PACKAGES}
    name = f"spark-files-400-{slug(processor_name())}-{date.today().isoformat()}"
    pages.write(tmp_path, name, "", record({"funnel": {FILES: Taken(3.0, 4.0), SQL: Taken(9.0, 9.0)}}, **versions))
    assert spark_files.main(["--events", "400", "--kinds", "funnel", "--ways", "files"]) == 2
    assert "has funnel by SQL" in capsys.readouterr().err


def test_counts_differ_by_no_more_than_ties() -> None:
    counted = {FILES: 70_952, SHUFFLED: 70_952, BARE: 3_000_000, PATH: 70_955}
    spark_files.refuse_other_counts("runs", counted | {SQL: 70_960})
    for way, count in ((SHUFFLED, 70_953), (PATH, 71_100), (SQL, 71_100)):
        with pytest.raises(AssertionError, match="runs: the ways count"):
            spark_files.refuse_other_counts("runs", counted | {way: count})


def test_a_record_of_another_number_of_events_has_it_in_its_name() -> None:
    assert spark_files.record_name(spark_files.EVENTS) == "spark-files"
    assert spark_files.record_name(40_000_000) == "spark-files-40000000"


def test_workers_do_not_wait_for_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL is asked when all ways of Python are done, and only chosen ways are asked."""
    asked: list[str] = []

    def ask(way: str) -> int:
        asked.append(way)
        return 7

    def answers(_: object) -> dict[str, Callable[[], int]]:
        return {way: partial(ask, way) for way in WAYS}

    monkeypatch.setattr(spark_files, "ways", answers)
    chosen = (SQL, FILES, PATH)
    best = spark_files.measured(SimpleNamespace(kind=SimpleNamespace(name="runs")), 1, chosen)
    assert asked == [FILES, PATH] * 2 + [SQL] * 2
    assert set(best) == set(chosen)
