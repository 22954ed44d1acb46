"""What a batch tells of how much work its matches are: counts, and small parts of the work itself, done on trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.sampling import NOTHING, Sample, clustered, evenly_spread, scattered
from gpu_cep.engine.matchers.automaton.ses_automaton import SesAutomaton
from gpu_cep.engine.matchers.lazy.lazy_automata import LazyChain, LazyTree
from gpu_cep.engine.matchers.nfab.nfab import Nfab
from gpu_cep.engine.matchers.search import ConditionOverflow, Search
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.candidates import Candidates, Windows, branch_windows, chained, parts_of
from gpu_cep.engine.windows.direct import is_deterministic, reads_directly
from gpu_cep.plan.states import branch_states
from gpu_cep_kernels.device.primitives import marked_events
from gpu_cep_kernels.rules.cut import KEEP_ALL

Shown = TypeVar("Shown")

# So many starts, and events of the rarest variable, are tried at most, with so many steps; so many events, and offers to runs.
_STARTS, _PIVOTS, _STEPS = 128, 48, 1 << 11
# So many starts that follow one another are tried together where what one finds spares others work.
_CLUSTER = 32
_EVENTS, _OFFERS = 1 << 12, 1 << 12
# Of long searches, one in so many events is offered to runs, and one offer is made for so many steps.
_PART, _WORTH = 8, 32


@dataclass(frozen=True)
class Survey:
    """What is known of a branch and the events `of_batch`; everything is found when it is first asked for."""

    search: Search
    of_batch: BatchEvents

    @property
    def batch(self) -> Batch:
        """The batch that these events are."""
        return self.of_batch.batch

    @property
    def events(self) -> int:
        """How many events the batch holds, those that its windows reach included."""
        return self.batch.high - self.batch.low

    @property
    def variables(self) -> int:
        """How many variables the branch binds."""
        return len(self.search.tables.branch.positives)

    @cached_property
    def counts(self) -> Indices:
        """How many events satisfy the properties of each variable."""
        return self.of_batch.counts_of(self.search.tables.branch.positives)

    @property
    def workers(self) -> int:
        """How many threads may share the work on the batch."""
        return min(self.search.threads, parts_of(self.batch))

    @cached_property
    def starts(self) -> int:
        """How many events a match can start with."""
        own = self.of_batch.labels[:, : self.batch.own - self.batch.low]
        return int(np.count_nonzero(marked_events(own, self.search.tables.minimal)))

    @property
    def counts_only(self) -> bool:
        """Whether no match is to be written."""
        settings = self.search.plan.settings
        return settings.output == "count" and settings.after_match == "all"

    @property
    def decided_by_labels(self) -> bool:
        """Whether matches are read, or counted, off the labels: nothing is walked then."""
        plan, tables = self.search.plan, self.search.tables
        if reads_directly(plan, tables):
            return is_deterministic(plan, self._branch_windows, tables)
        return self.counts_only and branch_states(plan, tables.branch, plan.query.ties == "strict") is not None

    @cached_property
    def reach(self) -> float:
        """How many events a window holds on average."""
        windows = self.of_batch.windows
        places = evenly_spread(self.events, _STARTS)
        return float((windows.ends(places) - places).mean())

    @cached_property
    def walk(self) -> Sample:
        """What some of the batch's candidates take the automaton."""
        return self._walked(self._on_trial)

    @cached_property
    def paths(self) -> Sample:
        """The same where all matches are read off NFA^b's buffer, unless its runs rule others out as the automaton's do."""
        search = self._on_trial
        if search.kept == KEEP_ALL or search.passes_cut:
            return self.walk
        steps = tuple(step for step in search.plan.steps if step != "overlap")
        return self._walked(replace(search, plan=replace(search.plan, steps=steps)))

    @cached_property
    def chain(self) -> tuple[Sample, Sample]:
        """What some of the rarest variable's events take the lazy chain: for single variables, and for quantified ones behind these."""
        return self._tried(lambda search: LazyChain(search, self.of_batch).sample(self.batch, _PIVOTS, _STEPS), (NOTHING, NOTHING))

    @cached_property
    def tree(self) -> tuple[Sample, Sample]:
        """The same of some of the events that can start a match, and the lazy tree."""
        return self._tried(lambda search: LazyTree(search, self.of_batch).sample(self.batch, _PIVOTS, _STEPS), (NOTHING, NOTHING))

    @cached_property
    def offers(self) -> Indices:
        """How often the first events of the batch are offered to the runs of NFA^b: [event, offers before it].

        The more steps the automaton would take, the more may be learned by.
        """
        windows = self._branch_windows
        end = min(self.events, max(_EVENTS, self.events // _PART))
        offers = max(_OFFERS, int(self.walk.all_steps) // _WORTH)
        starts = self._candidates(windows, windows.starts[: np.searchsorted(windows.starts, end)]).starts
        nothing: Indices = np.zeros((1, 2), np.int64)
        return self._tried(lambda search: Nfab(search).sample(self.batch, windows, starts, end, offers), nothing)

    @property
    def _on_trial(self) -> Search:
        """The search with a profile of its own."""
        return replace(self.search, profile=Profile())

    @cached_property
    def _branch_windows(self) -> Windows:
        search = self._on_trial
        return branch_windows(self.of_batch.windows, search.ordered, self.batch, search.tables, search.own, search.profile)

    def _walked(self, search: Search) -> Sample:
        """What the automaton takes to search from some of the starts; from some that follow one another where one rules others out."""
        windows = self._branch_windows
        number = len(windows.starts)
        starts = windows.starts[scattered(number, _STARTS) if search.kept == KEEP_ALL else clustered(number, _STARTS, _CLUSTER)]
        kept = self._candidates(windows, starts)
        walked = self._tried(lambda _: SesAutomaton(search).sample(self.batch, windows, kept, _STEPS), NOTHING)
        return replace(walked, places=number * len(kept.starts) // max(len(starts), 1))

    def _candidates(self, windows: Windows, starts: Indices) -> Candidates:
        """Those of the starts that the plan's pruning leaves."""
        if windows.judged or "chain" not in self.search.plan.steps:
            return Candidates(starts, None)
        return chained(windows, starts, self.search.tables, exact=False)

    def _tried(self, trial: Callable[[Search], Shown], nothing: Shown) -> Shown:
        """What a trial shows; `nothing`, where a condition overflows: whatever runs then will come to it, and say where."""
        try:
            return trial(self._on_trial)
        except ConditionOverflow:
            return nothing
