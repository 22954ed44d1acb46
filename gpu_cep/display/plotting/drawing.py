"""Draw a scene as a figure of matplotlib (the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, DateLocator, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gpu_cep.display.plotting.scene import Bar, EventMarks, Scene, Series, Times, UnboundEvents
from gpu_cep.errors import UnsupportedError
from gpu_cep.pictures.figure import style
from gpu_cep.pictures.shapes import GREY, INK

MOST_TRACKS = 100

# The name of the lane of events that no variable binds.
PASSED = "passed over"

# Paul Tol's muted colours, which colour-blind readers can tell apart.
COLOURS = ("#332288", "#CC6677", "#117733", "#88CCEE", "#882255", "#999933", "#44AA99", "#AA4499", "#DDCC77", "#777777")
_GRID, _DIM = "#E4E4E4", "#AAAAAA"

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
}

# In inches: the figure's width, and the heights of its parts.
_WIDTH, _PANEL, _LABEL, _TRACK, _LINE, _AXIS = 9.0, 1.15, 0.2, 0.46, 0.18, 0.55
_LINE_LENGTH, _MOST_LINES = 124, 4
# The most characters of a text, of a title and of a name.
_LONGEST, _LONGEST_TITLE, _LONGEST_NAME = 100, 70, 24
# Up to so many events are drawn as dots on the line. More dots than the second number are pixels even in a vector graphic.
_MOST_DOTS, _MOST_VECTORS = 200, 5_000
# In a lane of height 1: the height of the bar, and how far above it the text stands.
_BAR, _TEXT = 0.36, 0.29
# The length of an open bar's tip, as a share of the width.
_TIP = 0.018


def draw(scene: Scene) -> Figure:
    """Return a figure with a panel for each series, and under them a lane for each track.

    Raises
    ------
    UnsupportedError
        There are more tracks than :data:`MOST_TRACKS`.
    """
    if len(scene.tracks) > MOST_TRACKS:
        raise UnsupportedError(f"a match of {len(scene.tracks):,} variables cannot be drawn; supported: {MOST_TRACKS}")
    with style(STYLE):
        subtitle = _lines(scene.subtitle, _LINE_LENGTH - _widest_label(scene))
        lanes_height = _TRACK * (len(scene.tracks) + (scene.passed is not None)) + 0.1
        heights = [0.3 + _LINE * len(subtitle), *map(_height, scene.series), lanes_height]
        figure = Figure(figsize=(_WIDTH, sum(heights) + _AXIS), layout="constrained")
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        header, lanes = figure.add_subplot(grid[0]), figure.add_subplot(grid[-1])
        panels = [figure.add_subplot(grid[number], sharex=lanes) for number in range(1, len(heights) - 1)]
        _write_header(header, _short(scene.title, _LONGEST_TITLE), subtitle)
        for series, panel in zip(scene.series, panels, strict=True):
            _draw_series(panel, scene, series)
        _draw_lanes(lanes, scene)
        for axes in (*panels, lanes):
            _draw_detection(axes, scene)
        _name_detection([*panels, lanes][0], scene)
        _set_time_axis(lanes, scene)
        _settle(figure)
    return figure


def _settle(figure: Figure) -> None:
    """Compute the layout now, round it, and keep it: the solver's last digits differ between runs."""
    engine = figure.get_layout_engine()
    assert engine is not None, "the figure was made with one"
    engine.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(bound, 4) for bound in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def _height(series: Series) -> float:
    return 0.3 + _LABEL * len(series.labels) if series.labels else _PANEL


def _lines(text: str, width: int) -> list[str]:
    """Return the lines of a text, long ones broken into several."""
    return [each for line in text.split("\n") for each in wrap(_plain(line), width, max_lines=_MOST_LINES, placeholder=" …")]


def _widest_label(scene: Scene) -> int:
    """Return the number of characters of the longest label at the left."""
    labels = [*_lane_names(scene), *(label for series in scene.series for label in series.labels)]
    return max(len(_short(label, _LONGEST_NAME)) for label in labels)


def _write_header(axes: Axes, title: str, subtitle: Sequence[str]) -> None:
    axes.set_axis_off()
    axes.text(0, 1, title, transform=axes.transAxes, va="top", fontsize=11, fontweight="bold")
    place, below = axes.transAxes, (0, -18)
    axes.annotate("\n".join(subtitle), (0, 1), below, place, textcoords="offset points", va="top", color=GREY, fontsize=8.5)


