"""Pictures as files: the same shapes in every format, at the same places."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import rcParams
from matplotlib.patches import FancyBboxPatch, Polygon

import gpu_cep as cep
from gpu_cep.pictures import Picture
from gpu_cep.pictures.figure import figure
from gpu_cep.pictures.shapes import Area, Box, Letters, Line, Look, Text

SVG = "{http://www.w3.org/2000/svg}"
INKED, WRITTEN = Look("inked", "#332288", "#222222", 2), Letters("written", at="middle", halo="#FFFFFF")
SHAPES = (
    Box(INKED, 10, 20, 100, 30, 5, "the box"),
    Line(INKED, ((0, 0), (50, 60))),
    Line(INKED, ((0, 0), (10, 60), (20, 60), (30, 0))),
    Area(INKED, ((5, 5), (15, 5), (10, 15))),
    Text(WRITTEN, 60, 70, ("two lines", "$x^{<&")),
)
PICTURE = Picture("sample", 240, 120, SHAPES)


def size_of(png: Path) -> tuple[int, int]:
    held = png.read_bytes()
    assert held.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", held[16:24])
    return width, height


def test_a_picture_has_the_size_of_its_pixels_in_every_format(tmp_path: Path) -> None:
    PICTURE.save(tmp_path / "sample.png")
    assert size_of(tmp_path / "sample.png") == (360, 180)
    PICTURE.save(tmp_path / "sample.pdf")
    assert b"/MediaBox [ 0 0 180 90 ]" in (tmp_path / "sample.pdf").read_bytes()
    drawn = ElementTree.fromstring(PICTURE.svg)
    assert (drawn.get("width"), drawn.get("height"), drawn.get("viewBox")) == ("240", "120", "0 0 240 120")


def test_shapes_are_at_the_same_places_in_svg_and_in_a_figure() -> None:
    drawn, (axes,) = ElementTree.fromstring(PICTURE.svg), figure(240, 120, SHAPES).axes
    rect, polygon, spans = drawn.find(f"{SVG}rect"), drawn.find(f"{SVG}polygon"), drawn.findall(f".//{SVG}tspan")
    assert rect is not None
    assert polygon is not None
    (box,) = (patch for patch in axes.patches if isinstance(patch, FancyBboxPatch))
    assert [float(rect.get(side, "")) for side in ("x", "y", "width", "height")] == [*box.get_bbox().bounds]
    assert rect.get("data-name") == box.get_gid() == "the box"
    (area,) = (patch for patch in axes.patches if isinstance(patch, Polygon))
    points = [[float(place) for place in point.split(",")] for point in polygon.get("points", "").split()]
    np.testing.assert_array_equal(points, area.get_xy()[:3])
    assert [(span.text, float(span.get("x", "")), float(span.get("y", ""))) for span in spans] == [
        (text.get_text(), *text.get_position()) for text in axes.texts
    ]
    assert [text.get_text() for text in axes.texts] == ["two lines", "$x^{<&"]
    assert axes.get_ylim() == (120, 0)


def test_later_shapes_lie_above_earlier_ones() -> None:
    (axes,) = figure(240, 120, SHAPES).axes
    assert [artist.get_zorder() for artist in (*axes.patches, *axes.texts)] == [0, 1, 2, 3, 4, 4]


def test_what_is_no_shape_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="str"):
        figure(1, 1, ["circle"])  # type: ignore[list-item]


def test_the_same_picture_is_the_same_file_whatever_the_users_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix in (".png", ".pdf"):
        PICTURE.save(tmp_path / f"once{suffix}")
    monkeypatch.setitem(rcParams, "font.size", 31.0)
    monkeypatch.setitem(rcParams, "savefig.dpi", 10)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for suffix in (".png", ".pdf"):
        PICTURE.save(tmp_path / f"again{suffix}")
        assert (tmp_path / f"again{suffix}").read_bytes() == (tmp_path / f"once{suffix}").read_bytes()


def test_what_matplotlib_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cep.UnsupportedError, match=r"75,000 pixels on a side, more than a \.png can; supported: \.svg, \.pdf"):
        Picture("sample", 10, 50_000, ()).save(tmp_path / "large.png")
    assert not (tmp_path / "large.png").exists()
    Picture("sample", 10, 50_000, ()).save(tmp_path / "large.pdf")
    assert (tmp_path / "large.pdf").exists()


def test_without_matplotlib_svg_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    PICTURE.save(tmp_path / "sample.svg")
    assert (tmp_path / "sample.svg").read_text(encoding="utf-8") == PICTURE.svg
    with pytest.raises(cep.EngineUnavailable, match=r"pictures in \.png \(unlike those in \.svg\) need matplotlib.*'gpu_cep\[plot\]'"):
        PICTURE.save(tmp_path / "sample.png")


def test_plans_and_waterfalls_are_written_as_pixels(tmp_path: Path) -> None:
    events = pa.table({"ts": range(8), "type": list("AXBXXAXX")})
    explained = cep.explain(events, "PATTERN SEQ(A a, B b) WITHIN 5", run=True)
    explained.save(tmp_path / "plan.png")
    picture = cep.waterfall(explained)
    picture.save(tmp_path / "waterfall.png")
    plan = ElementTree.fromstring(explained.svg())
    assert size_of(tmp_path / "plan.png") == pytest.approx([float(plan.get(side, "")) * 1.5 for side in ("width", "height")], abs=2)
    assert size_of(tmp_path / "waterfall.png") == (round(picture.width * 1.5), round(picture.height * 1.5))
    (axes,) = figure(picture.width, picture.height, picture.shapes).axes
    bars = [patch.get_gid() for patch in axes.patches]
    assert bars == [name for name in ("events", "filtered", "windows", "summarised", "candidates", "matches") if name in bars]
    assert {"events read", "8", "matches", "logarithmic scale"} <= {text.get_text() for text in axes.texts}
