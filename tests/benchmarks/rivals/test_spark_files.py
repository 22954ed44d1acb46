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
from benchmarks.record import arguments, pages
from benchmarks.record.day_records import Record, RecordError, earlier, merged
from benchmarks.record.machine import ON_SPARK, package_version, processor_name, slug
from benchmarks.rivals import spark_files
from benchmarks.rivals.spark_records import (
    AUTO,
    BARE,
    EMPTY,
    FILES,
    PATH,
    SHUFFLED,
    SQL,
    WARM,
    WAYS,
    new_record,
    page_of,
    refuse_losses,
    row,
)
from benchmarks.spark.times import SparkSeconds
from gpu_cep.errors import Diagnostic, UnsupportedError

WHERE = {"machine": "a machine", "day": "today", "load": "1.0", "commit": "abc", "cores": "2", WARM: "8", **dict.fromkeys(ON_SPARK, "1")}


def record(found: dict[str, dict[str, SparkSeconds]], failed: dict[str, dict[str, str]] | None = None, **where: str) -> Record:
    return new_record(WHERE | where, 400, 3, found, failed or {})


def test_a_row_compares_each_way_with_the_files_road() -> None:
    best = {FILES: SparkSeconds(2.0, 4.0), SHUFFLED: SparkSeconds(5.0, 6.0), PATH: SparkSeconds(1.0, 2.0)}
    assert row("runs", best) == ["runs", "2.00", "5.00", "", "", "", "", "1.00", "", "2.5 / 1.5", "", "", "", "", "0.5 / 0.5", ""]
    assert row("runs", {SQL: SparkSeconds(3.0, 4.0)})[1:] == ["", "", "", "", "", "3.00", *[""] * 9]
    assert row("runs", best | {EMPTY: SparkSeconds(0.5, 1.0)})[-2:] == ["0.5 / 0.5", "0.8 / 0.8"]


def test_the_page_says_what_was_measured() -> None:
    page = page_of(
        record({"runs": {FILES: SparkSeconds(2.0, 4.0)}, "mixed": {AUTO: SparkSeconds(2.0, 4.0), SHUFFLED: SparkSeconds(2.5, 2.0)}}), 40
    )
    assert "400 events" in page
    assert "of at most 40;" in page
    assert "turn by turn after 8 runs over a small share of the events" in page
    assert "| runs | 2.00 |" in page
    assert "SQL / files" in page
    assert "| mixed | 2.00 | 2.50 | 0.8 / 2.0 |" in page
    assert "\n- Commit abc; load average 1.0 before the first run, above 0 where others were at work; best of 3.\n" in page


def test_a_run_of_some_questions_leaves_the_others() -> None:
    before = record({"robust": {FILES: SparkSeconds(2.0, 4.0)}, "funnel": {FILES: SparkSeconds(3.0, 4.0), SQL: SparkSeconds(9.0, 9.0)}})
    run = record({"v_shape": {FILES: SparkSeconds(7.0, 7.0)}, "funnel": {FILES: SparkSeconds(1.0, 2.0)}}, commit="def")
    found = merged(before, run, spark_files.IN_SQL)
    assert list(found["questions"]) == ["v_shape", "funnel", "robust"]
    assert found["questions"]["robust"] == before["questions"]["robust"]
    assert found["questions"]["funnel"] == run["questions"]["funnel"]
    assert {name: said["commit"] for name, said in found["measured"].items()} == {"v_shape": "def", "funnel": "def", "robust": "abc"}
    page = page_of(found, 40)
    assert "- Commit def; load average 1.0 before the first run, above 0 where others were at work; best of 3. v_shape, funnel." in page


def test_a_run_that_would_leave_less_is_refused() -> None:
    before = record({"funnel": {FILES: SparkSeconds(3.0, 4.0), SQL: SparkSeconds(9.0, 9.0)}})
    refuse_losses(before, ["funnel"], [FILES, SQL])
    refuse_losses(before, ["v_shape"], [FILES])
    refuse_losses(None, ["funnel"], [FILES])
    with pytest.raises(RecordError, match="has funnel by SQL, which this run leaves out; ask it too, or add --no-record"):
        refuse_losses(before, ["v_shape", "funnel"], [FILES])


