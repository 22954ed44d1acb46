"""The benchmark of keys under Spark: its events, and what a run adds to the record of its day."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

pytest.importorskip("pyspark")

from benchmarks.record import arguments, machine, pages
from benchmarks.spark import keys, times
from benchmarks.spark.keys import Line
from benchmarks.spark.times import SparkSeconds


def line(number: int, skewed: bool, seconds: float) -> dict[str, Any]:
    ways = SparkSeconds(seconds, 1.0), SparkSeconds(4.0, 2.0), SparkSeconds(3.0, 1.0), SparkSeconds(2.0, 1.0), SparkSeconds(1.0, 1.5)
    return asdict(Line(number, skewed, *ways, 7, 2, "streams are whole", "2 slices of time"))


def asked(options: argparse.Namespace) -> dict[str, Any]:
    return {keys.column(number, skewed=skewed): line(number, skewed, options.repeats) for number, skewed in keys.lines(options.keys)}


def test_keys_do_not_depend_on_the_others_that_are_asked() -> None:
    alone, both = keys.events(1_000, [10]), keys.events(1_000, [2, 10])
    assert alone == both.select(alone.column_names)
    assert set(both.column_names) == {"ts", "type", "x", "even2", "zipf2", "even10", "zipf10"}
    assert both["even10"] != both["zipf10"]


def test_a_run_adds_its_lines_to_the_record_of_its_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "RESULTS", tmp_path)
    monkeypatch.setattr(keys, "ask", asked)
    assert keys.main(["--keys", "10", "50", "--repeats", "2"]) == 0
    assert keys.main(["--keys", "1", "10", "--repeats", "3"]) == 0
    (path,) = tmp_path.glob("*.json")
    record = pages.read(path)
    assert list(record["questions"]) == ["even1", "even10", "zipf10", "even50", "zipf50"]
    assert [each["bare"]["clock"] for each in record["questions"].values()] == [3, 3, 3, 2, 2]
    assert [each["repeats"] for each in record["measured"].values()] == [3, 3, 3, 2, 2]
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert "| 10 | Zipf | 3.00 s | 4.00 s | 3.00 s | 0.75 | 0.50 | 1.00 | 1.00 | 2 | streams are whole |" in page
    assert "| 10 | Zipf | 2.00 s | 1.00 s | 0.50 | 1.50 | 2 slices of time |" in page
    assert "best of 2. even50, zipf50." in page


def test_other_queries_and_numbers_have_records_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "RESULTS", tmp_path)
    monkeypatch.setattr(keys, "ask", asked)
    others = (["--events", "400"], ["--rows", "500"], ["--events", "400", "--rows", "500"], ["--groups", "20"], ["--query", "situations"])
    for options in ([], *others):
        assert keys.main(["--keys", "1", *options]) == 0
    assert {tuple(each[what] for what in ("query", "events", "rows", "groups")) for each in map(pages.read, tmp_path.glob("*.json"))} == {
        (keys.SEQUENCE, keys.EVENTS, keys.ROWS, keys.ROW_GROUPS), (keys.SEQUENCE, 400, keys.ROWS, keys.ROW_GROUPS),
        (keys.SEQUENCE, keys.EVENTS, 500, keys.ROW_GROUPS), (keys.SEQUENCE, 400, 500, keys.ROW_GROUPS),
        (keys.SEQUENCE, keys.EVENTS, keys.ROWS, 20), ("situations", keys.EVENTS, keys.ROWS, keys.ROW_GROUPS),
    }  # fmt: skip
    names = sorted(path.name.split("-amd")[0] for path in tmp_path.glob("*.json"))
    assert len(names) == 6


def test_a_run_with_other_packages_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(arguments, "RESULTS", tmp_path)
    monkeypatch.setattr(keys, "ask", asked)
    assert keys.main(["--keys", "1"]) == 0
    monkeypatch.setattr(machine, "package_version", lambda package: "0")
    assert keys.main(["--keys", "10"]) == 2
    assert "move it away, or add --no-record" in capsys.readouterr().err
    assert keys.main(["--keys", "10", "--no-record"]) == 0
    (path,) = tmp_path.glob("*.json")
    assert list(pages.read(path)["questions"]) == ["even1"]


def test_a_worker_that_ends_takes_nothing_back() -> None:
    busy = "import time\nwhile time.process_time() < 0.3:\n    pass\nprint(flush=True)\ninput()"
    with Popen([sys.executable, "-c", busy], stdin=PIPE, stdout=PIPE) as worker:
        began = times.own_ticks()
        assert worker.stdout is not None
        worker.stdout.readline()
        assert times.seconds_since(began) >= 0.2
        waiting = times.own_ticks()
        worker.communicate(b"\n")
    assert 0 <= times.seconds_since(waiting) < 0.2
