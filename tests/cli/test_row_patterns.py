"""The command line answers MATCH_RECOGNIZE, as a pattern and in a statement of SQL."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpu_cep.cli import main
from gpu_cep.errors import UnsupportedError
from tests.statements import FALL, FALLS, TICKS

LINES = ["sym\thigh\tlow", *("\t".join(map(str, fall)) for fall in [FALLS[1], FALLS[0], FALLS[2]])]


@pytest.fixture
def ticks(tmp_path: Path) -> str:
    path = str(tmp_path / "ticks.parquet")
    pq.write_table(TICKS, path)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_match_prints_rows_and_lines_of_json(ticks, capsys):
    assert run(capsys, "match", FALL, ticks) == (0, "\n".join([*LINES, ""]), "")
    code, out, _ = run(capsys, "match", FALL, ticks, "--json", "--limit", "1")
    assert (code, json.loads(out)) == (0, {"sym": "A", "high": 5, "low": 3})


def test_match_writes_a_file_that_can_hold_the_result(ticks, tmp_path, capsys):
    target = tmp_path / "falls.csv"
    assert run(capsys, "match", FALL, ticks, "--out", str(target)) == (0, f"{target}: 3 rows\n", "")
    assert target.read_text().splitlines()[1] == '"A",5,3'
    listed = FALL.replace("ONE", "").replace("PATTERN", "ALL ROWS PER MATCH PATTERN")
    pq.write_table(TICKS.append_column("tags", pa.array([[1]] * 6)), ticks)
    code, _, err = run(capsys, "match", listed, ticks, "--out", str(target))
    assert code == 1
    assert "cannot hold 'tags' (list)" in err


def test_validate(ticks, capsys):
    assert run(capsys, "validate", FALL) == run(capsys, "validate", FALL, ticks) == (0, "the pattern is valid\n", "")
    code, out, _ = run(capsys, "validate", FALL.replace("D.price", "D.prize"), ticks, "--json")
    (fault,) = json.loads(out)["faults"]
    assert (code, fault["message"], fault["line"]) == (1, "unknown column 'prize'", 1)
    code, out, _ = run(capsys, "validate", FALL, ticks, "--strategy", "skip_till_any_match", "--json")
    assert json.loads(out)["valid"] is False


@pytest.mark.parametrize(
    ("command", "more"), [("plot", ["--out", "x.svg"]), ("bench", [])]
)  # fmt: skip
def test_other_commands_refuse_it_by_name(ticks, capsys, command, more):
    code, _, err = run(capsys, command, FALL, ticks, *more)
    assert code == 1
    assert "MATCH_RECOGNIZE is not supported here" in err


def test_explain(ticks, capsys):
    code, out, _ = run(capsys, "explain", FALL, ticks, "--run", "--json")
    found = json.loads(out)
    assert (code, found["counts"]["matches"]) == (0, 3)
    assert "algorithm  ordered automaton over labels" in found["text"]
    assert run(capsys, "explain", FALL, ticks, "--out", "x.svg")[0] == 1


def test_a_report(ticks, tmp_path, capsys):
    target = tmp_path / "falls.html"
    code, out, err = run(capsys, "report", FALL, ticks, "--out", str(target), "--json")
    assert (code, json.loads(out)["counts"]["matches"], err) == (0, 3, "")
    assert "3 matches, 3 rows in the result" in target.read_text(encoding="utf-8")


def test_settings_are_refused_by_their_options(ticks, capsys):
    code, _, err = run(capsys, "match", FALL, ticks, "--output", "count")
    assert code == 1
    assert "--output count is not supported for MATCH_RECOGNIZE" in err


def test_sql_answers_a_statement_or_a_file_of_one(ticks, tmp_path, capsys, monkeypatch):
    text = f"SELECT m.* FROM ticks {FALL} AS m ORDER BY m.sym, m.high DESC"
    (tmp_path / "falls.sql").write_text(text)
    expected = (0, "\n".join([*LINES, ""]), "")
    assert run(capsys, "sql", text, f"ticks={ticks}") == expected
    assert run(capsys, "sql", str(tmp_path / "falls.sql"), f"ticks={ticks}") == expected
    assert run(capsys, "sql", text.replace("ticks", f"'{ticks}'")) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(ticks).read_bytes())))
    assert run(capsys, "sql", text, "ticks=-", "--limit", "1") == (0, "\n".join([*LINES[:2], ""]), "3 rows, the first 1 of them shown\n")
    minutes = text.replace("(S D)", "(S D) WITHIN 1 minute").replace("ticks", "spark")
    assert run(capsys, "sql", minutes, f"spark={ticks}", "--time-unit", "minutes") == expected
    target = tmp_path / "falls.parquet"
    assert run(capsys, "sql", text, f"ticks={ticks}", "--out", str(target)) == (0, f"{target}: 3 rows\n", "")
    assert [tuple(row.values()) for row in pq.read_table(target).to_pylist()] == [FALLS[1], FALLS[0], FALLS[2]]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["SELECT * FROM t", "--time-unit", "fortnights"], 2, "fortnights"),
        (["SELECT * FROM t", "t.parquet"], 2, "a table is given as NAME=FILE, such as ticks=ticks.parquet, not t.parquet"),
        (["SELECT * FROM t", "t=a.csv", "t=b.csv"], 2, "two tables are called t"),
        (["no.sql"], 2, "cannot read the statement no.sql: there is no such file"),
        ([" "], 2, "STATEMENT is empty"),
        (["SELECT * FROM t", "t=no.csv"], 3, "no.csv"),
        (["SELECT * FROM t"], 1, "DuckDB: Catalog Error: Table with name t does not exist; no table is given"),
        (["SELECT 1 AS x", "--out", "x.csv", "--limit", "1"], 2, "leave one of them out"),
        ([f"SELECT *\nFROM 'x' {FALL.replace('MEASURES', 'MEASURE')}"], 1, "found 'MEASURE'"),
    ],
)
def test_faults_of_sql(tmp_path, monkeypatch, capsys, arguments, code, told):
    monkeypatch.chdir(tmp_path)
    found, _, err = run(capsys, "sql", *arguments)
    assert (found, told in err) == (code, True), err


def test_validate_refuses_what_the_engine_cannot_answer(ticks, capsys, monkeypatch):
    def refuse(plan, table, **_):
        assert not table.num_rows
        raise UnsupportedError("too many states")

    monkeypatch.setattr("gpu_cep.engine.row_patterns.answers.answer_row_pattern", refuse)
    assert run(capsys, "validate", FALL, ticks) == (1, "", "gpu-cep: too many states\n")
