"""What pictures are made of, in pixels from the left and the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INK, GREY, ACCENT, PAPER = "#222222", "#6B6B6B", "#332288", "#FFFFFF"

# Between the lines of a text, and the size of its letters.
LEADING, LETTERS = 14, 12

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Look:
    """What shapes of one kind look like, by the kind's `name`; no colour is none."""

    name: str
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class Letters:
    """What texts of one kind look like; `at` is which part of a line stands at its place, `halo` what keeps lines off it."""

    name: str
    fill: str = INK
    at: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    halo: str | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A box with round corners by its top left one; `name` is what it stands for."""

    look: Look
    x: float
    y: float
    width: float
    height: float
    radius: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line through two points, or a curve from the first of four to the last that bends towards the others."""

    look: Look
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Area:
    """What lies between the points."""

    look: Look
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text, the foot of the first at `y`; `whole` is all of it, where the lines are short for it."""

    look: Letters
    x: float
    y: float
    lines: tuple[str, ...]
    whole: str = ""


Shape = Box | Line | Area | Text
