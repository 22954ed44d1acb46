"""Turn shapes into the text of an SVG file that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterable
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


def _element(shape: Shape) -> str:
    """Return the element of a shape."""
    match shape:
        case Box():
            place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}" rx="{shape.radius:.1f}"'
            return f'<rect class="{shape.look.name}"{_named(shape.name)} {place}/>'
        case Line():
            start, *others = map(_point, shape.points)
            return f'<path class="{shape.look.name}" d="M{start}{"L" if len(others) == 1 else "C"}{" ".join(others)}"/>'
        case Area():
            return f'<polygon class="{shape.look.name}" points="{" ".join(map(_point, shape.points))}"/>'
        case Text():
            if len(shape.lines) == 1:
                return f'<text class="{shape.look.name}" x="{shape.x:.1f}" y="{shape.y:.1f}">{escape(shape.lines[0])}</text>'
            x, feet = f"{shape.x:.1f}", (shape.y + LEADING * number for number in range(len(shape.lines)))
            spans = (f'<tspan x="{x}" y="{y:.1f}">{escape(line)}</tspan>' for y, line in zip(feet, shape.lines, strict=True))
            return f'<text class="{shape.look.name}">{"".join(spans)}</text>'
    raise NotImplementedError(f"no element of {type(shape).__name__}")


def _point(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def _named(name: str) -> str:
    return f' data-name="{escape(name)}"' if name else ""
