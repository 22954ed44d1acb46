"""Say what walks through single runs, and searches, read and write; whoever walks or searches may hold more."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.rules.tables import (
    AggregateTable,
    AggregateValues,
    ColumnBank,
    ComparisonTable,
    Ints,
    Places,
    ProgramTable,
    Registers,
    Variables,
)

# Numbers of events, places or variables, of either width.
Numbers = npt.NDArray[np.signedinteger[Any]]


class JudgedTable(ComparisonTable, Protocol):
    """Say how conditions are computed, as the fields of the same names of ConditionTable."""

    @property
    def code_first(self) -> Ints: ...
    @property
    def code_last(self) -> Ints: ...
    @property
    def result(self) -> Ints: ...


class JudgedConditions(Protocol):
    """Hold conditions with what they name and read, as the fields of the same names of Conditions."""

    @property
    def table(self) -> JudgedTable: ...
    @property
    def aggregates(self) -> AggregateTable: ...
    @property
    def programs(self) -> ProgramTable: ...
    @property
    def bank(self) -> ColumnBank: ...
    @property
    def base(self) -> int: ...


class Quantifiers(Protocol):
    """Say how many events each variable binds, as the fields of the same names of PatternTable."""

    @property
    def minimum(self) -> Ints: ...
    @property
    def maximum(self) -> Ints: ...


class WalkedCriteria(Protocol):
    """Hold what makes events a run, as the fields of the same names of Criteria."""

    @property
    def pattern(self) -> Quantifiers: ...
    @property
    def conditions(self) -> JudgedConditions: ...


class WalkedEvents(Protocol):
    """Look up which event follows, as the fields of the same names of EventTable."""

    @property
    def after(self) -> Places: ...
    @property
    def occurrence(self) -> Places: ...


class JudgingPath(Protocol):
    """Hold where conditions are judged, as the fields of the same names of EventPath."""

    @property
    def state(self) -> Ints: ...
    @property
    def aggregates(self) -> AggregateValues: ...
    @property
    def registers(self) -> Registers: ...


class WrittenMatches(Protocol):
    """Receive matches, as the fields of the same names of MatchTable."""

    @property
    def counts(self) -> Places: ...
    @property
    def events(self) -> Any: ...


class KeptMatches(WrittenMatches, Protocol):
    """Receive matches and where they start, as the fields of the same names of MatchTable."""

    @property
    def starts(self) -> Ints: ...


class SearchingPath(JudgingPath, Protocol):
    """Hold the state of a search, as the fields of the same names of EventPath."""

    @property
    def event(self) -> Numbers: ...
    @property
    def bound_to(self) -> Variables: ...
    @property
    def earlier(self) -> Numbers: ...
    @property
    def choice_event(self) -> Numbers: ...
    @property
    def choices(self) -> Variables: ...
    @property
    def left(self) -> Numbers: ...
    @property
    def led(self) -> npt.NDArray[Any]: ...
    @property
    def last(self) -> Numbers: ...
    @property
    def first(self) -> Numbers: ...
    @property
    def bound(self) -> Numbers: ...
    @property
    def blockers(self) -> Numbers: ...
    @property
    def available(self) -> Variables: ...
    @property
    def next_place(self) -> Numbers: ...
    @property
    def earliest(self) -> Numbers: ...
