"""Turn shapes into the text of an SVG file that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from html import escape

from gpu_cep.pictures.shapes import INK, LEADING, LETTERS, Area, Box, Letters, Line, Look, Point, Shape, Text


def svg(name: str, width: float, height: float, shapes: Iterable[Shape]) -> str:
    """Return the text of a picture of that size.

    Its style rules apply inside the class `name` only, not to the rest of a page that holds it.
    """
    drawn = tuple(shapes)
    rules = [f"text{{font:{LETTERS}px system-ui,sans-serif;fill:{INK}}}", *map(_rule, dict.fromkeys(shape.look for shape in drawn))]
    style = "".join(f".{name} {rule}" for rule in rules)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" {size}><style>{style}</style>{"".join(map(_element, drawn))}</svg>'


def _rule(look: Look | Letters) -> str:
    declared = _letters(look) if isinstance(look, Letters) else _look(look)
    return f".{look.name}{{{';'.join(f'{name}:{value}' for name, value in declared.items())}}}"


def _look(look: Look) -> dict[str, str]:
    drawn = {"fill": look.fill or "none"}
    return drawn if look.stroke is None else drawn | {"stroke": look.stroke, "stroke-width": f"{look.width:g}"}


def _letters(letters: Letters) -> dict[str, str]:
    written = {"fill": letters.fill, "text-anchor": letters.at}
    if letters.bold:
        written |= {"font-weight": "600"}
    if letters.halo is not None:
        written |= {"paint-order": "stroke", "stroke": letters.halo, "stroke-width": "4px"}
    return written


@singledispatch
def _element(shape: Shape) -> str:
    raise NotImplementedError(f"no element of {type(shape).__name__}")


@_element.register
def _(box: Box) -> str:
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{box.radius:.1f}"'
    return f'<rect class="{box.look.name}"{_named(box.name)} {place}/>'


@_element.register
def _(line: Line) -> str:
    start, *others = map(_point, line.points)
    return f'<path class="{line.look.name}" d="M{start}{"L" if len(others) == 1 else "C"}{" ".join(others)}"/>'


@_element.register
def _(area: Area) -> str:
    return f'<polygon class="{area.look.name}" points="{" ".join(map(_point, area.points))}"/>'


@_element.register
def _(text: Text) -> str:
    if len(text.lines) == 1:
        return f'<text class="{text.look.name}" x="{text.x:.1f}" y="{text.y:.1f}">{escape(text.lines[0])}</text>'
    x, feet = f"{text.x:.1f}", (text.y + LEADING * number for number in range(len(text.lines)))
    spans = (f'<tspan x="{x}" y="{y:.1f}">{escape(line)}</tspan>' for y, line in zip(feet, text.lines, strict=True))
    return f'<text class="{text.look.name}">{"".join(spans)}</text>'


def _point(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def _named(name: str) -> str:
    return f' data-name="{escape(name)}"' if name else ""
