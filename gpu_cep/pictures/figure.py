"""Turn shapes into a figure of matplotlib (the extra ``plot``), and figures into the bytes of files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import singledispatch
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from gpu_cep.errors import UnsupportedError
from gpu_cep.pictures.shapes import LEADING, LETTERS, Area, Box, Line, Look, Shape, Text

# Per inch: the pixels of a picture's coordinates, matplotlib's points, and the pixels of a PNG.
_PIXELS, _POINTS, _DOTS = 96, 72, 144
# The most pixels on a side that matplotlib draws.
_MOST_DOTS = 1 << 16
# Coordinates are computed for browsers' fonts; matplotlib's own is wider, and is made smaller by this factor.
_NARROWED = 0.9

# Metadata of files: no date is written, so that the same picture gives the same file.
_ABOUT: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

_STYLE = {
    "savefig.dpi": _DOTS,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gpu_cep",
    "text.parse_math": False,  # a dollar sign in a name is not mathematics
}


def style(own: Mapping[str, Any] | None = None) -> AbstractContextManager[None]:
    """Replace the user's settings by matplotlib's defaults, those that files need, and `own`."""
    return matplotlib.style.context(["default", _STYLE | dict(own or {})])


def render_figure(figure: Figure, suffix: str) -> bytes:
    """Return the bytes of a figure's file in the format of a suffix."""
    target = io.BytesIO()
    figure.savefig(target, format=suffix.removeprefix("."), metadata=_ABOUT[suffix])
    return target.getvalue()


def render_picture(width: float, height: float, shapes: Iterable[Shape], suffix: str) -> bytes:
    """Return the bytes of a file with a picture of that size, in the format of a suffix.

    Raises
    ------
    UnsupportedError
        The picture is larger than a ``.png`` can be.
    """
    dots = max(width, height) * _DOTS / _PIXELS
    if suffix == ".png" and dots >= _MOST_DOTS:
        raise UnsupportedError(f"the picture has {dots:,.0f} pixels on a side, more than a .png can; supported: .svg, .pdf")
    with style():
        return render_figure(figure(width, height, shapes), suffix)


def figure(width: float, height: float, shapes: Iterable[Shape]) -> Figure:
    """Return a figure of that size in pixels, with each shape at its own coordinates."""
    drawn = Figure(figsize=(width / _PIXELS, height / _PIXELS))
    axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for number, shape in enumerate(shapes):
        _draw(shape, axes, number)
    return drawn


@singledispatch
def _draw(shape: Shape, axes: Axes, number: int) -> None:
    """Draw a shape above those with lower numbers."""
    raise NotImplementedError(f"no way to draw {type(shape).__name__}")


@_draw.register
def _(box: Box, axes: Axes, number: int) -> None:
    corners = f"round,pad=0,rounding_size={min(box.radius, box.width / 2)}"
    given: dict[str, Any] = {"gid": box.name} if box.name else {}
    axes.add_patch(FancyBboxPatch((box.x, box.y), box.width, box.height, corners, zorder=number, **given, **_look(box.look)))


@_draw.register
def _(line: Line, axes: Axes, number: int) -> None:
    codes = [Path.MOVETO, *[Path.LINETO if len(line.points) == 2 else Path.CURVE4] * (len(line.points) - 1)]
    axes.add_patch(PathPatch(Path(line.points, codes), zorder=number, **_look(line.look)))


@_draw.register
def _(area: Area, axes: Axes, number: int) -> None:
    axes.add_patch(Polygon(area.points, zorder=number, **_look(area.look)))


@_draw.register
def _(text: Text, axes: Axes, number: int) -> None:
    place = {"start": "left", "middle": "center", "end": "right"}[text.look.at]
    weight = "bold" if text.look.bold else "normal"
    halo = [] if text.look.halo is None else [withStroke(linewidth=_points(4), foreground=text.look.halo)]
    given: dict[str, Any] = {"ha": place, "va": "baseline", "color": text.look.fill, "weight": weight}
    size = _points(_NARROWED * LETTERS)
    for below, line in enumerate(text.lines):
        axes.text(text.x, text.y + LEADING * below, line, fontsize=size, path_effects=halo, zorder=number, **given)


def _look(look: Look) -> dict[str, Any]:
    stroke = {"edgecolor": "none"} if look.stroke is None else {"edgecolor": look.stroke, "linewidth": _points(look.width)}
    return {"facecolor": look.fill or "none", **stroke}


def _points(pixels: float) -> float:
    return pixels * _POINTS / _PIXELS