def test_a_run_of_another_environment_is_refused(tmp_path: Path) -> None:
    alike, path = (*ON_SPARK, "cores", WARM), tmp_path / "day.json"
    assert earlier(path, WHERE, alike) is None
    before = record({"funnel": {FILES: SparkSeconds(3.0, 4.0)}})
    pages.write(tmp_path, "day", "", before)
    assert earlier(path, WHERE | {"load": "9.0", "commit": "def"}, alike) == before
    with pytest.raises(RecordError, match="was made with pyarrow 1, cores 2; move it away"):
        earlier(path, WHERE | {"pyarrow": "2", "cores": "3"}, alike)
    cold = record({"funnel": {FILES: SparkSeconds(3.0, 4.0)}})
    del cold["environment"][WARM]
    pages.write(tmp_path, "day", "", cold)
    with pytest.raises(RecordError, match="was made with warm runs 0; move it away"):
        earlier(path, WHERE, alike)


def test_the_record_tells_which_way_failed() -> None:
    """Merged over a figure of the same way, it is no silent loss; a later run that succeeds ends it."""
    first = record({"funnel": {FILES: SparkSeconds(3.0, 4.0), SQL: SparkSeconds(9.0, 9.0)}})
    then = record({"funnel": {FILES: SparkSeconds(1.0, 2.0)}}, {"funnel": {SQL: "[PARSE_SYNTAX_ERROR] near 'PIVOT'"}})
    found = merged(first, then, spark_files.IN_SQL)
    assert "\n- funnel by SQL failed: [PARSE_SYNTAX_ERROR] near 'PIVOT'\n" in page_of(found, 40)
    assert found["failed"] == merged(found, record({"robust": {FILES: SparkSeconds(1.0, 1.0)}}), spark_files.IN_SQL)["failed"]
    again = merged(found, first, spark_files.IN_SQL)
    assert "failed:" not in page_of(again, 40)
    assert again["questions"]["funnel"] == first["questions"]["funnel"]


def test_a_dozen_questions_are_asked_without_names() -> None:
    asked = spark_files.parsed([]).kinds
    assert len(asked) >= 12
    assert {*asked} | spark_files.BY_NAME == {*spark_files.IN_SQL}
    assert not {*asked} & spark_files.BY_NAME
    windows = {name: KINDS[name].within for name in asked}
    assert all(windows.values()), windows


def test_nothing_is_measured_for_a_run_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(arguments, "RESULTS", tmp_path)
    versions = {each: package_version(each) for each in ON_SPARK} | {WARM: str(spark_files.WARM_RUNS)}
    name = f"spark-files-400-{slug(processor_name())}-{date.today().isoformat()}"
    pages.write(tmp_path, name, "", record({"funnel": {FILES: SparkSeconds(3.0, 4.0), SQL: SparkSeconds(9.0, 9.0)}}, **versions))
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
    found = spark_files.measured(SimpleNamespace(kind=SimpleNamespace(name="runs")), 1, chosen)
    assert asked == [FILES, PATH] * 2 + [SQL] * 2
    assert set(found.best) == set(chosen)
    assert not found.failed


def test_a_way_that_fails_is_told_and_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fail(way: str, turn: int) -> int:
        asked.append(way)
        if asked.count(way) > turn:
            raise UnsupportedError([Diagnostic(f"{way} cannot")])
        return 7

    failing = {FILES: partial(fail, FILES, 9), SHUFFLED: partial(fail, SHUFFLED, 0), SQL: partial(fail, SQL, 2)}
    monkeypatch.setattr(spark_files, "ways", lambda _: failing)
    spark_files.warm_up(SimpleNamespace(), (SHUFFLED,))
    assert asked == [SHUFFLED]
    asked.clear()
    found = spark_files.measured(SimpleNamespace(kind=SimpleNamespace(name="runs")), 2, (FILES, SHUFFLED, SQL))
    assert set(found.best) == {FILES}
    assert set(found.failed) == {SHUFFLED, SQL}
    assert found.failed[SQL].startswith("SQL cannot")
    assert asked.count(SHUFFLED) == 1


def test_a_run_adds_to_the_record_of_its_number_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "RESULTS", tmp_path)
    told = spark_files.WayResults({FILES: SparkSeconds(3.0, 4.0)}, {SQL: "cannot"})
    monkeypatch.setattr(spark_files, "ask", lambda options: dict.fromkeys(options.kinds, told))
    for number, kind in (("400", "funnel"), ("400", "robust"), ("500", "v_shape")):
        assert spark_files.main(["--events", number, "--kinds", kind, "--unordered"]) == 0
    held = {pages.read(path)["events"]: pages.read(path) for path in tmp_path.glob("*.json")}
    assert held[400]["environment"][WARM] == str(spark_files.WARM_RUNS)
    assert list(held[400]["questions"]) == ["funnel", "robust"]
    assert list(held[500]["questions"]) == ["v_shape"]
    assert held[400]["failed"] == {"funnel": {SQL: "cannot"}, "robust": {SQL: "cannot"}}
