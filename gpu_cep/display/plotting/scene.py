"""What a timeline shows, as plain data; nothing here knows how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt

# Places on the axis of time: float64, or datetime64 in UTC.
Times = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Bar:
    """A situation of the match; `end` is where it was seen last, if it is open."""

    name: str
    text: str
    start: np.generic
    end: np.generic
    is_open: bool


@dataclass(frozen=True, slots=True)
class Marks:
    """The events that a variable of the match is bound to, by their places among the scene's events."""

    name: str
    text: str
    places: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Series:
    """A column's value at each of the scene's events, NaN where it has none.

    Where the column holds no numbers, 0, 1, … stand for its `labels`.
    `readers` are the tracks whose conditions read it.
    """

    name: str
    values: npt.NDArray[np.float64]
    labels: tuple[str, ...]
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """One match: its `tracks`, and the series of its stream from ``view[0]`` to ``view[1]``.

    `times` are those of the stream's events in view, in order; `detected` is
    when the match was, if that is told apart from its end. `zone` is that of
    the axis, where its times are dates in one.
    """

    title: str
    subtitle: str
    axis: str
    zone: tzinfo | None
    view: Times
    times: Times
    series: tuple[Series, ...]
    tracks: tuple[Bar | Marks, ...]
    detected: np.generic | None
