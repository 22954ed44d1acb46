"""Lay out drawings as pictures: layers of nodes from left to right, and arrows between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot
from textwrap import wrap

from gpu_cep.pictures import Picture
from gpu_cep.pictures.shapes import ACCENT, GREY, LEADING, PAPER, Area, Box, Letters, Line, Look, Point, Shape, Text
from gpu_cep.plan.drawing import Arrow, Drawing, NodeKind, drawings
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import IntervalPlan

# In pixels: the width of a character, the height of a node of one line, the least gap between layers, the margin, the size of a head.
_CHARACTER, _NODE, _GAP, _MARGIN, _HEAD = 6.7, 30, 56, 16, 8
# In pixels: the gap above and below a row, and between an arrow and its text.
_APART, _ABOVE = 9, 6
# The most characters of a line of text; longer ones are broken.
_LONGEST = 40
# Where along an arrow its text stands: not in the middle, where arrows cross.
_PLACE = 0.4
# In pixels: the rise of an arrow per layer that it skips, and the height of a loop above its node.
_RISE, _LOOP = 34, 26

_BOX, _COMPLETE = Look("node", PAPER, ACCENT, 1.5), Look("complete", None, ACCENT)
_ARROW, _TIP = Look("arrow", None, GREY), Look("head", GREY)
_NAME, _LABEL, _ASIDE = Letters("name", at="middle", bold=True), Letters("label", at="middle", halo=PAPER), Letters("aside", GREY)


def vector(plan: EventPlan | IntervalPlan) -> Picture:
    """Return one picture of all drawings of a plan, one below the other."""
    laid: list[_Layout] = []
    for drawing in drawings(plan):
        laid.append(_Layout.of(drawing, laid[-1].foot if laid else 0.0))
    width, height = max((each.width for each in laid), default=0.0), laid[-1].foot if laid else 0.0
    return Picture("plan", width, height, tuple(shape for each in laid for shape in each.shapes()))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the nodes of a drawing lie, in pixels.

    `places`: the middle of each node. `halves`: half the width of each node. `rise`: half the height of all nodes.
    `reaches`: half the width of each node with the texts of its loops.
    `width`, `top`, `foot`: the extent of the drawing.
    """

    drawing: Drawing
    places: tuple[tuple[float, float], ...]
    halves: tuple[float, ...]
    reaches: tuple[float, ...]
    rise: float
    width: float
    top: float
    foot: float

    @classmethod
    def of(cls, drawing: Drawing, top: float) -> _Layout:
        """Return the layout of a drawing below `top`: a column for each layer, in the middle of the tallest."""
        halves = tuple(max(18.0, _width(node.text) / 2 + 10) for node in drawing.nodes)
        rise = (_NODE + LEADING * (max((len(_lines(node.text)) for node in drawing.nodes), default=1) - 1)) / 2
        loops = _loops(drawing)
        reaches = tuple(max(half, _width(loops.get(n, "")) / 2) for n, half in enumerate(halves))
        columns = _columns(drawing, reaches)
        layers = [[n for n, node in enumerate(drawing.nodes) if node.layer == layer] for layer in range(len(columns))]
        above, rows = _room_above(drawing, rise), max(map(len, layers), default=0)
        row = above + rise + _APART
        begin = top + _MARGIN + LEADING + _headroom(drawing)
        places = {}
        for column, layer in zip(columns, layers, strict=True):
            first = begin + row * (rows - len(layer)) / 2 + above
            places.update({n: (column, first + row * number) for number, n in enumerate(layer)})
        aside = max((len(text) for text in (drawing.title, *drawing.notes)), default=0) * _CHARACTER
        edge = max((places[n][0] + reach for n, reach in enumerate(reaches)), default=0.0)
        foot = begin + row * rows + LEADING * len(drawing.notes) + _MARGIN
        middles = tuple(places[n] for n in range(len(halves)))
        return cls(drawing, middles, halves, reaches, rise, max(edge, aside) + 2 * _MARGIN, top, foot)

    def shapes(self) -> Iterator[Shape]:
        """Yield the shapes of the drawing: nodes above arrows, texts above both."""
        yield Text(_ASIDE, _MARGIN, self.top + _MARGIN + 4, (self.drawing.title,))
        texts = []
        for arrow in self.drawing.arrows:
            if arrow.source != arrow.target:
                points, place = self._path(arrow)
                yield from self._arrow(points)
                texts.append(_text(arrow.text, place))
        for node, text in _loops(self.drawing).items():
            x, top = self.places[node][0], self.places[node][1] - self.rise
            yield from self._arrow(((x - 9, top), (x - 22, top - _LOOP), (x + 22, top - _LOOP), (x + 9, top)))
            texts.append(_text(text, (x, top - _LOOP + 2)))
        yield from self._nodes()
        yield from (text for text in texts if text is not None)
        below = self.foot - _MARGIN - LEADING * (len(self.drawing.notes) - 1)
        for number, note in enumerate(self.drawing.notes):
            yield Text(_ASIDE, _MARGIN, below + LEADING * number, (note,))

    def _arrow(self, points: tuple[Point, ...]) -> Iterator[Shape]:
        yield Line(_ARROW, points)
        if self.drawing.shows is not NodeKind.SITUATIONS:
            yield _head(points[-2], points[-1])

    def _nodes(self) -> Iterator[Shape]:
        for node, (x, y), half in zip(self.drawing.nodes, self.places, self.halves, strict=True):
            yield _box(_BOX, x, y, half, self.rise)
            if node.complete:
                yield _box(_COMPLETE, x, y, half - 3, self.rise - 3)
            lines = _lines(node.text)
            yield Text(_NAME, x, y + 4 - LEADING * (len(lines) - 1) / 2, lines)

    def _path(self, arrow: Arrow) -> tuple[tuple[Point, ...], Point]:
        """Return the points of an arrow between two nodes, and the point at the foot of its text."""
        (x0, y0), (x1, y1) = self.places[arrow.source], self.places[arrow.target]
        x0, x1 = x0 + self.halves[arrow.source], x1 - self.halves[arrow.target]
        skipped = self.drawing.nodes[arrow.target].layer - self.drawing.nodes[arrow.source].layer - 1
        if skipped < 1:
            x = self._text_place(arrow)
            return ((x0, y0), (x1, y1)), (x, y0 + (y1 - y0) * (x - x0) / (x1 - x0) - _ABOVE)
        top = min(y0, y1) - self.rise - _RISE * skipped
        bend = (x1 - x0) * 0.25
        return ((x0, y0), (x0 + bend, top), (x1 - bend, top), (x1, y1)), ((x0 + x1) / 2, (y0 + 3 * top) / 4 - 4)

    def _text_place(self, arrow: Arrow) -> float:
        """Return the x coordinate of the middle of an arrow's text: between the texts of its nodes' loops."""
        left, right = self.places[arrow.source][0] + self.reaches[arrow.source], self.places[arrow.target][0] - self.reaches[arrow.target]
        half = _width(arrow.text) / 2
        return min(max(left + _PLACE * (right - left), left + half), right - half)


