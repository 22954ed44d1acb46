"""The comparison with rivals: its questions are formed, its own answers are right, and other matches are refused."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.kinds.questions import KINDS
from benchmarks.rivals import asking, environments, report, run
from gpu_cep.lang.parser import parse

NAMES = ("contiguous", "set", "selective")


@pytest.fixture
def contestant(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(asking.WORKERS))
    return import_module("contestant")


def small(name: str):
    """The question over few streams, so that few events give matches."""
    question = run.QUESTIONS[name]
    return replace(question, workload=replace(question.workload, streams=min(question.workload.streams, 20)))


def test_entries_are_formed() -> None:
    entries = run.entries()
    assert {entry.question for entry in entries} == set(NAMES) == set(run.QUESTIONS)
    assert {entry.environment for entry in entries} == set(run.REQUIREMENTS)
    for entry in entries:
        assert "{" not in entry.text, entry
        assert bool(entry.text) == (entry.rival != "Flink CEP")
        assert (asking.WORKERS / f"on_{entry.environment}.py").exists()
    answered = {(entry.rival, entry.question) for entry in entries}
    assert answered.isdisjoint((each.rival, each.question) for each in report.GROUPS[report.THREE].unasked)


def test_row_patterns_state_the_window() -> None:
    question = run.QUESTIONS["contiguous"]
    assert "WITHIN INTERVAL '40.001' SECOND(9, 3)" in question.in_flink()
    for text in (question.in_flink(), question.in_pandas()):
        assert "C.ts - A.ts <= 40000" in text
    with pytest.raises(ValueError, match="no row pattern"):
        run.QUESTIONS["selective"].in_flink()


@pytest.mark.parametrize("name", NAMES)
def test_queries_parse(name: str) -> None:
    assert parse(run.QUESTIONS[name].query)


@pytest.mark.parametrize("name", NAMES)
def test_hand_written_sql_finds_the_matches(contestant: ModuleType, name: str) -> None:
    question = small(name)
    events = question.events(3_000)
    expected = question.comparable(events, question.answer(events, 1))
    assert expected.num_rows > 0
    contestant.check(in_sqlite(question.hand_written(), pa.table(contestant.plain_columns(events))), expected)


def in_sqlite(text: str, events: pa.Table) -> pa.Table:
    """The answer of SQLite, which needs GREATEST under another name and columns of VALUES without names of their own."""
    connection = sqlite3.connect(":memory:")
    names = events.schema.names
    connection.execute(f"CREATE TABLE events ({', '.join(names)})")
    connection.executemany(f"INSERT INTO events VALUES ({', '.join('?' * len(names))})", zip(*events.to_pydict().values(), strict=True))
    connection.create_function("greatest", -1, lambda *values: None if None in values else max(values))
    cursor = connection.execute(without_column_names(text))
    columns = [name for name, *_ in cursor.description]
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in cursor])


def without_column_names(text: str) -> str:
    return text.replace("AS steps(step)", "AS steps").replace("- step AS", "- steps.column1 AS")


def test_other_matches_are_refused(contestant: ModuleType) -> None:
    expected = pa.table({"a": [1, 2, 2], "n": [3, 1, 2]})
    contestant.check(pa.table({"n": pa.array([2, 3, 1], pa.int32()), "a": [2, 1, 2]}), expected)
    with pytest.raises(contestant.Disagreement, match="2 matches, 3 expected"):
        contestant.check(expected.slice(1), expected)
    with pytest.raises(contestant.Disagreement, match="not the same"):
        contestant.check(pa.table({"a": [1, 2, 2], "n": [3, 1, 1]}), expected)
    with pytest.raises(contestant.Disagreement, match="not the same"):
        contestant.check(pa.table({"a": [1, 1, 2], "n": [3, 1, 2]}), expected)


class Rival:
    """A rival that knows its answer by heart, and counts how often it is asked."""

    def __init__(self, process: int, answer: pa.Table) -> None:
        self.process, self.answer, self.runs = process, answer, 0

    def matches(self) -> pa.Table:
        return self.answer

    def run(self) -> None:
        self.runs += 1


@pytest.fixture
def job(contestant: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """A job on the command line; the matches that it expects."""
    expected = pa.table({"a": [1, 2]})
    path = tmp_path / "expected.parquet"
    pq.write_table(expected, path)
    work = contestant.Job("set", "", 1, "", str(path), None, "V", (), 1, 3)
    monkeypatch.setattr(sys, "argv", ["worker", json.dumps(asdict(work))])
    return expected


def test_a_worker_times_what_agrees(contestant: ModuleType, job: pa.Table, capsys: pytest.CaptureFixture[str]) -> None:
    rival = Rival(os.getpid(), job)
    contestant.serve(lambda _: rival)
    measured = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert rival.runs == 4
    assert measured["matches"] == 2
    assert len(measured["seconds"]) == len(measured["cpu_seconds"]) == 3


def test_a_worker_does_not_time_other_matches(contestant: ModuleType, job: pa.Table) -> None:
    rival = Rival(0, job.slice(1))
    with pytest.raises(contestant.Disagreement):
        contestant.serve(lambda _: rival)
    assert rival.runs == 0


def three(comparisons: list[report.Comparison], absent: list[report.Absent]) -> str:
    return report.markdown(report.GROUPS[report.THREE], comparisons, absent, report.surroundings())


def test_what_cannot_be_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "environment", lambda name: SimpleNamespace(missing="no such version"))
    entry = run.entries()[0]
    comparisons, absent = run.compared([entry], 1)
    assert comparisons == []
    assert absent == [run.Absent(entry.rival, entry.question, "no such version")]
    page = three(comparisons, absent)
    assert f"- {entry.rival}, {entry.question}: no such version." in page


def test_an_environment_without_its_tools_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environments.shutil, "which", lambda tool: None)
    assert environments.environment("flink", tmp_path).missing == "needs java and javac"
    assert list(tmp_path.iterdir()) == []


def test_the_page_shows_both_rates_and_their_ratio() -> None:
    measured = report.Comparison("DuckDB", "set", 1_000_000, 7, 2, 2.0, 3.0, 0.5, 0.6, 1.0, "PATTERN a")
    page = three([measured], [])
    assert "| set | DuckDB | 1,000,000 | 7 | 2 | 0.5 M/s | 2 M/s | 4.0 × | 0.333 M/s | 1.67 M/s | 5.0 × | 3 ×, met | 1.0 |" in page
    assert "Not measured" not in page
    assert "- **set**: `PATTERN a`" in page
    slower = three([replace(measured, our_seconds=1.0)], [])
    assert "| 2.0 × | 0.333 M/s | 1.67 M/s | 5.0 × | 3 ×, missed |" in slower


@pytest.mark.parametrize("name", run.IN_SQL)
def test_sql_of_kinds_finds_the_matches(contestant: ModuleType, name: str) -> None:
    question = run.KindInSql(KINDS[name], 40_000)
    events = question.events(question.count)
    expected = question.comparable(events, question.answer(events, 1))
    assert expected.num_rows > 0
    connection = duckdb.connect()
    connection.register("events_at_hand", question.stored(events))
    connection.execute("CREATE TABLE events AS FROM events_at_hand")
    contestant.check(connection.sql(question.hand_written()).to_arrow_table(), expected)


def test_kinds_have_entries_of_any_size() -> None:
    (entry,) = run.kind_entries(0.001, ["label_runs"])
    assert (entry.environment, entry.question, entry.events) == ("duckdb", "label_runs", 10_000)
    assert str(run.asked(entry).window) in entry.text
    assert "{" not in entry.text
    group = report.GROUPS[report.KINDS_GROUP]
    assert {each.question for each in group.unasked} == set(KINDS) - set(run.IN_SQL)
    assert len(run.kind_entries()) == len(run.IN_SQL) >= 12


def test_the_page_sums_up_many_kinds() -> None:
    measured = [
        report.Comparison("DuckDB", name, 1_000, 7, 2, ratio, 2 * ratio, 1.0, 1.0, 0.5, "PATTERN a")
        for ratio, name in enumerate(run.IN_SQL[:7], 1)
    ]
    page = report.markdown(report.GROUPS[report.KINDS_GROUP], measured, [], report.surroundings())
    assert "**Wall time: 4 of 7 questions at 4 × or more; median 4.0 ×, least 1.0 ×.**" in page
    assert "**Processor time: 6 of 7 questions at 4 × or more; median 8.0 ×, least 2.0 ×.**" in page


def test_only_the_chosen_group_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(run, "environment", lambda name: SimpleNamespace(missing="no network"))
    assert run.main(["--questions", "kinds", "--kinds", "funnel", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*.md")
    assert path.name.startswith("rivals-kinds-")
    assert "- DuckDB, funnel: no network." in capsys.readouterr().out
