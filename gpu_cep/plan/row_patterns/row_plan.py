"""Define how a row pattern is answered."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

from gpu_cep.analysis.bound_expressions import Bound
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.plan.event_plan import BankLayout, EventPlan, ReturnProgram
from gpu_cep.plan.programs import Program
from gpu_cep.plan.row_patterns.automaton import RowAutomaton
from gpu_cep.plan.row_patterns.places import RowColumns, RowPlace, Total


class Judged(Enum):
    """Say from what a condition is judged."""

    ROW = "the row itself"
    BESIDE = "rows at fixed distances"
    MATCH = "the match so far"


@dataclass(frozen=True, slots=True)
class JudgedCondition:
    """A condition as it is written, an operand of the top-level AND of what DEFINE says, and from what it is judged.

    `distances`: how far behind the current row the rows are that it reads, before it if negative; none if the match is read.
    """

    variable: int
    text: str
    how: Judged
    distances: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NeighbourCondition:
    """A condition on a row and on rows at fixed distances from it; it decides a label bit.

    `variable`: the variable that it defines.
    `program`: its role r reads the row that is ``distances[r]`` rows behind the current one, before it if negative.
    `text`: the condition as it is written, for errors.
    """

    variable: int
    program: Program
    distances: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """A condition that reads the match so far, one operand of the AND that defines a variable.

    `program`: its role r reads the row at ``places[r]`` of the search; an aggregate is a total of it.
    `text`: all that DEFINE says of the variable, for errors.
    """

    variable: int
    program: Program
    text: str


@dataclass(frozen=True, slots=True)
class MatchConditions:
    """All conditions that read the match so far, by variable, with the columns, places and totals that they read."""

    conditions: tuple[MatchCondition, ...]
    layout: BankLayout
    places: tuple[RowPlace, ...]
    totals: tuple[Total, ...]


@dataclass(frozen=True, slots=True)
class PlannedMeasure:
    """A measure with its fields and aggregates placed; `program` is None if its values are read as they stand."""

    expression: Bound
    program: ReturnProgram | None


@dataclass(frozen=True, slots=True)
class RowPlan:
    """How a row pattern is answered.

    `labels`: a plan whose properties are the conditions on one row; its query names the columns.
    `neighbours`: the conditions on rows at fixed distances, which read the columns of `layout`.
    `search`: the conditions that read the match so far; None if labels decide everything.
    `places`, `totals`: what the measures read.
    `judged`: the conditions in words.
    """

    bound: BoundRowPattern
    automaton: RowAutomaton
    columns: RowColumns
    labels: EventPlan
    neighbours: tuple[NeighbourCondition, ...]
    layout: BankLayout
    search: MatchConditions | None
    measures: tuple[PlannedMeasure, ...]
    places: tuple[RowPlace, ...]
    totals: tuple[Total, ...]
    judged: tuple[JudgedCondition, ...]

    def fingerprint(self) -> str:
        """Return a stable digest of the plan, the same in every process."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    @property
    def variables(self) -> int:
        """Return the number of the pattern's variables."""
        return len(self.bound.variables) - 1 - len(self.bound.subsets)
