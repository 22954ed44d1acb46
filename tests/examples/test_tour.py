"""The notebook is kept with what its cells give, and each of its pictures is there to be shown."""

from __future__ import annotations

import re
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
# Durations, each with its unit or in a table's cell, and lengths of pages that hold them; and timelines, which each release of
# matplotlib draws a little differently.
VARYING = re.compile(r"\d[\d.,e-]*(?= m?s\b| characters\b)|(?<=<td>)[\d.]+(?=</td>)|<template.*?</template>", re.DOTALL)


@pytest.fixture(scope="module")
def stored() -> list[dict[str, str]]:
    return results(nbformat.read(ROOT / "examples" / "tour.ipynb", as_version=4))


def results(notebook: Any) -> list[dict[str, str]]:
    """What each cell of code with a result shows, in each form that it has."""
    return [output.data for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def comparable(result: dict[str, str]) -> dict[str, str]:
    """A result without what varies from run to run; of a timeline, only which forms it has."""
    drawn_by_matplotlib = "image/png" in result
    return {kind: "" if drawn_by_matplotlib else VARYING.sub("", unescape(text)) for kind, text in result.items()}


def test_the_notebook_shows_what_its_cells_give(stored: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    given = results(import_module("tour_outputs").executed(tmp_path))
    assert [comparable(result) for result in given] == [comparable(result) for result in stored]
    assert (tmp_path / "tour.html").stat().st_size > 10_000


def test_the_notebook_has_a_picture_of_everything(stored: list[dict[str, str]]) -> None:
    overheated, timeline, situations, automaton, waterfall, again, report = stored
    assert "<table" in overheated["text/html"]
    assert {"image/png", "image/svg+xml"} <= set(timeline)
    assert all("<svg" in each["text/html"] for each in (situations, automaton))
    assert "<svg" in waterfall["image/svg+xml"]
    assert int(again["text/plain"]) > 0
    assert report["text/html"].startswith("<iframe")
