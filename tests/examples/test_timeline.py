"""The picture of the aggressive driver: what the example finds, and the picture of it in the docs."""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import gpu_cep as cep

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "aggressive-driver.svg"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return import_module("timeline")


def said(svg: str) -> set[str]:
    return {"".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}


def bars(svg: str) -> dict[str, str]:
    """The outline of each situation."""
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return {group.get("id", ""): group.find(f"{SVG}path").get("d") for group in groups if group.get("id") in ("A", "B", "C")}


def test_one_of_two_drivers_is_aggressive(example: ModuleType) -> None:
    for detect, second in (("early", 19), ("final", 20)):
        (found,) = cep.match(example.reports(), example.AGGRESSIVE_DRIVERS, detect=detect).to_pylist()
        assert found["id"] == 7
        assert found["detected_at"] == datetime(2026, 3, 1, 8, 0, second)


def test_the_docs_show_the_examples_picture(example: ModuleType) -> None:
    committed, drawn = PICTURE.read_text(encoding="utf-8"), example.picture()._repr_svg_()
    assert said(committed) == said(drawn)
    assert bars(committed).keys() == bars(drawn).keys() == {"A", "B", "C"}
    assert PICTURE.stat().st_size < 60_000


def test_the_example_writes_its_picture(example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example.main(str(tmp_path / "driver.png"))
    assert (tmp_path / "driver.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == f"car 7 at 08:00:19, 105 mph on average: {tmp_path / 'driver.png'}\n"
