"""Plots of figures: one panel beside the other, one line for each way. They need matplotlib (the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from benchmarks.papers.figures import Figure, Panel
from benchmarks.papers.pages import Results
from benchmarks.record.pages import PLOT_SETTINGS

MOST_COLUMNS = 4
MOST_TICKS = 6


def draw(figures: Sequence[Figure], results: Results, folder: Path) -> dict[str, str]:
    """Write a plot of each figure that has anything to show into `folder`; the file's name for each figure's."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    with matplotlib.rc_context(PLOT_SETTINGS):
        for figure in figures:
            panels = [panel for panel in figure.shown if any(_lines(figure, panel, results))]
            if panels:
                drawn[figure.name] = f"{figure.name}.svg"
                _canvas(figure, panels, results).savefig(folder / drawn[figure.name], metadata={"Date": None})
    return drawn


def _canvas(figure: Figure, panels: Sequence[Panel], results: Results) -> Canvas:
    columns = min(len(panels), MOST_COLUMNS)
    rows = -(-len(panels) // columns)
    canvas = Canvas(figsize=(3.2 * columns, 2.6 * rows), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False).reshape(-1)
    for panel, own in zip(panels, axes, strict=False):
        _draw_panel(own, figure, panel, results)
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    return canvas


def _draw_panel(axes: Axes, figure: Figure, panel: Panel, results: Results) -> None:
    names = list(dict.fromkeys(way.name for each in figure.shown for way in each.ways))
    for name, places, values in _lines(figure, panel, results):
        axes.plot(places, values, f"C{names.index(name)}o-", markersize=3, linewidth=1, label=name)
    if figure.logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=MOST_TICKS))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(panel.title)
    axes.set_xlabel(panel.axis)
    axes.set_ylabel(f"{figure.measure}, × {panel.ways[0].name}" if figure.ratios else figure.measure)
    axes.legend(fontsize=6)


def _lines(figure: Figure, panel: Panel, results: Results) -> list[tuple[str, list[int | str], list[float]]]:
    """Return the ways that have points, with their places and values."""
    read = results.ratio if figure.ratios else results.value
    lines = []
    for way in panel.ways:
        values = [(point.x, read(figure, panel, point.x, way.name)) for point in panel.points]
        known = [(x, value) for x, value in values if value is not None and (value > 0 or not figure.logarithmic)]
        if known:
            lines.append((way.name, [x for x, _ in known], [value for _, value in known]))
    return lines
