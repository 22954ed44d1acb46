"""Hold what threads share that search for the matches of a row pattern, and the room that each of them works in."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar

import numpy as np

from gpu_cep.engine.lowering.programs import WIDER_IN_ROWS, failure
from gpu_cep.engine.row_patterns.condition_tables import ConditionTables
from gpu_cep.engine.row_patterns.found import Lengths, SearchProgress
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.errors import MatchLimitExceeded
from gpu_cep.plan.row_patterns.row_plan import MatchConditions
from gpu_cep_kernels.row_patterns.conditions import COUNT_DISTINCT, Mapped
from gpu_cep_kernels.row_patterns.tables import UNMATCHED, Reach
from gpu_cep_kernels.rules.tables import AggregateValues, ColumnBank, Registers


@dataclass
class StepBudget:
    """The steps of all threads so far, and whether the search has ended.

    `STEPS`: those between two looks at whether the user has interrupted the call, which take some tens of milliseconds.
    """

    STEPS: ClassVar[int] = 1 << 20

    max_steps: int | None
    steps: int = 0
    closed: bool = False
    lock: Lock = field(default_factory=Lock)

    def spend(self, steps: int) -> None:
        """Count steps; raise MatchLimitExceeded if they are too many, or if another thread has failed or was interrupted."""
        with self.lock:
            self.steps += steps
            if self.closed:
                raise MatchLimitExceeded("the search has ended")
            if self.max_steps is not None and self.steps > self.max_steps:
                where = "in a search whose conditions read the match so far"
                raise MatchLimitExceeded(f"more than max_steps={self.max_steps:,} steps, {where}")


@dataclass(frozen=True)
class RowSearch:
    """A search that threads share.

    `tables`, `bank`: its conditions and the columns that they read. `begun`, `reach`: where it begins in each partition, and where
    matches can end. `lengths`: receives the length of the match that begins at each row.
    """

    run: RowRun
    conditions: MatchConditions
    begun: SearchProgress
    reach: Reach
    tables: ConditionTables
    bank: ColumnBank
    lengths: Lengths
    account: StepBudget


def lengths_of(search: RowSearch, part: tuple[int, int]) -> Lengths:
    """Return the lengths with those of matches that other threads have found left out."""
    low, high = search.run.ordered.offsets[[part[0], part[1]]]
    own = np.full_like(search.lengths, UNMATCHED)
    own[low:high] = search.lengths[low:high]
    return own


def failure_at(search: RowSearch, state: int, ordered: int) -> str:
    """Return the message for a condition of a state that cannot be computed at an ordered row."""
    own = [each for each in search.conditions.conditions if each.variable == search.run.automaton.variable[state]]
    place = f"DEFINE … AS {own[0].text} at input row {search.run.input_row(ordered)}"
    return f"{failure(*(each.program for each in own))} in {place}; {WIDER_IN_ROWS}"


def room_for(search: RowSearch, longest: int) -> Mapped:
    """Return room for what a match of so many rows maps."""
    table, programs = search.tables.table, search.tables.programs
    totals, sets = len(table.step), len(table.in_set)
    roles = max(1, len(search.conditions.places), totals)
    shape = totals, longest + 1
    values = AggregateValues(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.float64))
    registers = Registers(
        np.zeros(roles, np.int64), np.zeros(roles, np.int64), np.zeros(programs.registers, np.int64),
        np.zeros(programs.registers, np.float64), np.zeros(programs.registers, np.bool_),
    )  # fmt: skip
    rows, counts, covered = np.zeros((sets, longest), np.int64), np.zeros(sets, np.int64), np.zeros(totals, np.int64)
    coded = (totals, longest + 1, search.tables.codes) if (table.step == COUNT_DISTINCT).any() else (0, 0, 0)
    codes, places = np.zeros(coded[:2], np.int64), np.zeros(coded[::2], np.int64)
    return Mapped(rows, counts, values, covered, codes, places, registers)
