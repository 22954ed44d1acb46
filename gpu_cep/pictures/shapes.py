"""Define the shapes that pictures are made of; coordinates are pixels from the left and from the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INK, GREY, ACCENT, PAPER = "#222222", "#6B6B6B", "#332288", "#FFFFFF"

# Pixels from one line of a text to the next, and the size of its letters.
LEADING, LETTERS = 14, 12

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Look:
    """The colours of one kind of shape; `name` is the kind's CSS class.

    A colour that is None draws no fill, or no outline.
    """

    name: str
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class Letters:
    """The look of one kind of text.

    `at` says which part of a line stands at the text's x. `halo` is a colour around the letters.
    """

    name: str
    fill: str = INK
    at: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    halo: str | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A box with round corners; `x` and `y` are its top left corner, `name` is what it stands for."""

    look: Look
    x: float
    y: float
    width: float
    height: float
    radius: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line between two points, or a Bézier curve: its start, two control points and its end."""

    look: Look
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Area:
    """A filled polygon with these corners."""

    look: Look
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text, with the baseline of the first at `y`."""

    look: Letters
    x: float
    y: float
    lines: tuple[str, ...]


Shape = Box | Line | Area | Text
