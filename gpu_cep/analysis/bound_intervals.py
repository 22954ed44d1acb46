"""Define the bound form of a query over situations.

Names are numbers, types are explicit, and each related pair of situations has one constraint.

:func:`gpu_cep.analysis.bind_intervals.bind_intervals` makes it of an AST and a schema.
Situations are numbered in the order of DEFINE.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.analysis.bound import BoundQuery, TimeWindow
from gpu_cep.lang.ast import Span


@dataclass(frozen=True, slots=True)
class Duration:
    """The bounds of a situation's duration, in ticks of the timestamp column (None: no bound).

    A situation's duration is its end minus its start.
    """

    shortest: int | float | None
    longest: int | float | None


@dataclass(frozen=True, slots=True)
class BoundConstraint:
    """The constraint on two situations (Definition 10).

    `left`, `right`: their numbers; `left` is the smaller one.
    `relations`: the allowed relations of left to right, by their names in Table 1 and in its order, so that plans are written alike.
    `text`: what the query says of the two, for messages and explain.
    """

    left: int
    right: int
    relations: tuple[str, ...]
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundIntervals(BoundQuery):
    """A query over situations (TPStream, Definition 8), bound to a schema.

    Situation v is ``variables[v]``; its events satisfy ``conditions[v]``.
    `durations`: the bounds of each situation's duration.
    `constraints`: one for each related pair.
    `early`: whether a match is reported when its constraints are decided (section 5.3), not at its last end.
    `gap`: the longest time in ticks between two events of one situation (None: no limit).
    A longer one ends the situation `gap` ticks after its last event.
    """

    window: TimeWindow | None
    durations: tuple[Duration, ...]
    constraints: tuple[BoundConstraint, ...]
    early: bool = False
    gap: int | float | None = None
