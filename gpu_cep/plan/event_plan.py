"""Define plans as picklable data with a stable hash.

:class:`Plan` is what all kinds share; :class:`EventPlan` is the plan of an event pattern.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeVar

from gpu_cep.analysis.bound import BoundPattern, BoundQuery
from gpu_cep.analysis.bound_expressions import Bound, Constant
from gpu_cep.plan.programs import Leaf, Program
from gpu_cep.plan.settings import Settings

PLAN_VERSION = 12


@dataclass(frozen=True, slots=True)
class CodeProperty:
    """Predicates on one STRING column, which are decided once for each distinct value.

    `predicates`: each one with the label bits that it decides.
    """

    column: int
    predicates: tuple[tuple[Bound, int], ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """Return the column that is read."""
        return (self.column,)

    @property
    def bits(self) -> int:
        """Return the label bits of the variables that some predicate tests."""
        return reduce(or_, (bits for _, bits in self.predicates), 0)


@dataclass(frozen=True, slots=True)
class ComparisonProperty:
    """A comparison of one column with a constant, for the variables in `bits`."""

    column: int
    comparison: str
    constant: int | float
    bits: int

    @property
    def columns(self) -> tuple[int, ...]:
        """Return the column that is read."""
        return (self.column,)


@dataclass(frozen=True, slots=True)
class ProgramProperty:
    """Any other property: a program over one event, for the variables in `bits`.

    `program`: reads the event at role 0. `layout`: the bank of columns that it reads.
    `text`: the property as written.
    """

    program: Program
    layout: BankLayout
    bits: int
    text: str

    @property
    def columns(self) -> tuple[int, ...]:
        """Return the columns that the program reads."""
        return self.layout.columns


Property = CodeProperty | ComparisonProperty | ProgramProperty


@dataclass(frozen=True, slots=True)
class BankLayout:
    """The columns that programs read, by type and in order: int64, float64, and lists of numbers.

    `derived`: programs whose results are further float64 columns, behind `floats`. They read an event
    of the other columns.
    """

    ints: tuple[int, ...] = ()
    floats: tuple[int, ...] = ()
    vectors: tuple[int, ...] = ()
    derived: tuple[Program, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """Return the columns of numbers, without lists."""
        return self.ints + self.floats


class Spread(enum.Enum):
    """For which events of a binding a condition is tested."""

    ONCE = "once"  # once for the whole binding
    SINGLY = "singly"  # for every event
    CONSECUTIVELY = "consecutively"  # for every event but the first, with the one bound before it
    PAIRWISE = "pairwise"  # for every two events


@dataclass(frozen=True, slots=True)
class Part:
    """What a condition reads of one variable.

    `variable`: its place in the branch.
    `spread`: for which of its events the condition is tested.
    `each`: the role of the current event. `previous`: that of the event bound before it.
    `first`, `last`: the roles of the binding's first and last events. A role of −1 is not read.
    """

    variable: int
    spread: Spread
    each: int = -1
    previous: int = -1
    first: int = -1
    last: int = -1


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    """A condition that relates events, as a program.

    `parts`: what it reads of each variable.
    `closing`: the variables whose last event or aggregate it reads; it waits until they are complete.
    `program`: reads events by role. `roles`: the number of roles.
    `text`: the condition as written.
    """

    parts: tuple[Part, ...]
    closing: tuple[int, ...]
    program: Program
    roles: int
    text: str

    @property
    def variables(self) -> frozenset[int]:
        """Return the variables that the condition relates."""
        return frozenset(part.variable for part in self.parts)


@dataclass(frozen=True, slots=True)
class RunningAggregate:
    """An aggregate that is updated with each event that a variable binds.

    `step`: the update (:mod:`gpu_cep_kernels.rules.running`).
    `column`: the column that it reads, among the bank's columns of the step's type.
    """

    variable: int
    step: str
    column: int


@dataclass(frozen=True, slots=True)
class PlannedNegation:
    """A negated variable and its scope.

    `after`, `before`: the variables before and behind it, between which no event may match it.
    Where there are none, the window bounds the scope.
    """

    variable: int
    after: tuple[int, ...]
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LiftedCondition:
    """A condition that each event decides together with those right before it in its stream.

    `condition`: its number in the branch.
    `variable`: the variable whose events it judges.
    `repeated`: whether it judges all events of the binding but the first; else it judges the first.
    `back`: for each role, how many places before the judged event its event stands.
    """

    condition: int
    variable: int
    repeated: bool
    back: tuple[int, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PlannedBranch:
    """One branch of the pattern. Variables are numbered by their place in `variables`.

    `variables`: the query's numbers of the positive variables, ascending, and then of the negated ones.
    `before`: for each positive variable the mask of all that precede it.
    `conditions`: those that relate events.
    `aggregates`: in the order of their variables.
    `negations`: the negated variables with their scopes.
    `agreed`: the columns on which all events of a match are equal.
    `lifted`: all conditions as conditions between neighbours (None: some are none).
    """

    variables: tuple[int, ...]
    before: tuple[int, ...]
    conditions: tuple[PlannedCondition, ...]
    aggregates: tuple[RunningAggregate, ...]
    negations: tuple[PlannedNegation, ...]
    agreed: tuple[int, ...]
    lifted: tuple[LiftedCondition, ...] | None = None

    @property
    def positives(self) -> tuple[int, ...]:
        """Return the query's numbers of the positive variables."""
        return self.variables[: len(self.before)]


