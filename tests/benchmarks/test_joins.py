"""The questions by which joins are timed have matches, and algorithms agree on them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("joins")


def test_algorithms_agree(joins: ModuleType) -> None:
    rows = [joins.measured(question, 20_000, 1) for question in joins.QUESTIONS]
    assert sum(row.matches > 0 for row in rows) >= 5
    assert all(f"| {row.question.name} | {row.matches:,} |" in joins.markdown(rows, "") for row in rows)
