"""What all matchers share: the search they serve, and the protocol by which the road through the engine calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpu_cep.engine.accounting.budget import Account
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.matchers.dead_ends import state_table
from gpu_cep.engine.matchers.negations import negated_events, negation_table
from gpu_cep.engine.matchers.partitions import partition_columns, successors
from gpu_cep.engine.phase_one.on_cpu import EventRun
from gpu_cep.engine.windows.candidates import Windows
from gpu_cep.plan.event_plan import EventPlan, PlannedCondition
from gpu_cep_kernels.automaton.dead_ends import StateTable
from gpu_cep_kernels.rules.cut import KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST
from gpu_cep_kernels.rules.tables import Conditions, EventTable, NegationTable

_KEPT = {"all": KEEP_ALL, "skip_past_last": KEEP_DISJOINT, "skip_to_next": KEEP_EARLIEST}


class ConditionOverflow(Exception):
    """An int64 overflow in a condition, and the event at which the window starts."""

    def __init__(self, condition: PlannedCondition, start: int) -> None:
        super().__init__(condition, start)
        self.condition = condition
        self.start = start


@dataclass(frozen=True, slots=True)
class Search:
    """What is sought of a branch, and where; shared by all batches and threads.

    ``successor[e]`` is the ordered event that follows event e in its
    partition (empty where that is always the next). `states` tells apart the
    states of the automaton whose dead ends are kept, if any are. Only matches
    that start in `own` are asked for. `threads` may work on one batch.
    """

    plan: EventPlan
    tables: MatcherTables
    ordered: OrderedEvents
    successor: Indices
    negations: NegationTable
    states: StateTable | None
    budget: Account
    profile: Profile
    own: Own = WHOLE
    threads: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the branch's positive variables."""
        return tuple(self.plan.query.variables[v].name for v in self.tables.branch.positives)

    @property
    def kept(self) -> int:
        """Which matches are to be found at least, as kernels see it."""
        return _KEPT[self.plan.settings.after_match] if "overlap" in self.plan.steps else KEEP_ALL

    @property
    def passes_cut(self) -> bool:
        """Whether runs that NFA^b completes rule others out: not where the path of each is still to be judged."""
        return self.kept == KEEP_DISJOINT and not (self.tables.branch.negations or len(self.tables.conditions.final))

    def conditions(self, batch: Batch) -> Conditions:
        """What the branch's conditions are judged by in a batch."""
        tables = self.tables
        return Conditions(tables.conditions, tables.aggregates, tables.programs, self.ordered.bank, batch.low)

    def events(self, batch: Batch, windows: Windows) -> EventTable:
        """What follows each event of a batch, which are numbered from its first."""
        return EventTable(windows.after, windows.occurrence, self.successor[batch.low : batch.high] - batch.low)


def searches(run: EventRun, ordered: OrderedEvents) -> tuple[Search, ...]:
    """What is sought of each branch among the ordered events."""
    plan = run.plan
    events = negated_events(plan, ordered)
    splits = [partition_columns(plan, tables.branch) for tables in run.tables]
    found = {split: successors(run.columns, ordered, split) for split in splits}
    return tuple(
        Search(
            plan=plan,
            tables=tables,
            ordered=ordered,
            successor=found[split],
            negations=negation_table(plan, ordered, tables.branch, events),
            states=state_table(tables) if plan.strategy == "robust_skip_till_next_match" else None,
            budget=run.budget,
            profile=run.profile,
            own=run.own,
            threads=run.threads,
        )
        for tables, split in zip(run.tables, splits, strict=True)
    )


class Matcher(Protocol):
    """An algorithm: finds or counts the matches that start in a batch."""

    def find(self, batch: Batch) -> Matches:
        """The matches, in order of first event, last event and bindings."""

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """How many matches the streams of the batch have, in any number of parts: ascending starts of matches, and a number at each."""
