"""Measure how much work a batch's matches are: counts of events, and samples of the work itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from gpu_cep.engine.accounting.profile import UNREAD
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.sampling import NOTHING, WorkSample, cluster_places, scatter_places, spread_places
from gpu_cep.engine.lowering.overflow import ConditionOverflow
from gpu_cep.engine.matchers.automaton.ses_automaton import SesAutomaton
from gpu_cep.engine.matchers.lazy.lazy_automata import LazyAutomaton, LazyChain, LazyTree
from gpu_cep.engine.matchers.nfab.nfab import Nfab
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.batch_events import BatchEvents, BranchEvents
from gpu_cep.engine.windows.candidates import BranchWindows, count_parts
from gpu_cep.engine.windows.direct import may_share_events
from gpu_cep.engine.windows.placed_windows import Candidates, keep_chained
from gpu_cep.plan.states import branch_states
from gpu_cep.records import record
from gpu_cep_kernels.device.primitives import marked_events
from gpu_cep_kernels.rules.cut import KEEP_ALL

Result = TypeVar("Result")

# A sample by an automaton tries at most so many starts, or pivots, and ends after so many steps.
_STARTS, _PIVOTS, _STEPS = 128, 48, 1 << 11
# Events and steps that are walked in less time than a sample takes.
_FEW_EVENTS, _FEW_STEPS = 1 << 12, 1 << 13
# Combinations of events that any algorithm tries in less time than a sample takes.
_FEW_COMBINATIONS = 1 << 11
# Neighbouring starts that are tried together where the match of one rules out matches of the next.
_CLUSTER = 32
# A trace of NFA^b: the fewest events that it may take, or this fraction of the batch if that is more.
_TRACED_EVENTS, _TRACED_FRACTION = 1 << 12, 8
# The fewest offers after which it ends, or one for so many steps of the automaton if that is more.
_TRACED_OFFERS, _STEPS_PER_OFFER = 1 << 12, 32


@record(slots=False)
class BatchStatistics:
    """What is known of one branch in one batch; each number is found when it is first asked for."""

    search: Search
    batch_events: BatchEvents

    @property
    def batch(self) -> Batch:
        """Return the batch."""
        return self.batch_events.batch

    @property
    def event_count(self) -> int:
        """Return the number of events in the batch, those that its last windows reach included."""
        return self.batch.high - self.batch.low

    @property
    def variable_count(self) -> int:
        """Return the number of variables that the branch binds."""
        return len(self.search.tables.branch.positives)

    @cached_property
    def counts(self) -> Indices:
        """int64 [variable]: the number of events that satisfy each variable's properties."""
        return self.batch_events.counts_of(self.search.tables.branch.positives)

    @property
    def workers(self) -> int:
        """Return the number of threads that may share the batch."""
        return min(self.search.threads, count_parts(self.batch))

    @cached_property
    def start_count(self) -> int:
        """Return the number of the batch's own events that a match can start with."""
        own = self.batch_events.labels[:, : self.batch.own - self.batch.low]
        return int(np.count_nonzero(marked_events(own, self.search.tables.minimal)))

    @property
    def counts_only(self) -> bool:
        """Return whether matches are counted and none is written."""
        settings = self.search.plan.settings
        return settings.output == "count" and settings.after_match == "all"

    @property
    def decided_by_labels(self) -> bool:
        """Return whether matches are read off the labels, or counted by them, without a walk through the windows."""
        plan, tables = self.search.plan, self.search.tables
        if tables.reads_directly:
            return self._branch.decided_by_labels
        return self.counts_only and branch_states(plan, tables.branch, plan.query.ties == "strict") is not None

    @cached_property
    def is_soon_walked(self) -> bool:
        """Return whether the automaton finishes the batch sooner than the algorithms could be compared.

        That is so if few events are in all windows together, and each window has at most one run:
        no event is bound to one variable or to another, and none is passed over by choice.
        """
        plan, events = self.search.plan, self.batch_events
        if self.event_count > _FEW_EVENTS or plan.strategy in ("skip_till_any_match", "robust_skip_till_next_match"):
            return False
        if may_share_events(plan, events.labels, self.search.tables.branch):
            return False
        windows = self._branch_windows
        # no window holds more than all events
        few = len(windows.starts) * self.event_count <= _FEW_STEPS
        return few or int((windows.ends(windows.starts) - windows.starts).sum()) <= _FEW_STEPS

    @cached_property
    def has_few_combinations(self) -> bool:
        """Return whether each algorithm finishes the batch sooner than they could be compared, even if windows hold all events.

        That is so if each variable binds one event, and few combinations of events fit their variables.
        """
        return self.search.tables.of_singles and math.prod(self.counts.tolist()) <= _FEW_COMBINATIONS

    @cached_property
    def window_size(self) -> float:
        """Return the mean number of events in a window, by a sample of windows."""
        windows = self.batch_events.windows
        starts = spread_places(self.event_count, _STARTS)
        return float((windows.ends(starts) - starts).mean())

    @cached_property
    def automaton_sample(self) -> WorkSample:
        """Return a sample of the SES automaton's work over the candidates."""
        return self._sample_automaton(self._trial_search)

    @cached_property
    def path_sample(self) -> WorkSample:
        """Return a sample of the SES automaton's work for the matches that NFA^b reads off its buffer.

        Those are all matches, unless NFA^b's runs rule others out as the automaton's do.
        """
        search = self._trial_search
        if search.kept_matches == KEEP_ALL or search.nfab_cuts_runs:
            return self.automaton_sample
        rules = tuple(rule for rule in search.plan.pruning if rule != "overlap")
        return self._sample_automaton(search._replace(plan=replace(search.plan, pruning=rules)))

    @cached_property
    def chain_samples(self) -> tuple[WorkSample, WorkSample]:
        """Return samples of the lazy chain's work: on single variables, then on quantified ones."""
        return self._sample_lazy(LazyChain)

    @cached_property
    def tree_samples(self) -> tuple[WorkSample, WorkSample]:
        """Return samples of the lazy tree's work: on single variables, then on quantified ones."""
        return self._sample_lazy(LazyTree)

    @cached_property
    def traced_offers(self) -> Indices:
        """int64 [point, 2]: an event of the batch, and how often NFA^b offered earlier events to its runs.

        The trace covers the first events of the batch. It is the longer the
        more steps the automaton is expected to take.
        """
        windows = self._branch_windows
        end = min(self.event_count, max(_TRACED_EVENTS, self.event_count // _TRACED_FRACTION))
        offers = max(_TRACED_OFFERS, int(self.automaton_sample.all_steps) // _STEPS_PER_OFFER)
        starts = self._prune_starts(windows, windows.starts[: np.searchsorted(windows.starts, end)]).starts
        untraced: Indices = np.zeros((1, 2), np.int64)
        return self._run_trial(lambda search: Nfab(search).sample(self.batch, windows, starts, end, offers), untraced)

    @property
    def _trial_search(self) -> Search:
        """Return the search with a profile that nobody reads, so that samples do not show in the run's."""
        return self.search._replace(profile=UNREAD)

    @property
    def _branch(self) -> BranchEvents:
        return self.batch_events.branch(self.search.tables, self.search.own)

    @property
    def _branch_windows(self) -> BranchWindows:
        return self._branch.windows

    def _sample_automaton(self, search: Search) -> WorkSample:
        """Return a sample of the automaton's work.

        If a match rules out others, the starts are clusters of neighbours.
        """
        windows = self._branch_windows
        number = len(windows.starts)
        keeps_all = search.kept_matches == KEEP_ALL
        starts = windows.starts[scatter_places(number, _STARTS) if keeps_all else cluster_places(number, _STARTS, _CLUSTER)]
        candidates = self._prune_starts(windows, starts)
        sample = self._run_trial(lambda _: SesAutomaton(search).sample(self.batch, windows, candidates, _STEPS), NOTHING)
        return replace(sample, places=number * len(candidates.starts) // max(len(starts), 1))

    def _sample_lazy(self, automaton: Callable[[Search, BatchEvents], LazyAutomaton]) -> tuple[WorkSample, WorkSample]:
        """Return samples of a lazy automaton's work: on single variables, then on quantified ones."""
        return self._run_trial(lambda search: automaton(search, self.batch_events).sample(self.batch, _PIVOTS, _STEPS), (NOTHING, NOTHING))

    def _prune_starts(self, windows: BranchWindows, starts: Indices) -> Candidates:
        """Return those of the starts that the plan's pruning leaves."""
        if windows.judged or "chain" not in self.search.plan.pruning:
            return Candidates(starts, None)
        return keep_chained(windows, starts, self.search.tables.pattern, exact=False)

    def _run_trial(self, trial: Callable[[Search], Result], default: Result) -> Result:
        """Return the trial's result, or the default if a condition overflows.

        The run itself will come to the same condition and say where it is.
        """
        try:
            return trial(self._trial_search)
        except ConditionOverflow:
            return default
