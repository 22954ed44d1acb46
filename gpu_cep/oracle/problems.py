"""Define the problem that the oracle solves: a branch to match in a stream, and what time means there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast
from gpu_cep.oracle.conditions import Condition
from gpu_cep.oracle.expressions import Row
from gpu_cep.oracle.patterns import Branch
from gpu_cep.oracle.streams import Stream, tick

Substitution = Mapping[str, tuple[int, ...]]  # variable -> stream positions, ascending
IsOrdered = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class Problem:
    """A branch of the pattern, to be matched in one stream.

    `is_within`: whether events at two positions, the earlier first, fit in the window.
    `is_before`: whether the first of two events precedes the second (docs/language.md, Ties).
    """

    branch: Branch
    stream: Stream
    is_within: IsOrdered
    is_before: IsOrdered

    @property
    def positions(self) -> range:
        """Return the positions of all events of the stream."""
        return range(len(self.stream.rows))

    def window(self, first: int) -> list[int]:
        """Return the positions from `first` to the end of the window that it opens."""
        return [position for position in self.positions if position >= first and self.is_within(first, position)]

    def holds(self, condition: Condition, substitution: Substitution) -> bool:
        """Return whether a condition holds for the events that a substitution binds."""
        rows = self.stream.rows
        events: dict[str, tuple[Row, ...]] = {variable: tuple(rows[i] for i in bound) for variable, bound in substitution.items()}
        return condition.holds(events)


def events_of(substitution: Substitution) -> list[int]:
    """Return the positions of all events that `substitution` binds, ascending."""
    return sorted(position for bound in substitution.values() for position in bound)


def bind(substitution: Substitution, name: str, position: int) -> Substitution:
    """Return `substitution` with the event at `position` added to those of the variable `name`."""
    return {**substitution, name: (*substitution.get(name, ()), position)}


def window_test(window: ast.Window | None, length: Fraction | None, stream: Stream) -> IsOrdered:
    """Return the test whether two positions of `stream`, the earlier first, fit in `window`.

    `length` is the window in ticks; None if it counts events.
    """
    if window is None:
        return lambda first, last: True
    if length is None:
        return lambda first, last: last - first < window.amount
    times = stream.times
    if any(isinstance(time, float) for time in times):
        # infinity minus infinity is NaN, but no time passes between equal times
        return lambda first, last: times[last] == times[first] or times[last] - times[first] <= float(length)
    return lambda first, last: times[last] - times[first] <= length


def window_length(window: ast.Window | None, timestamp: pa.DataType, time_unit: str | None) -> Fraction | None:
    """Return the window in ticks of a timestamp column of type `timestamp`; None if it is no length of time.

    A bare number counts ticks of a number column, and what `time_unit` says over dates and timestamps (docs/language.md, WITHIN).
    """
    if window is None or window.unit == "events":
        return None
    amount, ticks = Fraction(window.amount), tick(timestamp)
    if window.unit is not None:
        return amount * ast.UNITS[window.unit] / (ticks or _unit_length(time_unit))
    if ticks is None:
        return amount
    if time_unit is None:
        raise PatternError(f"a window without a unit over {timestamp} needs time_unit=")
    return amount * _unit_length(time_unit) / ticks


def _unit_length(time_unit: str | None) -> int:
    if time_unit is None:
        raise PatternError("a window with a unit over a number column needs time_unit=")
    lengths = {"s": ast.UNITS["seconds"], **ast.UNITS, **{name.removesuffix("s"): ast.UNITS[name] for name in ast.UNITS if len(name) > 2}}
    if time_unit not in lengths:
        raise PatternError(f"unknown time_unit {time_unit!r}")
    return lengths[time_unit]


def order_test(ties: str, stream: Stream) -> IsOrdered:
    """Return the test whether the event at one position of `stream` is before that at another."""
    if ties == "strict":
        return lambda earlier, later: stream.times[earlier] < stream.times[later]
    if ties == "position":
        return lambda earlier, later: earlier < later
    raise PatternError(f"ties is 'strict' or 'position', not {ties!r}")