@dataclass(frozen=True, slots=True)
class ReturnProgram:
    """A computed item of RETURN.

    `ints`, `floats`, `vectors`: the values that it reads, one row for each match.
    `program`: computes the item from them; if `texts` are given, the number of one of them.
    """

    ints: tuple[Leaf, ...]
    floats: tuple[Leaf, ...]
    vectors: tuple[Leaf, ...]
    program: Program
    texts: tuple[Constant | Leaf, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Plan:
    """What plans of all kinds say.

    `query`, `settings`: what is asked, and how.
    `properties`: the tests that decide labels.
    `dictionaries`: the groups of text columns that share one ordered dictionary.
    `layout`: the columns that conditions between bindings read.
    `stream_keys`: the columns that split events into streams: `partition_by` and the `derived` keys.
    `derived`: keys that conditions imply; they must not be NULL.
    `pruning`: the pruning steps that run.
    `returns`: a program for each item of RETURN (None: its values are read as they stand).
    `ends`: columns whose values at a match's first and last events end each row of its result.
    `slice_key`: the column that numbers slices of time, which no error names (None: there is none).
    """

    query: BoundQuery
    settings: Settings
    properties: tuple[Property, ...] = ()
    dictionaries: tuple[tuple[int, ...], ...] = ()
    layout: BankLayout = BankLayout()
    stream_keys: tuple[int, ...] = ()
    derived: tuple[int, ...] = ()
    pruning: tuple[str, ...] = ()
    returns: tuple[ReturnProgram | None, ...] = ()
    ends: tuple[int, ...] = ()
    slice_key: int | None = None
    version: int = PLAN_VERSION

    @property
    def bulk_columns(self) -> tuple[int, ...]:
        """Return the columns that phase 1 reads, in ascending order."""
        read = {self.query.timestamp, *self.stream_keys}
        return tuple(sorted(read.union(*(planned.columns for planned in self.properties))))

    @property
    def may_leave_out(self) -> bool:
        """Return whether matches that are found may be left out of the result."""
        return not self.settings.keeps_all

    def fingerprint(self) -> str:
        """Return a stable digest of the plan, the same in every process."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def are_disjoint(bound: Sequence[tuple[int, ...]]) -> bool:
    """Return whether no two branches bind the same variables, so that no two find the same match; `bound` are those of each."""
    return len(set(bound)) == len(bound)


# A rule that takes plans of all kinds returns the kind that it was given.
PlanT = TypeVar("PlanT", bound=Plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlan(Plan):
    """How an event pattern is answered.

    `contenders`: the algorithms, of which each batch of events takes one.
    `strategy`: the query's, or another one that finds the same matches (:mod:`gpu_cep.plan.robustness`).
    `branches`: the branches of the pattern.
    `ranking`: computes the query's ranking, if that is computed.
    """

    query: BoundPattern
    contenders: tuple[str, ...]
    strategy: str
    branches: tuple[PlannedBranch, ...] = ()
    ranking: ReturnProgram | None = None

    @property
    def algorithm(self) -> str:
        """Return the algorithm, or ``by_cost`` if each batch chooses its own."""
        return self.contenders[0] if len(self.contenders) == 1 else "by_cost"

    @property
    def may_leave_out(self) -> bool:
        """Return whether matches that are found may be left out of the result; several branches may find the same one."""
        return not self.settings.keeps_all or len(self.branches) > 1

    @property
    def finds_once(self) -> bool:
        """Return whether no two branches find the same match."""
        return are_disjoint([branch.positives for branch in self.branches])

    @property
    def windows_suffice(self) -> bool:
        """Return whether matchers need only the events of candidate windows.

        Several branches need other events as well, and negations look beyond the windows.
        """
        return len(self.branches) == 1 and not self.branches[0].negations
