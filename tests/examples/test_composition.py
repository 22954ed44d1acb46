"""The composition example: its second query reads what its first one found, locally and on Spark."""

from __future__ import annotations

from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import gpu_cep as cep

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return import_module("composition")


def test_heatings_are_events(example: ModuleType) -> None:
    found = example.heatings(cep.match, example.readings())
    assert found["machine"].to_pylist() == [1, 2, 3, 5, 5]
    assert pa.types.is_timestamp(found.schema.field("match_start").type)
    assert found.schema.field("degrees").type == pa.list_(pa.float64())
    assert found.schema.field("before").type.names == ["ts", "site", "machine", "celsius"]


def test_heatings_spread_from_machine_to_machine(example: ModuleType) -> None:
    first, second = example.cascades(cep.match, example.readings()).to_pylist()
    assert (first["origin"], first["degrees"], first["rise"]) == (1, [54.0, 60.5, 61.0], 9.0)
    assert (second["origin"], second["match_start"], second["delay"]) == (2, datetime(2026, 3, 1, 8, 4), timedelta(minutes=4))
    assert second["before"] == {"ts": datetime(2026, 3, 1, 8, 4), "site": "north", "machine": 2, "celsius": 23.0}


def test_the_example_says_what_it_found(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    assert capsys.readouterr().out.splitlines()[:2] == [
        "08:00  machine 1 (21.0 °C before) rises to [54.0, 60.5, 61.0]",
        "       its neighbour follows 4 minutes later, peaks +9.0 °C",
    ]
