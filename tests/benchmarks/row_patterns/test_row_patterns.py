"""Questions about row patterns are measured beside others that find the same rows, and written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gpu_cep
from benchmarks.baselines.cpp_loops import has_compiler
from benchmarks.row_patterns import peers, run
from benchmarks.row_patterns.questions import KEYS, QUESTIONS, rows_of
from benchmarks.row_patterns.report import RowPatternTimes, lines

BY_NAME = {each.name: each for each in QUESTIONS}


@pytest.mark.skipif(not has_compiler(), reason="no g++")
@pytest.mark.parametrize("partitions", KEYS)
@pytest.mark.parametrize("name", peers.LOOPS)
def test_loops_find_our_rows(name: str, partitions: str) -> None:
    table = rows_of(5_000, KEYS[partitions])
    loop = peers.loop_of(name, table)
    assert loop is not None
    ours = gpu_cep.match(table, f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {BY_NAME[name].clauses})")
    assert len(ours) > 0
    assert peers.agree(ours, loop())
    assert not peers.agree(ours, loop().slice(1))


@pytest.mark.parametrize("name", peers.STATEMENTS)
def test_duckdb_finds_our_rows(name: str) -> None:
    pytest.importorskip("duckdb")
    table = rows_of(5_000, 40)
    asked = peers.statement_of(name, table, 1)
    assert asked is not None
    assert peers.agree(gpu_cep.match(table, f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {BY_NAME[name].clauses})"), asked())


def test_a_run_is_written_down_worst_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["equal rows", "running sum", "V shape, all rows"]
    assert run.main(["--rows", "2000", "--repeats", "1", "--folder", str(tmp_path), "--only", *names]) == 0
    (record,) = tmp_path.glob("*.json")
    found = [RowPatternTimes(**each) for each in json.loads(record.read_text())["questions"]]
    assert [each.question for each in found] == ["V shape, all rows", "equal rows", "running sum"] * len(KEYS)
    assert [each.aimed for each in found[:3]] == [False, True, False]
    rows = [line.split(" | ")[0][2:] for line in "\n".join(lines(found)).splitlines() if line.startswith("| ")][2:]
    assert rows == [each.question for each in sorted(found, key=lambda each: -each.multiple)]
    assert record.with_suffix(".md").read_text() in capsys.readouterr().out


def test_other_rows_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "loop_of", lambda name, table: lambda: table.slice(0, 1).select(["key"]).append_column("t", table["ts"][:1]))
    monkeypatch.setattr(run, "agree", lambda ours, theirs: len(ours) == len(theirs))
    with pytest.raises(ValueError, match="sessions: the rows of another contestant are not ours"):
        run.main(["--rows", "2000", "--repeats", "1", "--folder", str(tmp_path), "--only", "sessions"])
