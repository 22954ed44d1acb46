"""The command line matches and checks rule sets."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_cep as cep
from gpu_cep.cli import main
from tests.cli.forms import EVENTS

RULES = {"up": "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.v AS low", "late": "PATTERN SEQ(B a) WHERE a.v > 4 RETURN a.v AS low"}


def rules_file(folder: Path, rules: object = RULES) -> str:
    path = folder / "rules.json"
    path.write_text(json.dumps(rules))
    return str(path)


def test_match_prints_the_name_of_the_pattern_first(tmp_path, events, capsys):
    assert main(["match", events, "--rules", rules_file(tmp_path), "--json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == cep.match_all(EVENTS, RULES).to_pylist()
    assert printed[0]["pattern"] == "up"


def test_match_writes_one_table(tmp_path, events, capsys):
    folder = tmp_path / "rules"
    folder.mkdir()
    for name, text in RULES.items():
        (folder / f"{name}.cep").write_text(text)
    out = tmp_path / "found.parquet"
    assert main(["match", events, "--rules", str(folder), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 3 rows\n"
    assert pa.parquet.read_table(out).to_pylist() == cep.match_all(EVENTS, dict(sorted(RULES.items()))).to_pylist()


def test_a_pattern_that_fails_is_reported_if_asked_for(tmp_path, events, capsys):
    rules = rules_file(tmp_path, RULES | {"wrong": "PATTERN SEQ(A a) WHERE a.w > 1"})
    assert main(["match", events, "--rules", rules]) == 1
    assert "pattern 'wrong': unknown attribute 'w'" in capsys.readouterr().err
    assert main(["match", events, "--rules", rules, "--on-error", "report", "--output", "count", "--json"]) == 0
    told = capsys.readouterr()
    assert "gpu-cep: warning: line 1, column 24: pattern 'wrong': unknown attribute 'w'" in told.err
    assert [json.loads(line) for line in told.out.splitlines()] == [{"pattern": "up", "count": 2}, {"pattern": "late", "count": 1}]


def test_validate_tells_all_faults_by_name(tmp_path, events, capsys):
    fine = rules_file(tmp_path)
    assert main(["validate", "--rules", fine]) == main(["validate", events, "--rules", fine]) == 0
    assert capsys.readouterr().out == "2 patterns are valid\n" * 2
    wrong = rules_file(tmp_path, RULES | {"x": "PATTERN SEQ(A a", "y": "PATTERN SEQ(A a) WHERE a.w > 1"})
    assert main(["validate", "--rules", wrong, "--json"]) == 1
    assert list(json.loads(capsys.readouterr().out)["faults"]) == ["x"]
    assert main(["validate", events, "--rules", wrong, "--json"]) == 1
    assert list(json.loads(capsys.readouterr().out)["faults"]) == ["x", "y"]
    assert main(["validate", events, "--rules", wrong]) == 1
    told = capsys.readouterr().err
    assert "pattern 'x'" in told
    assert "pattern 'y'" in told


def test_text_is_read_as_times_for_all_rules(tmp_path, capsys):
    (tmp_path / "events.csv").write_text("at;type\n01.02.2026;A\n03.02.2026;B\n")
    rules = rules_file(tmp_path, {"rules": {"one": "PATTERN SEQ(A a, B b) WITHIN 5 days"}, "options": {"timestamp": "at"}})
    found = main(["match", str(tmp_path / "events.csv"), "--rules", rules, "--timestamp-format", "%d.%m.%Y", "--output", "count", "--json"])
    assert found == 0
    assert json.loads(capsys.readouterr().out) == {"pattern": "one", "count": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", "PATTERN SEQ(A a)", "{events}", "--rules", "{rules}"], "--rules stands for PATTERN"),
        (["match", "--rules", "{rules}"], "EVENTS is missing"),
        (["match", "PATTERN SEQ(A a)"], "EVENTS is missing"),
        (["match"], "PATTERN is missing"),
        (["validate"], "PATTERN is missing"),
    ],
)
def test_what_is_missing_or_too_much_is_told(tmp_path, events, capsys, arguments, message):
    filled = [each.format(events=events, rules=rules_file(tmp_path)) for each in arguments]
    assert main(filled) == 2
    assert message in capsys.readouterr().err
