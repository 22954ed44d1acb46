"""Matches of files larger than memory are written part by part, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import gpu_cep as cep
from gpu_cep.cli import files, main
from gpu_cep.engine.input import readers
from tests.cli.forms import read_ipc

EVENTS = pa.table({"ts": range(400), "type": ["A", "B"] * 200, "x": [*range(399), 2**63 - 1]})
QUERY = "PATTERN SEQ(A a, B b) WITHIN 3 RETURN a.x AS low, b.ts AS at"
LATE = "PATTERN SEQ(A a, B b) WHERE b.x + 1 > 0 WITHIN 3 RETURN a.x AS low"


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_MANY_ROWS", 0)
    monkeypatch.setattr(files, "_MANY_ROWS", 30)


@pytest.fixture
def events(tmp_path: Path) -> str:
    pa.parquet.write_table(EVENTS, tmp_path / "events.parquet", row_group_size=10)
    return str(tmp_path / "events.parquet")


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        (".parquet", pa.parquet.read_table),
        (".arrow", read_ipc),
        (".csv", pa.csv.read_csv),
        (".csv.gz", pa.csv.read_csv),
        (".tsv", lambda path: pa.csv.read_csv(path, parse_options=pa.csv.ParseOptions(delimiter="\t"))),
    ],
)
def test_parts_make_the_same_file(tmp_path: Path, events: str, suffix: str, read: Callable[[Path], Any], capsys) -> None:
    out = tmp_path / f"found{suffix}"
    assert main(["match", QUERY, events, "--memory", "8000", "-o", str(out)]) == 0
    assert read(out).equals(cep.match(EVENTS, QUERY))
    assert capsys.readouterr().out == f"{out}: 200 rows\n"
    if suffix == ".parquet":
        assert pa.parquet.read_metadata(out).num_row_groups > 2


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_an_error_in_a_late_part_leaves_the_old_file(tmp_path: Path, events: str, suffix: str, capsys) -> None:
    out = tmp_path / f"found{suffix}"
    out.write_bytes(b"old")
    assert main(["match", LATE, events, "--memory", "8000", "-o", str(out)]) == 3
    assert "overflow" in capsys.readouterr().err
    assert out.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.parquet", out.name]


def test_a_wrong_size_is_told(events: str, capsys) -> None:
    assert main(["match", QUERY, events, "--memory", "much"]) == 1
    assert "memory must be a number of bytes" in capsys.readouterr().err
