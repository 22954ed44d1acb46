"""Describe the content of a timeline as plain data, apart from how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt

# Positions on the axis of time: float64, or datetime64 in UTC.
Times = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Bar:
    """A situation of the match; the `end` of an open one is the time of detection."""

    name: str
    text: str
    start: np.generic
    end: np.generic
    is_open: bool


@dataclass(frozen=True, slots=True)
class EventMarks:
    """The events that a variable of the match binds; `places` are their indices among the scene's events."""

    name: str
    text: str
    places: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UnboundEvents:
    """The events between a match's first and last that no variable binds.

    `count` is their number. `places` are the indices among the scene's events of those to draw.
    """

    count: int
    places: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Series:
    """A column's value at each of the scene's events, NaN where it is NULL or not finite.

    In a column of text or truth values, the value n stands for ``labels[n]``.
    `readers` are the numbers of the tracks whose conditions read the column.
    """

    name: str
    values: npt.NDArray[np.float64]
    labels: tuple[str, ...]
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """One match: its `tracks`, and the series of its stream from time ``view[0]`` to ``view[1]``.

    `times` are the times of the stream's events in view, in order. `passed` are
    the events that an event pattern passed over, None for situations. `detected`
    is when the match was detected; it is None for event patterns. `zone` is
    the time zone of the axis, None if its times have none.
    """

    title: str
    subtitle: str
    axis: str
    zone: tzinfo | None
    view: Times
    times: Times
    series: tuple[Series, ...]
    tracks: tuple[Bar | EventMarks, ...]
    passed: UnboundEvents | None
    detected: np.generic | None
