"""The bound form of a query over situations: names resolved to numbers, types explicit, one constraint for each pair.

It is what :func:`gpu_cep.analysis.bind_intervals.bind_intervals` makes of an
AST and a schema. Situations are numbered in the order of DEFINE.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.analysis.bound import Bound, Computed, ReturnColumn, TimeWindow
from gpu_cep.analysis.types import Schema
from gpu_cep.lang.ast import Span


@dataclass(frozen=True, slots=True)
class BoundSituation:
    """A situation stream (``002_…`` Definition 8).

    `condition` reads fields of one event, whose variable has the situation's
    own number. The duration te − ts is at least `shortest` and at most
    `longest` ticks of the timestamp column (None: no bound).
    """

    name: str
    condition: Bound
    shortest: int | float | None
    longest: int | float | None
    text: str


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


@dataclass(frozen=True, slots=True)
class BoundIntervals:
    """A query over situations, bound to a schema; columns are numbers, and `window` is None without WITHIN.

    `early` says whether matches are reported as soon as all is decided
    (section 5.3), or when their situations have ended. A situation ends `gap`
    ticks after its last event where the next comes later (None: no limit).
    """

    schema: Schema
    computed: tuple[Computed, ...]
    situations: tuple[BoundSituation, ...]
    constraints: tuple[BoundConstraint, ...]
    returns: tuple[ReturnColumn, ...]
    window: TimeWindow | None
    timestamp: int
    partition_by: tuple[int, ...]
    order_by: tuple[int, ...]
    early: bool = False
    gap: int | float | None = None
