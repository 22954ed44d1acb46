"""Plots of one benchmark run: cost per event by streams, events and window; the stages of each workload. They need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks.baselines.floors import COPY, Floor
from benchmarks.baselines.measure import Stages, Timing
from benchmarks.record.pages import PLOT_SETTINGS

# Curve -> the field of a timing that it runs over.
AXES = {"streams": "streams", "events": "events", "window": "window_factor"}


def draw(curves: Mapping[str, Sequence[Timing]], stages: Sequence[Stages], floors: Sequence[Floor], folder: Path) -> list[str]:
    """Write what there is to draw into `folder`; the files' names."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = {floor.workload: floor.seconds for floor in floors if floor.operation == COPY}
    with matplotlib.rc_context(PLOT_SETTINGS):
        canvases = {"stages": _stages(stages, copies)} | {name: _curve(name, timings) for name, timings in curves.items()}
        for name, canvas in canvases.items():
            canvas.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return [f"{name}.svg" for name in canvases]


def _curve(name: str, timings: Sequence[Timing]) -> Canvas:
    """Return one panel for each workload and output, one line for each contestant."""
    panels = list(dict.fromkeys((timing.workload, timing.output) for timing in timings))
    canvas = Canvas(figsize=(3.2 * len(panels), 2.6), layout="constrained")
    for axes, panel in zip(canvas.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _lines(axes, name, [timing for timing in timings if (timing.workload, timing.output) == panel])
        axes.set_title(", ".join(panel))
    return canvas


def _lines(axes: Axes, name: str, timings: Sequence[Timing]) -> None:
    for who in dict.fromkeys(timing.who for timing in timings):
        own = [timing for timing in timings if timing.who == who]
        places = [getattr(timing, AXES[name]) for timing in own]
        axes.plot(places, [1e9 / timing.events_per_second for timing in own], "o-", markersize=3, linewidth=1, label=who)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("window, × the workload's" if name == "window" else name)
    axes.set_ylabel("ns per event")
    axes.legend(fontsize=6)


def _stages(stages: Sequence[Stages], copies: Mapping[str, float]) -> Canvas:
    """Return one bar for each workload and output, in copies of its columns."""
    canvas = Canvas(figsize=(7, 0.35 * len(stages) + 1), layout="constrained")
    axes = canvas.subplots()
    names = [f"{each.workload}, {each.output}" for each in stages]
    left = [0.0] * len(stages)
    for number, stage in enumerate(dict.fromkeys(stage for each in stages for stage in each.seconds)):
        widths = [each.seconds.get(stage, 0.0) / copies[each.workload] for each in stages]
        axes.barh(names, widths, left=left, color=f"C{number % 10}", label=stage, edgecolor="white", linewidth=0.3)
        left = [begin + width for begin, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("copies of the columns, one thread")
    axes.legend(fontsize=6, ncols=2)
    return canvas
