"""Turn ticks of a timestamp column into positions on an axis.

Floats can tell neighbouring positions apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import TICKS_PER_SECOND, DataType, Kind
from gpu_cep.display.plotting.scene import Times

Tick = int | float
# Times as int64 or float64.
Ticks = npt.NDArray[Any]

_SECONDS_PER_DAY = 86_400
# An axis must be able to show at least so many different times.
_PLACES = 10_000
# The first and the last day that Python's dates, and so the labels of an axis, can hold; in days since 1970-01-01.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """An axis of dates in numpy's `unit`, or, if `unit` is empty, of numbers counted from `origin`."""

    label: str
    unit: str
    origin: Tick
    zone: str | None

    def places(self, ticks: Ticks) -> Times:
        """Return the positions of times on the axis."""
        if self.unit:
            return ticks.astype(f"datetime64[{self.unit}]")
        numbers: npt.NDArray[np.float64] = (ticks - ticks.dtype.type(self.origin)).astype(np.float64)
        return numbers


def time_axis(name: str, kind: DataType, time_unit: str | None, view: tuple[Tick, Tick], start: tuple[Tick, str]) -> TimeAxis:
    """Return an axis for the timestamp column `name` that covers the times of `view`.

    It counts from `start`, a time with its text, if floats cannot tell apart times so far from
    zero. It does so, too, if the times are outside Python's calendar.
    """
    low, high = view
    per_day = _ticks_per_day(kind)
    unit = "D" if kind.kind is Kind.DATE else kind.unit
    if per_day is not None and _FIRST_DAY * per_day < low and high < _LAST_DAY * per_day and _floats_differ(low / per_day, high / per_day):
        return TimeAxis(f"{name} ({kind.zone})" if kind.zone else name, unit, 0, kind.zone)
    ticks = unit if per_day is not None else time_unit
    suffix = f" ({ticks})" if ticks else ""
    if per_day is None and _floats_differ(low, high):
        return TimeAxis(name + suffix, "", 0, None)
    origin, text = start
    return TimeAxis(f"{name} − {text}{suffix}", "", origin, None)


def _ticks_per_day(kind: DataType) -> int | None:
    """Return the number of ticks in a day, None for bare numbers."""
    if kind.kind is Kind.DATE:
        return 1
    return _SECONDS_PER_DAY * TICKS_PER_SECOND[kind.unit] if kind.kind is Kind.TIMESTAMP else None


def _floats_differ(low: float, high: float) -> bool:
    return float(np.spacing(max(abs(float(low)), abs(float(high))))) * _PLACES <= high - low
