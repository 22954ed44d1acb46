"""The pictures of the docs, drawn from what queries find; ``make pages`` writes them to ``docs/pictures``.

A picture of matches has the stream in its first row, a colour for each key, and
under it a row for each match: the events that it binds with their variables,
and a dot for each event of its key that it passes over. A picture of a plan
is the automaton that :func:`gpu_cep.explain` draws. The picture of Allen's
relations shows the situations that a query for each finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
from chemo import chemo

import gpu_cep as cep
from gpu_cep.lang.ast import STRATEGIES

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
COLOURS = ("#2a9d8f", "#e76f51", "#5b6abf", "#b5892b")
STEP, ROW, MARGIN, RADIUS = 46, 34, 16, 15
TICK, BAR, BLOCK = 34, 15, 54

CYCLES = """
    PATTERN SEQ(AND(C c, P p+, D d), B b)
    WHERE skip_till_next_match { [pid] AND prev(p.v) < p.v }
    WITHIN 15 days
"""
# Each relation with the start and the end of an A and of a B that are related so.
RELATIONS = {
    "before": ((1, 4), (6, 10)),
    "meets": ((1, 5), (5, 10)),
    "overlaps": ((1, 6), (4, 10)),
    "starts": ((2, 6), (2, 10)),
    "during": ((4, 7), (2, 10)),
    "finishes": ((2, 9), (5, 9)),
    "equals": ((2, 9), (2, 9)),
}
TRADES = """
    PATTERN SEQ(A a, B b, C c)
    WHERE [k] AND b.v < c.v
"""


@dataclass(frozen=True, slots=True)
class Stream:
    """Events, and what is drawn of each: a text in its circle, its key, which gives the colour, and a text below."""

    events: pa.Table
    texts: Sequence[str]
    keys: Sequence[Any]
    below: Sequence[str]


def cycles() -> Stream:
    """Return the thesis' events of chemotherapy treatments (fig. 3.1), a colour for each patient."""
    events = chemo().rename_columns(["pid", "type", "v", "unit", "ts"])
    days = [str(time.day) for time in events["ts"].to_pylist()]
    return Stream(events, events["type"].to_pylist(), events["pid"].to_pylist(), [f"{days[0]} July", *days[1:]])


def trades() -> Stream:
    """Return the stream by which the docs explain strategies: type and value of each event, and a key."""
    texts, keys = "A1 A2 A3 B7 X0 B5 B3 B4 C9 C5 C6 C8 A4 B1 C2".split(), "pqrpqrpqrppqsss"
    columns = {"type": [text[0] for text in texts], "v": [int(text[1:]) for text in texts], "k": list(keys)}
    return Stream(pa.table({"ts": range(1, len(texts) + 1), **columns}), texts, keys, list(keys))


def matches_picture(stream: Stream, query: str, **options: Any) -> str:
    """Return the picture of the stream and of the matches of `query` in it."""
    matches = cep.match(stream.events, query, output="indices", **options).to_pylist()
    rows = [_stream_row(stream), *(_match_row(stream, match, number) for number, match in enumerate(matches, 1))]
    width, height = 2 * MARGIN + STEP * stream.events.num_rows, 2 * MARGIN + 20 + ROW * len(rows)
    return _svg(width, height, (element for row in rows for element in row))


def relations_picture() -> str:
    """Return the picture of a pair of situations for each relation, as the query finds them."""
    rows = [_relation_row(relation, *situations, row) for row, (relation, situations) in enumerate(RELATIONS.items())]
    width, height = 2 * MARGIN + 130 + 10 * TICK, 2 * MARGIN + BLOCK * len(rows)
    return _svg(width, height, (element for row in rows for element in row))


def pictures() -> dict[str, str]:
    """Return every picture, by the name of its file."""
    drawn = {"relations.svg": relations_picture()}
    drawn |= {f"{strategy}.svg": matches_picture(trades(), TRADES, strategy=strategy) for strategy in STRATEGIES}
    return drawn | {"plan.svg": cep.explain(cycles().events, CYCLES).svg(), "matches.svg": matches_picture(cycles(), CYCLES)}


def _svg(width: float, height: float, elements: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    style = 'font-family="Helvetica, Arial, sans-serif" font-size="13" text-anchor="middle"'
    ground = f'<rect width="{width:g}" height="{height:g}" rx="6" fill="#ffffff"/>'
    return "\n".join([f"{head} {style}>", ground, *elements, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, fill: str = "#333333", anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    return f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" stroke="{colour}" stroke-width="1.5"/>'


def _circle(x: float, y: float, radius: float, fill: str, stroke: str = "none") -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'


def _x(event: int) -> float:
    return MARGIN + STEP * (event + 0.5)


def _colour(stream: Stream, event: int) -> str:
    return COLOURS[sorted(set(stream.keys)).index(stream.keys[event])]


def _stream_row(stream: Stream) -> Iterator[str]:
    y = MARGIN + RADIUS
    for event, (text, below) in enumerate(zip(stream.texts, stream.below, strict=True)):
        yield _circle(_x(event), y, RADIUS, _colour(stream, event))
        yield _text(_x(event), y + 5, text, "#ffffff")
        yield _text(_x(event), y + RADIUS + 16, below, "#777777")


def _match_row(stream: Stream, match: dict[str, Any], row: int) -> Iterator[str]:
    y = MARGIN + RADIUS + 26 + ROW * row
    lists = {variable: bound if isinstance(bound, list) else [bound] for variable, bound in match.items()}
    bound = {event: variable for variable, events in lists.items() for event in events}
    first, last = min(bound), max(bound)
    colour = _colour(stream, first)
    yield _line((_x(first), y), (_x(last), y), colour)
    for event in range(first, last + 1):
        if event in bound:
            yield _circle(_x(event), y, 11, "#ffffff", colour)
            yield _text(_x(event), y + 4, bound[event], colour)
        elif stream.keys[event] == stream.keys[first]:
            yield _circle(_x(event), y, 3, colour)


def _relation_row(relation: str, a: tuple[int, int], b: tuple[int, int], row: int) -> Iterator[str]:
    times = range(12)
    events = pa.table({"ts": times, "a": [a[0] <= t < a[1] for t in times], "b": [b[0] <= t < b[1] for t in times]})
    ends = "start(A) AS a_start, end(A) AS a_end, start(B) AS b_start, end(B) AS b_end"
    (found,) = cep.match(events, f"DEFINE A AS a, B AS b PATTERN A {relation} B RETURN {ends}").to_pylist()
    left, top = MARGIN + 110, MARGIN + BLOCK * row
    yield _text(MARGIN, top + 24, f"A {relation} B", anchor="start")
    for name, y, colour in (("a", top, COLOURS[0]), ("b", top + BAR + 6, COLOURS[1])):
        start, end = found[f"{name}_start"], found[f"{name}_end"]
        yield f'<rect x="{left + TICK * start}" y="{y}" width="{TICK * (end - start)}" height="{BAR}" rx="3" fill="{colour}"/>'
        yield _text(left + TICK * (start + end) / 2, y + 12, name.upper(), "#ffffff")


def main() -> None:
    for name, picture in pictures().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
