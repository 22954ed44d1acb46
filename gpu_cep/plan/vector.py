"""Drawings as SVG, which needs nothing to be seen: layers from left to right, and arrows between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from gpu_cep.plan.drawing import Arrow, Drawing, Shows, drawings
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.plan import Plan

INK, GREY, ACCENT, PAPER = "#222222", "#6B6B6B", "#332288", "#FFFFFF"

# Pixels: of a character and a line of text, of a node, of what lies between layers at least, and around everything.
_CHARACTER, _LINE, _NODE, _GAP, _MARGIN = 6.7, 14, 30, 56, 16
# Characters.
_LONGEST = 40
# Where on an arrow its text stands: off the middle, where arrows cross.
_PLACE = 0.4
# How high an arrow that skips layers rises for each, and a loop above its node.
_RISE, _LOOP = 34, 26

# For this picture alone: a page that holds it has one set of styles.
_STYLE = "".join(
    f".plan {rule}"
    for rule in (
        f"text{{font:12px system-ui,sans-serif;fill:{INK};text-anchor:middle;paint-order:stroke;stroke:{PAPER};stroke-width:4px}}",
        f".node{{fill:{PAPER};stroke:{ACCENT};stroke-width:1.5}}",
        ".name{stroke:none;font-weight:600}",
        f".complete{{fill:none;stroke:{ACCENT}}}",
        f".arrow{{fill:none;stroke:{GREY}}}",
        f".aside{{text-anchor:start;fill:{GREY}}}",
    )
)

_HEAD = (
    f'<marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0,0L8,4L0,8z" fill="{GREY}"/></marker>'
)


def vector(plan: Plan | IntervalPlan) -> str:
    """The drawings of a plan, one above the other, as the text of one SVG picture."""
    laid = [_Layout.of(drawing) for drawing in drawings(plan)]
    tops = [0.0, *accumulate(each.height for each in laid)]
    width, height = max((each.width for each in laid), default=0.0), tops[-1]
    groups = [f'<g transform="translate(0,{top:.0f})">{"".join(each.elements())}</g>' for top, each in zip(tops, laid, strict=False)]
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="plan" {size}><style>{_STYLE}</style><defs>{_HEAD}</defs>{"".join(groups)}</svg>'


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where everything of a drawing is: the middles of its nodes, and half their widths."""

    drawing: Drawing
    places: tuple[tuple[float, float], ...]
    halves: tuple[float, ...]
    width: float
    height: float

    @classmethod
    def of(cls, drawing: Drawing) -> _Layout:
        halves = tuple(max(18.0, len(_short(node.text)) * _CHARACTER / 2 + 10) for node in drawing.nodes)
        columns = _columns(drawing, halves)
        layers = [[n for n, node in enumerate(drawing.nodes) if node.layer == layer] for layer in range(len(columns))]
        row, rows = _row_height(drawing), max(map(len, layers), default=0)
        top = _MARGIN + _LINE + _headroom(drawing)
        places = {}
        for column, layer in zip(columns, layers, strict=True):
            first = top + row * (rows - len(layer)) / 2 + row / 2
            places.update({n: (column, first + row * number) for number, n in enumerate(layer)})
        aside = max((len(text) for text in (drawing.title, *drawing.notes)), default=0) * _CHARACTER
        edge = max((places[n][0] + half for n, half in enumerate(halves)), default=0.0)
        height = top + row * rows + _LINE * len(drawing.notes) + _MARGIN
        return cls(drawing, tuple(places[n] for n in range(len(halves))), halves, max(edge, aside) + 2 * _MARGIN, height)

    def elements(self) -> Iterator[str]:
        """The drawing's elements, nodes above arrows, texts above both."""
        yield f'<text class="aside" x="{_MARGIN}" y="{_MARGIN + 4}">{escape(self.drawing.title)}</text>'
        straight = [arrow for arrow in self.drawing.arrows if arrow.source != arrow.target]
        texts = []
        for arrow in straight:
            path, place = self._path(arrow)
            yield f'<path class="arrow" d="{path}"{self._head}/>'
            texts.append(_lines(arrow.text, *place))
        for node, text in self._loops().items():
            x, top = self.places[node][0], self.places[node][1] - _NODE / 2
            path = _curve((x - 9, top), (x - 22, top - _LOOP), (x + 22, top - _LOOP), (x + 9, top))
            yield f'<path class="arrow" d="{path}"{self._head}/>'
            texts.append(_lines(text, x, top - _LOOP + 2))
        yield from self._nodes()
        yield from texts
        foot = self.height - _MARGIN - _LINE * (len(self.drawing.notes) - 1)
        for number, note in enumerate(self.drawing.notes):
            yield f'<text class="aside" x="{_MARGIN}" y="{foot + _LINE * number:.1f}">{escape(note)}</text>'

    @property
    def _head(self) -> str:
        return "" if self.drawing.shows is Shows.SITUATIONS else ' marker-end="url(#head)"'

    def _nodes(self) -> Iterator[str]:
        for node, (x, y), half in zip(self.drawing.nodes, self.places, self.halves, strict=True):
            yield _box("node", x, y, half, _NODE / 2)
            if node.complete:
                yield _box("complete", x, y, half - 3, _NODE / 2 - 3)
            yield f'<text class="name" x="{x:.1f}" y="{y + 4:.1f}">{escape(_short(node.text))}</text>'

    def _loops(self) -> dict[int, str]:
        """What repeats at each node, all of a node's loops in one."""
        loops: dict[int, list[str]] = {}
        for arrow in self.drawing.arrows:
            if arrow.source == arrow.target:
                loops.setdefault(arrow.source, []).append(arrow.text)
        return {node: "\n".join(dict.fromkeys("\n".join(texts).split("\n"))) for node, texts in loops.items()}

    def _path(self, arrow: Arrow) -> tuple[str, tuple[float, float]]:
        """An arrow between two nodes, and the place of its text."""
        (x0, y0), (x1, y1) = self.places[arrow.source], self.places[arrow.target]
        x0, x1 = x0 + self.halves[arrow.source], x1 - self.halves[arrow.target]
        skipped = self.drawing.nodes[arrow.target].layer - self.drawing.nodes[arrow.source].layer - 1
        if skipped < 1:
            return f"M{x0:.1f},{y0:.1f}L{x1:.1f},{y1:.1f}", (x0 + _PLACE * (x1 - x0), y0 + _PLACE * (y1 - y0) - 6)
        top = min(y0, y1) - _NODE / 2 - _RISE * skipped
        bend = (x1 - x0) * 0.25
        return _curve((x0, y0), (x0 + bend, top), (x1 - bend, top), (x1, y1)), ((x0 + x1) / 2, (y0 + 3 * top) / 4 - 4)


