"""Plans as picklable data with a stable hash: what all kinds share, and the plan of an event pattern."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeVar

from gpu_cep.analysis.bound import Bound, BoundPattern, BoundQuery
from gpu_cep.plan.programs import Leaf, Program
from gpu_cep.plan.settings import Settings

PLAN_VERSION = 5


@dataclass(frozen=True, slots=True)
class CodeProperty:
    """Properties of one STRING column, decided once per distinct value: each predicate with the label bits it decides."""

    column: int
    predicates: tuple[tuple[Bound, int], ...]

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)

    @property
    def bits(self) -> int:
        """The label bits of the variables that some predicate tests."""
        return reduce(or_, (bits for _, bits in self.predicates), 0)


@dataclass(frozen=True, slots=True)
class ComparisonProperty:
    """``column φ constant`` for the variables in `bits`."""

    column: int
    comparison: str
    constant: int | float
    bits: int

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)


@dataclass(frozen=True, slots=True)
class ProgramProperty:
    """Any other property: a program over one event (role 0) for the variables in `bits`."""

    program: Program
    layout: BankLayout
    bits: int
    text: str

    @property
    def columns(self) -> tuple[int, ...]:
        return self.layout.columns


Property = CodeProperty | ComparisonProperty | ProgramProperty


@dataclass(frozen=True, slots=True)
class BankLayout:
    """The columns of a bank, in order: those of int64, those of float64, and lists of numbers."""

    ints: tuple[int, ...] = ()
    floats: tuple[int, ...] = ()
    vectors: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return self.ints + self.floats


class Spread(enum.Enum):
    """The events of its variable's binding that a condition is tested for."""

    ONCE = "once"  # it reads the binding as a whole
    SINGLY = "singly"  # every event
    CONSECUTIVELY = "consecutively"  # every event but the first, with the one bound before
    PAIRWISE = "pairwise"  # every two events


@dataclass(frozen=True, slots=True)
class Part:
    """What a condition reads of a variable: the roles of its current event, the one bound before, the first and the last (−1: not read)."""

    variable: int
    spread: Spread
    each: int = -1
    previous: int = -1
    first: int = -1
    last: int = -1


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    """A condition between bindings, as a program over roles; `closing` are the variables whose last event or aggregate it reads."""

    parts: tuple[Part, ...]
    closing: tuple[int, ...]
    program: Program
    roles: int
    text: str

    @property
    def variables(self) -> frozenset[int]:
        return frozenset(part.variable for part in self.parts)


@dataclass(frozen=True, slots=True)
class RunningAggregate:
    """An aggregate that is updated while a binding grows: `step` names the update by one event (:mod:`gpu_cep_kernels.rules.running`).

    It reads column `column` among the bank's columns of the step's type.
    """

    variable: int
    step: str
    column: int


@dataclass(frozen=True, slots=True)
class PlannedNegation:
    """A negated variable, and the variables that bound its scope on either side (none: the window does)."""

    variable: int
    after: tuple[int, ...]
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedBranch:
    """One branch: `variables` are the query's numbers of its positive variables, ascending, and then of its negated ones.

    Everything else numbers variables by their place there: ``before[v]`` is
    the mask of all that precede v; `aggregates` stand in the order of their
    variables. `agreed` are the columns on which all events of a match are equal.
    """

    variables: tuple[int, ...]
    before: tuple[int, ...]
    conditions: tuple[PlannedCondition, ...]
    aggregates: tuple[RunningAggregate, ...]
    negations: tuple[PlannedNegation, ...]
    agreed: tuple[int, ...]

    @property
    def positives(self) -> tuple[int, ...]:
        """The query's numbers of the positive variables."""
        return self.variables[: len(self.before)]


@dataclass(frozen=True, slots=True)
class ReturnProgram:
    """A computed item of RETURN: its program, and the leaves that its bank holds as columns of one row per match."""

    ints: tuple[Leaf, ...]
    floats: tuple[Leaf, ...]
    vectors: tuple[Leaf, ...]
    program: Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What plans of all kinds say: how events are labelled, put into streams and ordered, and how results are written.

    `properties` decide labels. `dictionaries` are the groups of text columns
    that need one ordered dictionary each. `layout` is the bank of columns that
    conditions between bindings read. `stream_keys` are the columns that split
    the events into streams: `partition_by`, and the `derived` keys, which must
    not be NULL. `steps` are the pruning steps that run. `returns` are the
    programs of RETURN's items (None: nothing to compute). `ends` are columns
    whose values at a match's first and last event end each row of its result.
    """

    query: BoundQuery
    settings: Settings
    properties: tuple[Property, ...] = ()
    dictionaries: tuple[tuple[int, ...], ...] = ()
    layout: BankLayout = BankLayout()
    stream_keys: tuple[int, ...] = ()
    derived: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()
    returns: tuple[ReturnProgram | None, ...] = ()
    ends: tuple[int, ...] = ()
    version: int = PLAN_VERSION

    @property
    def bulk_columns(self) -> tuple[int, ...]:
        """The columns that phase 1 reads, in ascending order."""
        read = {self.query.timestamp, *self.stream_keys}
        return tuple(sorted(read.union(*(planned.columns for planned in self.properties))))

    def fingerprint(self) -> str:
        """Return a stable digest of the plan, the same in every process."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


# A plan of one kind, which a rule for all kinds gives back as that kind.
PlanT = TypeVar("PlanT", bound=Plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlan(Plan):
    """How an event pattern is answered.

    `contenders` are the algorithms of which each batch of events takes one.
    `strategy` is that by which matches are sought: the query's, or one that
    finds the same (:mod:`gpu_cep.plan.robustness`). `branches` relate
    bindings.
    """

    query: BoundPattern
    contenders: tuple[str, ...]
    strategy: str
    branches: tuple[PlannedBranch, ...] = ()

    @property
    def algorithm(self) -> str:
        """The algorithm, or ``by_cost`` where each batch has its own."""
        return self.contenders[0] if len(self.contenders) == 1 else "by_cost"

    @property
    def windows_suffice(self) -> bool:
        """Whether matchers need no events but those of candidate windows.

        Those of several branches need others, and so do negations, which look beyond the windows.
        """
        return len(self.branches) == 1 and not self.branches[0].negations