def _draw_series(axes: Axes, scene: Scene, series: Series) -> None:
    """Draw a series in its panel.

    Its values are steps, since a value holds until the next event. The situations that read it lie behind it as bands, and the
    events of variables lie on it as dots.
    """
    times = _numbers(scene.times)
    of_events = any(isinstance(track, EventMarks) for track in scene.tracks)
    line, dot = ("none", "o") if of_events else ("-", "o" if len(times) <= _MOST_DOTS else "")
    (drawn,) = axes.plot(times, series.values, marker=dot, linestyle=line, drawstyle="steps-post", color=GREY, linewidth=1, markersize=2.5)
    drawn.set_rasterized(of_events and len(times) > _MOST_VECTORS)
    for number, track in enumerate(scene.tracks):
        match track:
            case Bar() if number in series.readers:
                start, end = _numbers(np.array([track.start, track.end]))
                axes.axvspan(start, end, color=_colour(number), alpha=0.18, linewidth=0)
            case EventMarks():
                axes.plot(times[track.places], series.values[track.places], "o", color=_colour(number), markersize=6)
    axes.margins(y=0.12)
    axes.set_title(_short(series.name, _LONGEST_TITLE), loc="left", fontsize=9)
    axes.tick_params(axis="x", labelbottom=False, length=0)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    if series.labels:
        axes.set_yticks(range(len(series.labels)), [_short(label, _LONGEST_NAME) for label in series.labels])
        axes.set_ylim(-0.5, len(series.labels) - 0.5)


def _draw_lanes(axes: Axes, scene: Scene) -> None:
    """Draw a lane for each track, the first on top: name at the left, text above the bar or dots."""
    low, high = _numbers(scene.view)
    times, names = _numbers(scene.times), _lane_names(scene)
    for number, track in enumerate(scene.tracks):
        colour, top = _colour(number), -number
        match track:
            case Bar():
                start, end = _numbers(np.array([track.start, track.end]))
                tip = _TIP * (high - low) if track.is_open else 0.0
                axes.fill([start, end, end + tip, end, start], _outline(top), color=colour, linewidth=0, gid=_short(track.name))
            case EventMarks():
                _draw_marks(axes, times[track.places], top, track.name, color=colour, markersize=6)
        _write_above(axes, top, track.text)
    if scene.passed is not None:
        _draw_marks(axes, times[scene.passed.places], -len(scene.tracks), PASSED, color=_DIM, markersize=4)
        _write_above(axes, -len(scene.tracks), _passed_text(scene.passed))
    middles = [-number - _BAR / 2 for number in range(len(names))]
    axes.set_yticks(middles, [_short(name, _LONGEST_NAME) for name in names], fontweight="bold")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(names) + 0.45, 0.55)
    axes.grid(visible=False, axis="y")


def _lane_names(scene: Scene) -> list[str]:
    return [*(track.name for track in scene.tracks), *([] if scene.passed is None else [PASSED])]


def _draw_marks(axes: Axes, times: npt.NDArray[np.float64], top: float, name: str, **look: Any) -> None:
    """Draw a dot for each event in the lane with its upper edge at `top`."""
    axes.plot(times, np.full(len(times), top - _BAR / 2), "o", gid=_short(name), **look)


def _write_above(axes: Axes, top: float, text: str) -> None:
    """Write the text of a lane above its bar or dots."""
    axes.text(0.005, top + _TEXT, _short(text), transform=axes.get_yaxis_transform(), va="center", color=GREY, fontsize=8)


def _passed_text(passed: UnboundEvents) -> str:
    """Return what the lane of passed events shows, and how many it leaves out."""
    events = "1 event" if passed.count == 1 else f"{passed.count:,} events"
    left_out = passed.count - len(passed.places)
    return f"{events} in between that no variable binds{f'; {left_out:,} of them are left out here' if left_out else ''}"


def _outline(top: float) -> list[float]:
    low = top - _BAR
    return [low, low, (low + top) / 2, top, top]


def _draw_detection(axes: Axes, scene: Scene) -> None:
    if scene.detected is None:
        return
    (detected,) = _numbers(np.array([scene.detected]))
    axes.axvline(detected, color=INK, linewidth=1, linestyle=(0, (4, 3)), gid="detected")


def _name_detection(axes: Axes, scene: Scene) -> None:
    if scene.detected is None:
        return
    (detected,) = _numbers(np.array([scene.detected]))
    place = axes.get_xaxis_transform()
    axes.annotate("detected", (detected, 1), (0, 4), xycoords=place, textcoords="offset points", ha="center", fontsize=8)


def _set_time_axis(axes: Axes, scene: Scene) -> None:
    axes.set_xlim(*_numbers(scene.view))
    axes.set_xlabel(_short(scene.axis))
    if scene.view.dtype.kind == "M":
        locator = _DateLocator(tz=scene.zone)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=scene.zone))
    else:
        axes.ticklabel_format(axis="x", scilimits=(-5, 8))


class _DateLocator(AutoDateLocator):
    """Places ticks as far apart as the time between two moments asks for: clocks that are set back show less, or none."""

    def get_locator(self, dmin: datetime, dmax: datetime) -> DateLocator:
        """Return what places the ticks between two moments."""
        locator: DateLocator = super().get_locator(dmin.astimezone(UTC), dmax.astimezone(UTC))
        return locator


def _numbers(times: Times) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = date2num(times) if times.dtype.kind == "M" else times
    return numbers


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _short(text: str, longest: int = _LONGEST) -> str:
    line = _plain(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _plain(text: str) -> str:
    """Return the text on one line, without characters that XML forbids."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
