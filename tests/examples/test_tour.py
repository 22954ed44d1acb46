"""The notebook runs from its first cell to its last, and each of its pictures is there to be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "tour.ipynb"


def run_cells() -> list[Any]:
    """What each cell of code ends with, as a notebook runs them: one after the other, in one namespace."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {}
    return [run_cell("".join(cell["source"]), namespace) for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, namespace: dict[str, Any]) -> Any:
    statements = ast.parse(source).body
    last = statements.pop() if isinstance(statements[-1], ast.Expr) else None
    exec(compile(ast.Module(statements, []), str(NOTEBOOK), "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), namespace)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tour"))
        results = run_cells()
        assert Path("tour.html").stat().st_size > 10_000
    return [result for result in results if result is not None]


def test_the_queries_find_something(shown: list[Any]) -> None:
    overheated, _, situations, automaton, _, again, _ = shown
    assert len(overheated) > 1
    assert situations.counts["matches"] > 1
    assert automaton.counts["matches"] > 1
    assert again > 0


def test_a_notebook_has_a_picture_of_everything(shown: list[Any]) -> None:
    overheated, timeline, situations, automaton, waterfall, _, report = shown
    assert "<table" in overheated._repr_html_()
    assert timeline._repr_png_().startswith(b"\x89PNG")
    assert situations._repr_html_().startswith("<svg")
    assert automaton._repr_html_().startswith("<svg")
    assert waterfall._repr_svg_().startswith("<svg")
    assert report._repr_html_().startswith("<iframe")


def test_the_notebook_is_kept_without_results() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
