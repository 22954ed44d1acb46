"""The examples in the docs and in public docstrings do what they show."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from gpu_cep.analysis.functions import ALIASES, HOST_FUNCTIONS, KERNEL_FUNCTIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    *("algorithms.md", "builder.md", "composition.md", "compressed.md", "intervals.md", "joins.md", "language.md", "mapping.md"),
    *("report.md", "strategies.md", "timelines.md"),
]
MODULES = [f"gpu_cep.lang.builder.{name}" for name in ("expressions", "functions", "patterns")]


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # pages write files
    result = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed


def test_all_scalar_functions_are_listed() -> None:
    text = (DOCS / "language.md").read_text(encoding="utf-8")
    section = text.split("### Scalar functions\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = re.findall(r"`(\w+)\(", " ".join(rows))
    assert sorted(set(listed)) == sorted({*KERNEL_FUNCTIONS, *HOST_FUNCTIONS, *ALIASES})