def _columns(drawing: Drawing, halves: tuple[float, ...]) -> list[float]:
    """The middle of each layer, so far apart that nodes and the texts of arrows between two layers fit."""
    columns: list[float] = []
    edge = float(_MARGIN)
    for layer in range(1 + max((node.layer for node in drawing.nodes), default=-1)):
        half = max((halves[n] for n, node in enumerate(drawing.nodes) if node.layer == layer), default=0.0)
        columns.append(edge + half)
        texts = [arrow.text for arrow in drawing.arrows if drawing.nodes[arrow.source].layer == layer]
        edge += 2 * half + _GAP + max((_width(text) for text in texts), default=0.0)
    return columns


def _row_height(drawing: Drawing) -> float:
    lines = [len(arrow.text.split("\n")) for arrow in drawing.arrows]
    loops = any(arrow.source == arrow.target for arrow in drawing.arrows)
    return _NODE + 18 + _LINE * max(lines, default=0) + (_LOOP if loops else 0)


def _headroom(drawing: Drawing) -> float:
    """What arrows that skip layers need above the first row."""
    nodes = drawing.nodes
    return _RISE * max((nodes[arrow.target].layer - nodes[arrow.source].layer - 1 for arrow in drawing.arrows), default=0)


def _curve(*points: tuple[float, float]) -> str:
    """A path from the first point to the last that bends towards the two between them."""
    start, *others = (f"{x:.1f},{y:.1f}" for x, y in points)
    return f"M{start}C{' '.join(others)}"


def _box(kind: str, x: float, y: float, half: float, rise: float) -> str:
    return f'<rect class="{kind}" x="{x - half:.1f}" y="{y - rise:.1f}" width="{2 * half:.1f}" height="{2 * rise:.1f}" rx="{rise:.1f}"/>'


def _lines(text: str, x: float, bottom: float) -> str:
    """A text whose last line stands at `bottom`, each line short, and whole where a mouse rests on it."""
    if not text:
        return ""
    lines = text.split("\n")
    spans = [
        f'<tspan x="{x:.1f}" y="{bottom - _LINE * (len(lines) - 1 - number):.1f}">{escape(_short(line))}</tspan>'
        for number, line in enumerate(lines)
    ]
    return f"<text>{''.join(spans)}<title>{escape(text)}</title></text>"


def _width(text: str) -> float:
    return max(len(_short(line)) for line in text.split("\n")) * _CHARACTER


def _short(text: str) -> str:
    """The text on one line, without what no file of XML may hold."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
