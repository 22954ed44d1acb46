"""The plan: everything the engine needs to know of a query, as picklable data with a stable hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import reduce
from operator import or_

from gpu_cep.analysis.bound import Bound, BoundQuery
from gpu_cep.plan.programs import Leaf, Program
from gpu_cep.plan.settings import Settings

PLAN_VERSION = 1


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
        """The variables that some predicate is about."""
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
    """Which columns a bank holds, in order: those of int64 and those of float64."""

    ints: tuple[int, ...] = ()
    floats: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return self.ints + self.floats


@dataclass(frozen=True, slots=True)
class Part:
    """What a condition reads of one variable: the roles of its current event and of the one bound before (−1: not read)."""

    variable: int
    each: int
    previous: int
    pairwise: bool


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    """A condition between bindings, as a program over roles; `needs` is the label mask of its variables."""

    parts: tuple[Part, ...]
    needs: int
    program: Program
    roles: int
    text: str


@dataclass(frozen=True, slots=True)
class ReturnProgram:
    """A computed RETURN item: the leaves that are its bank's int64 and float64 columns, one row per match, and the program."""

    ints: tuple[Leaf, ...]
    floats: tuple[Leaf, ...]
    program: Program


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is answered.

    `stream_keys` are the columns that split the events into streams
    (`partition_by`, and the derived keys where partitioning by them is
    on), `derived` those of them that must not be NULL. `properties` decide
    labels, `conditions` relate bindings, `layout` is the bank that the
    conditions read, `dictionaries` are groups of text columns that need one
    ordered dictionary. `steps` are the pruning steps that will run, `returns` the
    programs of RETURN's items (None: nothing to compute).
    """

    query: BoundQuery
    settings: Settings
    algorithm: str
    properties: tuple[Property, ...]
    conditions: tuple[PlannedCondition, ...]
    layout: BankLayout
    dictionaries: tuple[tuple[int, ...], ...]
    stream_keys: tuple[int, ...]
    derived: tuple[int, ...]
    steps: tuple[str, ...]
    returns: tuple[ReturnProgram | None, ...]
    version: int = PLAN_VERSION

    @property
    def bulk_columns(self) -> tuple[int, ...]:
        """The columns that phase 1 reads, in ascending order."""
        read = {self.query.timestamp, *self.stream_keys}
        return tuple(sorted(read.union(*(planned.columns for planned in self.properties))))

    def fingerprint(self) -> str:
        """A stable digest of the plan, the same in every process."""
        return hashlib.sha256(repr(self).encode()).hexdigest()
