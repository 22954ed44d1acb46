"""The examples in the docs and in public docstrings do what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["builder.md"]
MODULES = [f"gpu_cep.lang.builder.{name}" for name in ("expressions", "functions", "patterns")]


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str) -> None:
    result = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed
