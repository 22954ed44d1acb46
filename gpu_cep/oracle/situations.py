"""Derive the situations of a stream, as docs/intervals.md and TPStream's Definition 7 say."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, takewhile
from math import floor

import pyarrow as pa

from gpu_cep.errors import EventError, PatternError
from gpu_cep.lang import ast, ast_intervals
from gpu_cep.oracle.expressions import Assignment, Row, Schema, meaning
from gpu_cep.oracle.meanings import Kind
from gpu_cep.oracle.problems import window_length
from gpu_cep.oracle.relations import Interval, Time, interval
from gpu_cep.oracle.rewriting import rewritten
from gpu_cep.oracle.streams import Stream

Length = Fraction | float  # in ticks


@dataclass(frozen=True, slots=True)
class Situation:
    """A longest run of events that satisfy a condition, as it is known at some time.

    `first`, `last`: the stream positions of its first and last events.
    `start`, `end`: from when to when it lasts, in ticks; the end is None while it is open.
    """

    first: int
    last: int
    start: Time
    end: Time | None

    @property
    def interval(self) -> Interval:
        """Return the start and the end."""
        return interval(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Definition:
    """One name of DEFINE.

    `is_satisfied`: the condition on its events.
    `shortest`, `longest`: the bounds of a situation's duration (None: no bound).
    """

    name: str
    is_satisfied: Callable[[Row], bool]
    shortest: Length | None
    longest: Length | None

    def admits(self, situation: Situation) -> bool:
        """Return whether a situation has ended and its duration is within the bounds."""
        return situation.end is not None and _is_between(self.shortest, elapsed(situation.start, situation.end), self.longest)

    def is_available(self, situation: Situation, now: Time) -> bool:
        """Return whether a match may take `situation` at the time `now`.

        An open one may be taken if it lasts long enough already and there is no longest duration.
        """
        if situation.end is not None:
            return self.admits(situation)
        return self.longest is None and _is_between(self.shortest, elapsed(situation.start, now), None)


def _is_between(low: Length | None, length: Time, high: Length | None) -> bool:
    return (low is None or low <= length) and (high is None or length <= high)


def elapsed(start: Time, end: Time) -> Time:
    """Return the time from `start` to `end`; it is 0 from infinity to infinity."""
    return 0 if start == end else end - start


def situations(definition: Definition, stream: Stream, gap: Length | None = None) -> list[Situation]:
    """Return all situations of one name, of any duration, as known at the end of the stream.

    `gap` is the longest time without events that ends no situation.
    """
    found = []
    for part in _split_at_gaps(stream, gap):
        for is_satisfied, run in groupby(part, key=lambda position: definition.is_satisfied(stream.rows[position])):
            positions = list(run)
            if is_satisfied:
                found.append(_situation(positions[0], positions[-1], stream, gap))
    return [situation for situation in found if situation.end != situation.start]


def _split_at_gaps(stream: Stream, gap: Length | None) -> list[list[int]]:
    """Return the positions of the stream, cut where two events are more than `gap` apart."""
    parts: list[list[int]] = []
    for position, time in enumerate(stream.times):
        if position == 0 or (gap is not None and elapsed(stream.times[position - 1], time) > gap):
            parts.append([])
        parts[-1].append(position)
    return parts


def refuse_lost_gaps(definition: Definition, stream: Stream, gap: Length | None) -> None:
    """Raise EventError if a gap ends a run of the situation at its last event, since floats are too coarse to add it.

    A run that is shorter than the situation must be is none at any time.
    """
    if not isinstance(gap, float):
        return
    for part in _split_at_gaps(stream, gap)[:-1]:
        run = list(takewhile(lambda position: definition.is_satisfied(stream.rows[position]), reversed(part)))
        if not run:
            continue
        start, time = stream.times[run[-1]], stream.times[run[0]]
        if time + gap == time and _is_between(definition.shortest, elapsed(start, time), None):
            raise EventError(f"a gap of {gap} adds nothing to the time {time}, so that detect='early' cannot tell when a situation ends")


def _situation(first: int, last: int, stream: Stream, gap: Length | None) -> Situation:
    following = last + 1
    if following == len(stream.rows):
        return Situation(first, last, stream.times[first], None)
    end = stream.times[following]
    if gap is not None and elapsed(stream.times[last], end) > gap:
        end = stream.times[last] + (gap if isinstance(gap, float) else floor(gap))
    return Situation(first, last, stream.times[first], end)


def seen_at(now: Time, situation: Situation, stream: Stream) -> Situation:
    """Return a situation as it is known when all events up to `now` are seen, and none later.

    It must have started by then.
    """
    if situation.end is not None and situation.end <= now:
        return situation
    seen = [position for position in range(situation.first, situation.last + 1) if stream.times[position] <= now]
    return replace(situation, last=seen[-1], end=None)


def definition_of(
    situation: ast_intervals.Situation, source: ast.Source | None, schema: Schema, time: pa.DataType, unit: str | None
) -> Definition:
    """Return the definition of a situation over events of `schema`.

    Timestamps are of type `time`, in ticks of `unit`.
    """
    name = situation.name
    condition = meaning(_of_events(situation.condition, name, _qualifiers(source)), schema)
    if condition.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise PatternError(f"a condition is a truth value, not a {condition.kind.value}")
    return Definition(
        name,
        lambda row: condition.value(Assignment({name: (row,)}, {name: 0})) is True,
        length_of(situation.at_least, time, unit),
        length_of(situation.at_most, time, unit),
    )


def is_boolean(source: ast.Source | None, schema: Schema, name: str, expression: ast.Expression) -> bool:
    """Return whether an expression in the definition of the situation `name` is a truth value."""
    return meaning(_of_events(expression, name, _qualifiers(source)), schema).kind is Kind.BOOLEAN


def _qualifiers(source: ast.Source | None) -> set[str | None]:
    """Return what may stand before an attribute: nothing, or the stream's name or alias."""
    return {None} if source is None else {None, source.name, source.alias}


def length_of(length: ast.Window | None, time: pa.DataType, unit: str | None) -> Length | None:
    """Return a length in ticks, as a float if timestamps are floats."""
    ticks = window_length(length, time, unit)
    return float(ticks) if ticks is not None and pa.types.is_floating(time) else ticks


def _of_events(condition: ast.Expression, name: str, qualifiers: Collection[str | None]) -> ast.Expression:
    """Return `condition` with its attributes written as attributes of the situation `name`.

    They may be bare, or qualified by the stream's name or alias.
    """

    def change(node: ast.Expression) -> ast.Expression | None:
        match node:
            case ast.Reference(variable=variable, attribute=str(), index=None) if variable in qualifiers:
                return replace(node, variable=name)
            case ast.Reference(variable=str(attribute), attribute=None, index=None):
                return replace(node, variable=name, attribute=attribute)
            case ast.Reference() | ast.PrevBound() | ast.Aggregate() | ast.Equivalence():
                raise PatternError("DEFINE reads attributes of the current event")
        return None

    return rewritten(condition, change)
