"""The page of a run: for each figure what the paper shows, our table with its ratios, and where ours differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.papers.figures import Figure, Panel, Point
from benchmarks.papers.runs import MEASURES, Measurement, Refusal
from benchmarks.record import pages


@dataclass(frozen=True, slots=True)
class Results:
    """All measurements of a run, by experiment, panel, point and way, and what was refused."""

    measured: Mapping[tuple[str, str, int | str, str], Measurement]
    refused: Sequence[Refusal]

    def value(self, figure: Figure, panel: Panel, x: int | str, way: str) -> float | None:
        """Return the figure's measure; None where that was not, or cannot be, measured."""
        found = self.measured.get((figure.experiment.name, panel.title, x, way))
        return None if found is None else MEASURES[figure.measure](found)

    def any_of(self, figure: Figure, panel: Panel, x: int | str) -> Measurement | None:
        """Return a point's measurement of whichever way."""
        names = (way.name for way in panel.ways)
        return next((found for name in names if (found := self.measured.get((figure.experiment.name, panel.title, x, name)))), None)

    def ratio(self, figure: Figure, panel: Panel, x: int | str, way: str) -> float | None:
        """Return a way's measure in multiples of the first way's."""
        return quotient(self.value(figure, panel, x, way), self.value(figure, panel, x, panel.ways[0].name))


def results_of(found: Iterable[Measurement | Refusal]) -> Results:
    every = list(found)
    measured = {(each.experiment, each.panel, each.x, each.way): each for each in every if isinstance(each, Measurement)}
    return Results(measured, [each for each in every if isinstance(each, Refusal)])


def quotient(value: float | None, unit: float | None) -> float | None:
    return None if value is None or not unit else value / unit


def markdown(figures: Sequence[Figure], results: Results, heading: str, plots: Mapping[str, str]) -> str:
    """Return the page; `plots` holds the path of each figure's plot, as far as there are any."""
    return "\n\n".join([heading, *(_section(figure, results, plots.get(figure.name)) for figure in figures)]) + "\n"


def _section(figure: Figure, results: Results, plot: str | None) -> str:
    parts = [
        f"## {figure.name}: {figure.title}",
        f"The paper: {figure.paper}",
        f"Here: {figure.ours}",
        f"Shown: {figure.measure}.",
        *_refusals(figure, results),
        *([] if plot is None else [f"![{figure.name}]({plot})"]),
        *([_table(figure, results)] if _measured_ways(figure, results) else ["Nothing was measured."]),
    ]
    return "\n\n".join(parts)


def _measured_ways(figure: Figure, results: Results) -> list[str]:
    """Return the ways of all panels, without those that have nothing to show."""
    names = dict.fromkeys(way.name for panel in figure.shown for way in panel.ways)
    return [
        name
        for name in names
        if any(results.value(figure, panel, point.x, name) is not None for panel in figure.shown for point in panel.points)
    ]


def _refusals(figure: Figure, results: Results) -> list[str]:
    """Return one line for each reason: who was refused, and where."""
    titles = {panel.title for panel in figure.shown}
    reasons: dict[str, list[Refusal]] = {}
    for each in results.refused:
        if each.experiment == figure.experiment.name and each.panel in titles:
            reasons.setdefault(each.reason.partition("; supported")[0], []).append(each)
    return [f"Not run: {_refused(refusals, len(titles))}: {reason}." for reason, refusals in reasons.items()]


def _refused(refusals: Sequence[Refusal], panels: int) -> str:
    ways = ", ".join(dict.fromkeys(f"`{each.way}`" for each in refusals))
    titles = dict.fromkeys(each.panel for each in refusals)
    return ways if len(titles) == panels else f"{ways} in {'; '.join(titles)}"


def _table(figure: Figure, results: Results) -> str:
    ways = _measured_ways(figure, results)
    firsts = list(dict.fromkeys(panel.ways[0].name for panel in figure.shown))
    others = [name for name in ways if name not in firsts]
    first = firsts[0] if len(firsts) == 1 else "first"
    growth = [f"{first}, × first row"] if figure.growth else []
    axes = dict.fromkeys(panel.axis for panel in figure.shown)
    head = ["", " or ".join(axes), "events read", "matches", *ways, *(f"{name} / {first}" for name in others), *growth]
    rows = [
        [panel.title, *_row(figure, results, panel, point, ways, others)]
        for panel in figure.shown
        for point in panel.points
        if results.any_of(figure, panel, point.x) is not None
    ]
    return pages.table([head, *rows], figures=len(head) - 1)


def _row(figure: Figure, results: Results, panel: Panel, point: Point, ways: Sequence[str], others: Sequence[str]) -> list[str]:
    found = results.any_of(figure, panel, point.x)
    assert found is not None, "a point that was not measured has no row"
    first = panel.ways[0].name
    values = [number(results.value(figure, panel, point.x, name)) for name in ways]
    ratios = [number(results.ratio(figure, panel, point.x, name)) for name in others]
    growth = quotient(results.value(figure, panel, point.x, first), results.value(figure, panel, panel.points[0].x, first))
    x = f"{point.x:,}" if isinstance(point.x, int) else point.x
    return [x, f"{found.events:,}", f"{found.matches:,}", *values, *ratios, *([number(growth)] if figure.growth else [])]


def number(value: float | None) -> str:
    """Return a number to three digits that count, or more of a large one; nothing for None."""
    if value is None:
        return ""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.1e}"
