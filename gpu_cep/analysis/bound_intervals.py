"""The bound form of a query over situations: names resolved to numbers, types explicit, one constraint for each pair.

It is what :func:`gpu_cep.analysis.bind_intervals.bind_intervals` makes of an
AST and a schema. Situations are numbered in the order of DEFINE.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.analysis.bound import BoundQuery, TimeWindow
from gpu_cep.lang.ast import Span


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a situation lasts: te − ts is at least `shortest` and at most `longest` ticks of the timestamp column (None: no bound)."""

    shortest: int | float | None
    longest: int | float | None


@dataclass(frozen=True, slots=True)
class BoundConstraint:
    """The relations of which one must hold between situations `left` < `right` (Definition 10), by their names in Table 1.

    `text` is what the query says of the two, for messages and explain.
    """

    left: int
    right: int
    relations: frozenset[str]
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundIntervals(BoundQuery):
    """A query over situations (``002_…`` Definition 8), bound to a schema.

    Situation v is ``variables[v]``, which binds events that satisfy the
    property ``conditions[v]``; it lasts as long as ``durations[v]`` says.
    `early` says whether matches are reported as soon as all is decided
    (section 5.3), or when their situations have ended. A situation ends `gap`
    ticks after its last event where the next comes later (None: no limit).
    """

    window: TimeWindow | None
    durations: tuple[Duration, ...]
    constraints: tuple[BoundConstraint, ...]
    early: bool = False
    gap: int | float | None = None
