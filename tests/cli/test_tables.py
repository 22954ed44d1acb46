"""What match prints: aligned on a terminal, lines with tabs in a pipe, and never fewer rows than it says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_cep.cli import main

EVENTS = pa.table(
    {
        "ts": pa.array([0, 1, 2, 4, 90_000], pa.timestamp("s")).cast(pa.timestamp("us")),
        "type": list("ABBAB"),
        "user": ["ann", "ann", "ann", "bo\tb\n", "bo\tb\n"],
        "v": [1.0, 2.0, 3.0, 4.0, 5.5],
        "other": range(5),
    }
)
QUERY = "PATTERN SEQ(A a, B b+) WHERE [user] AND b.v > a.v WITHIN 2 days"
LINES = [
    "user\tmatch_start\tmatch_end\ta\tb",
    "ann\t1970-01-01 00:00:00\t1970-01-01 00:00:02\t00:00:00 v=1.0\t2 events 00:00:01 … 00:00:02 v=2.0 … 3.0",
    "bo\\tb\\n\t1970-01-01 00:00:04\t1970-01-02 01:00:00\t00:00:04 v=4.0\t1970-01-02 01:00:00 v=5.5",
]


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.parquet"
    pa.parquet.write_table(EVENTS, path)
    return str(path)


@pytest.fixture
def many(tmp_path: Path) -> str:
    path = tmp_path / "many.parquet"
    pa.parquet.write_table(pa.table({"ts": range(50)}), path)
    return str(path)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], width: int = 100) -> list[str]:
    """The lines that a command prints on a terminal, without blanks at their ends."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(words) == 0
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()]


def test_a_pipe_gets_a_line_of_each_match_with_tabs(events, capsys):
    assert main(["match", QUERY, events]) == 0
    assert capsys.readouterr() == ("".join(f"{line}\n" for line in LINES), "")


@pytest.mark.parametrize("width", [20, 90])
def test_a_terminal_gets_what_fits_its_width(monkeypatch, capsys, events, width):
    shown = on_a_terminal(monkeypatch, capsys, ["match", QUERY, events], width)
    names, *rows = (line.split("\t") for line in LINES)
    assert shown[0] == "match 0"
    assert [line.split(maxsplit=1) for line in shown[1:6]] == [list(pair) for pair in zip(names, rows[0], strict=True)]
    assert shown[-1] == "2 matches"


def test_a_wide_terminal_gets_a_table(monkeypatch, capsys, events):
    names, _, *rows, told = on_a_terminal(monkeypatch, capsys, ["match", QUERY, events], 130)
    assert [re.split(r"  +", line.strip()) for line in (names, *rows)] == [line.split("\t") for line in LINES]
    assert told == "2 matches"
    widest = max(map(len, (names, *rows)))
    fits, narrow = (on_a_terminal(monkeypatch, capsys, ["match", QUERY, events], width) for width in (widest, widest - 1))
    assert fits[0] == names
    assert narrow[0] == "match 0"


def test_a_terminal_obeys_no_value(monkeypatch, capsys, tmp_path):
    path = tmp_path / "odd.parquet"
    pa.parquet.write_table(pa.table({"ts": [1], "name": ["\x1b[31m[red]"]}), path)
    assert "\\u001b[31m[red]" in on_a_terminal(monkeypatch, capsys, ["match", "PATTERN x RETURN x.name AS name", str(path)])[2]


@pytest.mark.parametrize(
    ("asked", "shown", "told"),
    [
        ([], 20, "50 matches, the first 20 of them shown"),
        (["--limit", "3"], 3, "50 matches, the first 3 of them shown"),
        (["--limit", "50"], 50, "50 matches"),
        (["--limit", "0"], 0, "50 matches, none of them shown"),
        (["--limit", "1", "--output", "events"], 1, "50 rows, the first 1 of them shown"),
    ],
)
def test_a_terminal_shows_the_first_and_says_how_many_there_are(monkeypatch, capsys, many, asked, shown, told):
    _, _, *rows, last = on_a_terminal(monkeypatch, capsys, ["match", "PATTERN x RETURN x.ts AS at", many, *asked])
    assert (len(rows), last) == (shown, told)


@pytest.mark.parametrize(("form", "head"), [([], 1), (["--json"], 0)])
@pytest.mark.parametrize(("asked", "shown", "told"), [([], 50, ""), (["--limit", "3"], 3, "50 matches, the first 3 of them shown\n")])
def test_a_pipe_gets_all_unless_a_limit_is_set(capsys, many, form, head, asked, shown, told):
    assert main(["match", "PATTERN x RETURN x.ts AS at", many, *form, *asked]) == 0
    printed = capsys.readouterr()
    assert (len(printed.out.splitlines()), printed.err) == (head + shown, told)


def test_a_limit_of_what_a_file_holds_is_refused(capsys, many, tmp_path):
    assert main(["match", "PATTERN x", many, "-o", str(tmp_path / "found.parquet"), "--limit", "3"]) == 2
    assert "-o writes all rows" in capsys.readouterr().err
    assert not (tmp_path / "found.parquet").exists()


def test_a_count_is_a_number(monkeypatch, capsys, events):
    assert main(["match", QUERY, events, "--output", "count"]) == 0
    assert capsys.readouterr() == ("2\n", "")
    assert on_a_terminal(monkeypatch, capsys, ["match", QUERY, events, "--output", "count"]) == ["2"]


def test_counts_of_streams_are_a_table(capsys, events):
    assert main(["match", "PATTERN SEQ(A a, B b) WITHIN 2 days", events, "--output", "count", "--partition-by", "user"]) == 0
    assert capsys.readouterr().out == "user\tcount\nann\t1\nbo\\tb\\n\t1\n"


@pytest.mark.parametrize("output", ["events", "indices", "compressed"])
def test_every_output_is_printed(capsys, events, output):
    assert main(["match", QUERY, events, "--output", output]) == 0
    names, *rows = capsys.readouterr().out.splitlines()
    assert rows
    assert all(row.count("\t") == names.count("\t") for row in rows)


def test_machines_get_what_the_library_returns(capsys, events):
    assert main(["match", QUERY, events, "--json", "--limit", "1"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["match_start", "match_end", "a", "b"]


@pytest.mark.parametrize("asked", [[], ["--json"], ["--output", "count"]])
def test_a_closed_stdout_is_told(events, monkeypatch, capsys, asked):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", None)
        assert main(["match", QUERY, events, *asked]) == 4
    assert capsys.readouterr().err == "gpu-cep: cannot write stdout: it is closed\n"


def test_long_values_are_cut_on_a_terminal_only(monkeypatch, capsys, tmp_path):
    path, query = tmp_path / "long.parquet", "PATTERN x RETURN x.name AS name"
    pa.parquet.write_table(pa.table({"ts": [1], "name": ["n" * 1_000]}), path)
    assert main(["match", query, str(path)]) == 0
    assert "n" * 1_000 in capsys.readouterr().out
    assert on_a_terminal(monkeypatch, capsys, ["match", query, str(path)])[3].endswith("n" * 399 + "…")
