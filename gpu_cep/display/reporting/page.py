"""Write a report as one page of HTML that loads nothing else.

Styles, script, pictures and rows are all in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

import pyarrow as pa

from gpu_cep.display.cells import json_rows


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a page.

    `counts` are what the run read and found. The result has `total` rows, each of which is a `noun`, in the plural `nouns`. `shown` is
    a table of the first of them; `short` is the same with texts for whole events and times. `plan` is the explanation as text.
    `drawing` is HTML, `waterfall` and `timelines` are SVG. There is a timeline for each of the first matches.
    `waterfall` is None if the run counted nothing. `stages` are the seconds
    of each stage, summed over threads. `lack` says why there are no timelines
    though they were asked for.
    """

    query: str
    counts: Mapping[str, int]
    total: int
    noun: str
    nouns: str
    seconds: float
    plan: str
    drawing: str
    waterfall: str | None
    stages: Mapping[str, float]
    shown: pa.Table
    short: pa.Table
    timelines: Sequence[str]
    lack: str | None


def page(content: Content) -> str:
    """Return the text of the page."""
    return Template(_resource("page.html")).substitute(
        style=_resource("page.css"),
        title=content.nouns.capitalize(),
        nouns=content.nouns,
        noun=content.noun,
        script=_resource("page.js"),
        summary=_summary(content),
        query=escape(content.query),
        drawing=content.drawing,
        plan=escape(content.plan),
        waterfall=content.waterfall or "<p>Nothing was counted: brute force does nothing by parts.</p>",
        stages=_stages(content.stages),
        bounds=_bounds(content),
        data=_data(content),
        timelines="".join(f'<template id="timeline-{n}">{_element(svg)}</template>' for n, svg in enumerate(content.timelines)),
    )


def _resource(name: str) -> str:
    return files("gpu_cep.display.reporting").joinpath(name).read_text(encoding="utf-8")


def _summary(content: Content) -> str:
    return ", ".join([*(f"{count:,} {name}" for name, count in content.counts.items()), f"{content.seconds:.3g} s"])


def _stages(stages: Mapping[str, float]) -> str:
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{1000 * seconds:.1f}</td></tr>" for name, seconds in stages.items())
    return f"<table><thead><tr><th>stage</th><th>ms, summed over threads</th></tr></thead><tbody>{rows}</tbody></table>"


def _bounds(content: Content) -> str:
    """Return a sentence that says how many of the rows and timelines are on the page."""
    shown, drawn = content.shown.num_rows, len(content.timelines)
    rows = f"all {content.nouns}" if shown == content.total else f"the first {shown:,} of {content.total:,} {content.nouns}"
    if shown == 0:
        return f"There are no {content.nouns}." if content.total == 0 else f"This page holds none of the {content.nouns}: rows=0."
    none = "no timelines" if content.lack is None else f"no timelines ({escape(content.lack)})"
    timelines = none if drawn == 0 else "a timeline of each" if drawn == shown else f"timelines of the first {drawn:,}"
    return f"This page holds {rows}, and {timelines}."


def _data(content: Content) -> str:
    """Return the data of the page's script as JSON. No value can end the script: ``<`` is escaped."""
    fields = tuple(content.shown.schema)
    shortened = [number for number, field in enumerate(fields) if content.short.field(number).type != field.type]
    members = {
        "columns": _json([{"name": field.name, "type": _type_name(field.type)} for field in fields]),
        "rows": json_rows(content.shown),
        "texts": _json({number: content.short.column(number).to_pylist() for number in shortened}),
        "timelines": _json(len(content.timelines)),
        "noun": _json(content.noun),
        "nouns": _json(content.nouns),
    }
    data = "{" + ", ".join(f'"{name}": {value}' for name, value in members.items()) + "}"
    return data.replace("<", "\\u003c")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _type_name(kind: pa.DataType) -> str:
    return "struct" if pa.types.is_struct(kind) else "list" if pa.types.is_nested(kind) else str(kind)


def _element(svg: str) -> str:
    """Return the svg element of an SVG file, without the XML declaration before it."""
    return svg[svg.index("<svg") :]
