"""Hold what all matchers share: the search for one branch's matches, and the protocol of a matcher."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gpu_cep.engine.accounting.match_budget import Account
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch, window_clock
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.lowering.overflow import ConditionOverflow
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.matchers.dead_ends import state_keys
from gpu_cep.engine.matchers.negation_scopes import negated_events, negation_table
from gpu_cep.engine.matchers.partitions import partition_columns, partition_successors
from gpu_cep.engine.matchers.start_limit import StartLimit, start_limit
from gpu_cep.engine.phase_one.run import EventRun, JoinInputs
from gpu_cep.engine.windows.candidates import BatchWindows
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.automaton.dead_ends import StateKeys
from gpu_cep_kernels.compile.launch import threads_for
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.phase_one.input_buffers import Streams
from gpu_cep_kernels.rules.cut import KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST
from gpu_cep_kernels.rules.tables import Conditions, EventTable, NegationTable

_KEPT_MATCHES = {"all": KEEP_ALL, "skip_past_last": KEEP_DISJOINT, "skip_to_next": KEEP_EARLIEST}


class Search(NamedTuple):
    """The search for a branch's matches among the ordered events; all batches and threads share it.

    ``successor[e]`` is the event that follows event e in its partition. The
    array is empty if that is always the next event. `state_keys` says what
    identifies a state of the automaton; it is None if no states are remembered.
    Only matches that start in `own` are asked for. `threads` may share a batch. Joins may run on `device`, where
    their `inputs` may lie (None: they are on the host alone). `limit` is that of the matches of one first event
    (None: all are kept).
    """

    plan: EventPlan
    tables: MatcherTables
    ordered: OrderedEvents
    successor: Indices
    negations: NegationTable
    state_keys: StateKeys | None
    budget: Account
    profile: Profile
    own: Own = WHOLE
    threads: int = 1
    device: Device | None = None
    inputs: JoinInputs | None = None
    limit: StartLimit | None = None

    @property
    def variable_count(self) -> int:
        """Return the number of variables that the branch binds."""
        return len(self.tables.pattern.order)

    @property
    def variable_names(self) -> tuple[str, ...]:
        """Return the names of the variables that the branch binds."""
        return tuple(self.plan.query.variables[v].name for v in self.tables.branch.positives)

    @property
    def kept_matches(self) -> int:
        """Return which matches must be found at least, as a constant of :mod:`gpu_cep_kernels.rules.cut`."""
        return _KEPT_MATCHES[self.plan.settings.searched] if "overlap" in self.plan.pruning else KEEP_ALL

    @property
    def kept_limit(self) -> int:
        """Return how many matches of each first event must be found at least, if not all must be."""
        return 1 if self.kept_matches == KEEP_ALL else self.plan.settings.limit_per_start or 1

    @property
    def nfab_cuts_runs(self) -> bool:
        """Return whether a run that NFA^b completes rules out other runs.

        It does not if the paths of a completed run are still to be judged.
        """
        return self.kept_matches == KEEP_DISJOINT and not (self.tables.branch.negations or len(self.tables.conditions.final))

    def conditions(self, batch: Batch) -> Conditions:
        """Return the branch's conditions with all that kernels need to judge them in a batch."""
        tables = self.tables
        return Conditions(tables.conditions, tables.aggregates, tables.programs, self.ordered.bank, batch.low)

    def event_table(self, batch: Batch, windows: BatchWindows) -> EventTable:
        """Return what follows each event of a batch; events are numbered from the batch's first.

        What follows in a later batch is out of reach of all windows, and has the number of events of this one.
        """
        successors = np.minimum(self.successor[batch.low : batch.high], batch.high) - batch.low
        return EventTable(*windows.next_events, successors)

    def streams(self, batch: Batch) -> Streams:
        """Return the streams with the times of a batch's events."""
        clock, length = window_clock(self.plan, self.ordered, batch.low, batch.high)
        strict = self.plan.query.ties == "strict"
        return Streams(self.ordered.offsets, self.ordered.times[batch.low : batch.high], clock, length, strict)

    def stream_count(self, batch: Batch) -> int:
        """Return the number of streams from that of the batch's first event to that of its last."""
        first, last = np.searchsorted(self.ordered.offsets, [batch.low, batch.high - 1], side="right")
        return int(last - first) + 1

    def overflow(self, condition: int, start: int) -> ConditionOverflow:
        """Return the error of the condition of this number in the window that starts at ordered event `start`."""
        return ConditionOverflow(self.tables.branch.conditions[condition], start)


def searches(
    run: EventRun, ordered: OrderedEvents, device: Device | None = None, inputs: JoinInputs | None = None
) -> tuple[Search, ...]:  # fmt: skip
    """Return a search for each branch among the ordered events; joins may run on `device`, where their `inputs` may lie."""
    plan = run.plan
    events = negated_events(plan, ordered, threads_for(len(ordered.rows), run.threads))
    splits = [partition_columns(plan, tables.branch) for tables in run.tables]
    successors = {split: partition_successors(run.columns, ordered, split) for split in splits}
    return tuple(
        Search(
            plan=plan,
            tables=tables,
            ordered=ordered,
            successor=successors[split],
            negations=negation_table(plan, ordered, tables, events),
            state_keys=state_keys(tables) if plan.strategy == "robust_skip_till_next_match" else None,
            budget=run.budget,
            profile=run.profile,
            own=run.reported.own,
            threads=run.threads,
            device=device,
            inputs=inputs,
            limit=start_limit(plan, run.columns, ordered),
        )
        for tables, split in zip(run.tables, splits, strict=True)
    )


class Matcher(Protocol):
    """An algorithm: finds or counts the matches that start in a batch."""

    def find(self, batch: Batch) -> Matches:
        """Return the matches, in order of first event, last event and bindings."""

    def count(self, batch: Batch) -> StartCounts:
        """Return the numbers of matches, at ascending events."""


def entry_of_match(totals: Indices, match: int) -> int:
    """Return the entry that match number `match` belongs to if entry i stands for ``totals[i]`` matches."""
    return int(np.searchsorted(np.cumsum(totals, dtype=np.float64), match, side="right"))