def _columns(drawing: Drawing, halves: tuple[float, ...]) -> list[float]:
    """Return the x coordinate of each layer; there is room between them for nodes and the texts of arrows."""
    columns: list[float] = []
    edge = float(_MARGIN)
    for layer in range(1 + max((node.layer for node in drawing.nodes), default=-1)):
        half = max((halves[n] for n, node in enumerate(drawing.nodes) if node.layer == layer), default=0.0)
        columns.append(edge + half)
        texts = [arrow.text for arrow in drawing.arrows if drawing.nodes[arrow.source].layer == layer]
        edge += 2 * half + _GAP + max((_width(text) for text in texts), default=0.0)
    return columns


def _loops(drawing: Drawing) -> dict[int, str]:
    """Return the text of each node's loops, all of a node in one."""
    loops: dict[int, list[str]] = {}
    for arrow in drawing.arrows:
        if arrow.source == arrow.target:
            loops.setdefault(arrow.source, []).append(arrow.text)
    return {node: "\n".join(dict.fromkeys("\n".join(texts).split("\n"))) for node, texts in loops.items()}


def _room_above(drawing: Drawing, rise: float) -> float:
    """Return the height above the middle of a row that its nodes, arrows, loops and their texts need."""
    arrows = max((_ABOVE + _height(arrow.text) for arrow in drawing.arrows if arrow.source != arrow.target), default=0)
    loops = max((rise + _LOOP + _height(text) for text in _loops(drawing).values()), default=0)
    return max(rise, arrows, loops) + _APART


def _headroom(drawing: Drawing) -> float:
    """Return the height above the first row that arrows across several layers need."""
    nodes = drawing.nodes
    return _RISE * max((nodes[arrow.target].layer - nodes[arrow.source].layer - 1 for arrow in drawing.arrows), default=0)


def _head(before: Point, tip: Point) -> Area:
    """Return the triangle at the tip of an arrow that comes from the point `before`."""
    along, across = tip[0] - before[0], tip[1] - before[1]
    length = hypot(along, across)
    along, across = _HEAD * along / length, _HEAD * across / length
    back = (tip[0] - along, tip[1] - across)
    return Area(_TIP, (tip, (back[0] - across / 2, back[1] + along / 2), (back[0] + across / 2, back[1] - along / 2)))


def _box(look: Look, x: float, y: float, half: float, rise: float) -> Box:
    return Box(look, x - half, y - rise, 2 * half, 2 * rise, rise)


def _text(text: str, foot: Point) -> Text | None:
    """Return a text whose last line stands at `foot`, None if it is empty."""
    lines = _lines(text)
    return Text(_LABEL, foot[0], foot[1] - LEADING * (len(lines) - 1), lines) if text else None


def _width(text: str) -> float:
    return max(map(len, _lines(text))) * _CHARACTER


def _height(text: str) -> float:
    return LEADING * len(_lines(text))


def _lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text without characters that XML forbids, long ones broken into several."""
    printable = ("".join(character if character.isprintable() else " " for character in line) for line in text.split("\n"))
    return tuple(part for line in printable for part in wrap(line, _LONGEST, break_on_hyphens=False) or [""])
