"""The road through the engine: columns → labels → streams → windows → candidates → matches → table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpu_cep.engine.batches import Batch, cut_batches
from gpu_cep.engine.budget import Budget, BudgetExceeded
from gpu_cep.engine.candidates import Candidates, Windows, match_windows, prune_windows
from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.direct import DirectMatcher, is_deterministic, reads_directly
from gpu_cep.engine.keys import encode_keys
from gpu_cep.engine.labels import label_events
from gpu_cep.engine.matches import Indices, Matches, concatenated
from gpu_cep.engine.order import in_result_order, matches_by_stream
from gpu_cep.engine.patterns import matcher_tables
from gpu_cep.engine.profile import Profile
from gpu_cep.engine.programs import tabulator
from gpu_cep.engine.results import count_table, match_table
from gpu_cep.engine.ses_automaton import ConditionOverflow, SesAutomaton
from gpu_cep.engine.streams import OrderedEvents, load_times, order_events
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep.plan.plan import Plan
from gpu_cep_kernels.launch import available_threads, spread

# Sums of match counts are exact in int64 below this bound, whatever the rounding of the float sum that is compared with it.
_MOST_MATCHES = 2.0**62


def execute(plan: Plan, table: pa.Table, *, threads: int | None = None, profile: Profile | None = None) -> pa.Table:
    """Run `plan` over the events of `table`.

    Parameters
    ----------
    threads
        Threads to use; None: all cores that the process may use.
    profile
        Receives the counts and seconds of each stage.

    Raises
    ------
    EventError
        The events are at fault.
    MatchLimitExceeded
        More matches or steps than the settings, or matches than memory, allow.
    """
    profile = profile or Profile()
    threads = threads or available_threads()
    columns = EventColumns(table, plan.query, plan.dictionaries)
    profile.add("events", len(columns))
    ordered = _ordered(plan, columns, threads, profile)
    search = _Search(plan, columns, ordered, SesAutomaton(
        matcher_tables(plan, tabulator(columns)),
        plan.query.strategy == "skip_till_any_match",
        Budget(plan.settings.max_matches, plan.settings.max_steps),
    ), profile)  # fmt: skip
    batches = cut_batches(plan, ordered)
    try:
        if plan.settings.output == "count":
            return _counted(search, spread(search.count, batches, threads))
        found = concatenated(spread(search.find, batches, threads), len(plan.query.variables))
    except BudgetExceeded as exceeded:
        raise MatchLimitExceeded(f"{exceeded.reason}, in {_window_name(search, exceeded.start)}") from None
    except ConditionOverflow as overflow:
        condition = plan.conditions[overflow.condition].text
        raise EventError(f"integer overflow in {condition}, in {_window_name(search, overflow.start)}") from None
    finally:
        search.automaton.budget.close()
    with profile.stage("results"):
        matches, streams = in_result_order(plan, columns, ordered, found)
        return match_table(plan, columns, ordered.rows, streams, matches)


def _ordered(plan: Plan, columns: EventColumns, threads: int, profile: Profile) -> OrderedEvents:
    with profile.stage("timestamps"):
        times = load_times(columns, plan.query.timestamp)
    with profile.stage("labels"):
        labelled = label_events(plan, columns, threads)
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.stream_keys)
    with profile.stage("order"):
        ordered = order_events(plan, columns, times, labelled, keys, threads)
    profile.add("filtered", len(ordered.rows))
    return ordered


@dataclass(frozen=True)
class _Search:
    """What every batch needs."""

    plan: Plan
    columns: EventColumns
    ordered: OrderedEvents
    automaton: SesAutomaton
    profile: Profile

    def find(self, batch: Batch) -> Matches:
        """The matches of a batch."""
        windows, candidates, direct = self._candidates(batch)
        with self.profile.stage("matching"):
            if direct is not None:
                matches = direct.find(batch, windows, candidates)
                self.automaton.budget.spend(batch.low, len(matches), matches.size, 0)
            else:
                matches = self.automaton.find(self.ordered, batch, windows, candidates)
        self.profile.add("matches", len(matches))
        return matches

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """The candidates of a batch, and how many matches start at each."""
        windows, candidates, direct = self._candidates(batch)
        with self.profile.stage("matching"):
            if direct is not None:
                totals = np.ones(len(candidates.starts), np.int64)
                self.automaton.budget.spend(batch.low, len(totals), 0, 0)
            else:
                totals = self.automaton.count(self.ordered, batch, windows, candidates)
        self.profile.add("matches", int(totals.sum()))
        return candidates.starts + batch.low, totals

    def _candidates(self, batch: Batch) -> tuple[Windows, Candidates, DirectMatcher | None]:
        tables = self.automaton.tables
        windows = match_windows(self.plan, self.ordered, batch, tables, self.profile)
        if not (reads_directly(self.plan, tables) and is_deterministic(windows, tables)):
            return windows, prune_windows(self.plan, windows, tables, self.profile), None
        direct = DirectMatcher(tables)
        with self.profile.stage("chain"):
            candidates = direct.candidates(windows)
        self.profile.add("candidates", len(candidates.starts))
        return windows, candidates, direct


def _counted(search: _Search, parts: list[tuple[Indices, Indices]]) -> pa.Table:
    """Matches per `partition_by` stream, of those that have any (of the one stream without keys, in any case)."""
    plan, columns, ordered = search.plan, search.columns, search.ordered
    starts = np.concatenate([np.empty(0, np.int64), *(starts for starts, _ in parts)])
    totals = np.concatenate([np.empty(0, np.int64), *(totals for _, totals in parts)])
    if float(totals.sum(dtype=np.float64)) > _MOST_MATCHES:
        raise MatchLimitExceeded("the number of matches does not fit a 64-bit count")
    if plan.query.partition_by:
        return count_table(plan, columns, *matches_by_stream(plan, columns, ordered, starts, totals))
    return count_table(plan, columns, np.empty(0, np.int64), np.array([totals.sum()], np.int64))


def _window_name(search: _Search, start: int) -> str:
    """The stream and the window that start at an ordered event, for messages."""
    plan, columns = search.plan, search.columns
    row = int(search.ordered.rows[start])
    keys = ", ".join(f"{columns.name(column)}={columns.arrow(column)[row].as_py()!r}" for column in plan.stream_keys)
    time = columns.arrow(plan.query.timestamp)[row].as_py()
    stream = f"stream {keys}" if keys else "the only stream"
    return f"the window that starts at {columns.name(plan.query.timestamp)}={time} (input row {row}) of {stream}"
