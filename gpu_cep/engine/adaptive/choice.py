"""Choose the algorithm of each batch: the one asked for, or the one with the least expected cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import NamedTuple

import numpy as np

from gpu_cep.engine.accounting.match_budget import Meter
from gpu_cep.engine.accounting.profile import UNREAD
from gpu_cep.engine.adaptive.algorithms import ALGORITHMS, select_start_filtering
from gpu_cep.engine.adaptive.statistics import BatchStatistics
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.own_events import are_all_own
from gpu_cep.engine.events.runs import ContiguousMatches
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.matchers.contiguous.contiguous import may_read_contiguous, read_contiguous
from gpu_cep.engine.matchers.search import Matcher, Search
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.state_counts import sum_counts
from gpu_cep.plan.costs import MARGIN, TRIAL, BatchAnswer, Estimate
from gpu_cep.records import record

# Choices that are remembered; the oldest are forgotten.
_REMEMBERED = 32
# A choice is dropped if steps are more or fewer than expected by this factor, unless both are few.
_DRIFT, _FEW_STEPS = 4, 1 << 13


class RankedAlgorithms(NamedTuple):
    """The estimate of the algorithm that is taken, and the estimates of the others."""

    chosen: Estimate
    others: tuple[Estimate, ...]

    def scaled(self, factor: float) -> RankedAlgorithms:
        """Return the estimates for `factor` times as many events."""
        if factor == 1:
            return self
        return RankedAlgorithms(self.chosen.scaled(factor), tuple(each.scaled(factor) for each in self.others))


class _Workload(NamedTuple):
    """What a ranking is made for: the algorithms, the branch, and the threads that share a batch.

    `sizes` are the numbers of events, of starts, and of each variable's events.
    """

    names: tuple[str, ...]
    branch: int
    workers: int
    sizes: Indices


@record()
class _CachedRanking:
    """A ranking for a workload; it may still be in the making.

    If making it fails, it fails for all threads that wait for it.
    """

    made_for: _Workload
    ranking: Future[RankedAlgorithms]

    def serves(self, workload: _Workload) -> bool:
        """Return whether the ranking is reusable.

        It is if the batch is less than twice as large and every count's share
        is within a factor of two.
        """
        made_for = self.made_for
        if made_for[:3] != workload[:3] or workload.sizes[0] >= 2 * made_for.sizes[0]:
            return False
        scaled = workload.sizes * (made_for.sizes[0] / workload.sizes[0])
        return bool((2 * scaled > made_for.sizes).all() and (scaled < 2 * made_for.sizes).all())


@dataclass
class AlgorithmChooser:
    """Chooses an algorithm for each branch in each batch.

    Similar batches share a choice until one of them takes far more or fewer
    steps than expected. Where only some events may start a match, algorithms
    that can leave out starts are preferred.
    """

    names: tuple[str, ...]
    _cache: list[_CachedRanking] = field(default_factory=list, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def matchers(self, searches: tuple[Search, ...], batch: Batch) -> list[Matcher]:
        """Return a matcher for each branch."""
        first = searches[0]
        events = BatchEvents(first.plan, first.ordered, batch, first.profile)
        names = self.names if _takes_every_start(first, batch) else select_start_filtering(self.names)
        return [self._matcher(names, branch, search, events) for branch, search in enumerate(searches)]

    def _matcher(self, names: tuple[str, ...], branch: int, search: Search, events: BatchEvents) -> Matcher:
        """Return the matcher for a branch.

        Matches that labels decide are read off, and one contender needs no comparison. Of several the cheapest is taken
        by a ranking that serves the batch.
        """
        if may_read_contiguous(search.plan, search.tables.branch, search.ordered):
            meter = Meter(search.budget)
            contiguous = read_contiguous(search._replace(budget=meter), events.batch)
            if contiguous is not None:
                return _RecordingMatcher(contiguous, meter, search, branch, _without_estimate("ses_automaton"), _ignore)
        if len(names) == 1:
            return _recording_matcher(_without_estimate(names[0]), branch, search, events, _ignore)
        statistics = BatchStatistics(search, events)
        if statistics.decided_by_labels or ("ses_automaton" in names and statistics.is_soon_walked):
            # nothing is counted, because nothing is compared
            return _recording_matcher(_without_estimate("ses_automaton"), branch, search, events, _ignore)
        sizes = np.array([statistics.event_count, statistics.start_count, *statistics.counts])
        cached = self._find_or_rank(_Workload(names, branch, statistics.workers, sizes), statistics)
        ranking = cached.ranking.result().scaled(statistics.event_count / float(cached.made_for.sizes[0]))

        def check(steps: int) -> None:
            if _has_drifted(ranking.chosen, steps):
                self._forget(cached)

        return _recording_matcher(ranking, branch, search, events, check)

    def _find_or_rank(self, workload: _Workload, statistics: BatchStatistics) -> _CachedRanking:
        """Return a ranking that serves the workload; the first thread that asks makes it."""
        with self._lock:
            found = next((cached for cached in self._cache if cached.serves(workload)), None)
            if found is not None:
                return found
            cached = _CachedRanking(workload, Future())
            self._cache = [*self._cache[1 - _REMEMBERED :], cached]
        try:
            cached.ranking.set_result(cheapest(statistics, workload.names))
        except BaseException as fault:
            cached.ranking.set_exception(fault)
            raise
        return cached

    def _forget(self, dropped: _CachedRanking) -> None:
        with self._lock:
            self._cache = [cached for cached in self._cache if cached is not dropped]


def read_runs(search: Search, batch: Batch) -> ContiguousMatches | None:
    """Return the matches of a batch whose labels decide them, for a contiguous sequence, and record how they were found.

    None if labels do not decide them. They are not accounted for.
    """
    begin = time.perf_counter()
    contiguous = read_contiguous(search, batch)
    if contiguous is None:
        return None
    runs = contiguous.runs(batch)
    answer = BatchAnswer(0, batch.own - batch.low, *_without_estimate("ses_automaton"), 0, len(runs), 0, time.perf_counter() - begin)
    search.profile.add_answer(answer)
    return runs


def cheapest(statistics: BatchStatistics, names: tuple[str, ...]) -> RankedAlgorithms:
    """Rank the named algorithms for a batch, the cheapest one first.

    An algorithm is not sampled if its lower bound would save no more than the
    sample costs. None is where few events fit each variable: the lower bounds decide.
    """
    least = [(ALGORITHMS[name].least_time(statistics), name) for name in names]
    if statistics.has_few_combinations:
        least.sort()
    if statistics.has_few_combinations or not statistics.counts.all():
        first, *others = (Estimate(name, bound, exact=False) for bound, name in least)
        return RankedAlgorithms(first, tuple(others))
    found: list[Estimate] = []
    for bound, name in sorted(least):
        ruled_out = any(each.exact and each.cost <= (1 + MARGIN) * bound + TRIAL for each in found)
        found.append(Estimate(name, bound, exact=False) if ruled_out else ALGORITHMS[name].estimated_time(statistics))
    chosen = min((each for each in found if each.exact), key=lambda each: each.cost)
    return RankedAlgorithms(chosen, tuple(each for each in found if each is not chosen))


def _takes_every_start(search: Search, batch: Batch) -> bool:
    """Return whether all matches that begin with the batch's own events are asked for."""
    starts = search.ordered.starts
    return (starts is None or starts.are_all) and are_all_own(search.ordered, batch, search.own)


@cache
def _without_estimate(name: str) -> RankedAlgorithms:
    """Return the ranking of an algorithm that is taken without comparison."""
    return RankedAlgorithms(Estimate(name, 0.0, exact=False), ())


def _has_drifted(expected: Estimate, steps: int) -> bool:
    """Return whether a batch took many more or many fewer steps than expected."""
    if expected.at_most and steps < expected.steps:
        return False
    more, fewer = max(expected.steps, steps), min(expected.steps, steps)
    return expected.exact and more > _FEW_STEPS and more > _DRIFT * fewer


def _ignore(steps: int) -> None:
    """Do nothing: an algorithm that is taken without comparison is never replaced."""


def _recording_matcher(
    ranking: RankedAlgorithms, branch: int, search: Search, events: BatchEvents, check: Callable[[int], None]
) -> Matcher:
    """Return the chosen algorithm's matcher, with an account of its own and a record of what it did, if somebody reads that."""
    if check is _ignore and search.profile is UNREAD:
        return ALGORITHMS[ranking.chosen.algorithm].matcher(search, events)
    meter = Meter(search.budget)
    matcher = ALGORITHMS[ranking.chosen.algorithm].matcher(search._replace(budget=meter), events)
    return _RecordingMatcher(matcher, meter, search, branch, ranking, check)


@record()
class _RecordingMatcher:
    """A matcher of one batch that also writes actual and expected numbers into the profile.

    `check` is called with the number of steps that it took.
    """

    matcher: Matcher
    meter: Meter
    search: Search
    branch: int
    ranking: RankedAlgorithms
    check: Callable[[int], None]

    def find(self, batch: Batch) -> Matches:
        """Return the matcher's matches."""
        begin = time.perf_counter()
        matches = self.matcher.find(batch)
        self._record(batch, len(matches), len(matches.events), time.perf_counter() - begin)
        return matches

    def count(self, batch: Batch) -> StartCounts:
        """Return the matcher's counts."""
        begin = time.perf_counter()
        counted = self.matcher.count(batch)
        self._record(batch, sum_counts(counted.totals), 0, time.perf_counter() - begin)
        return counted

    def _record(self, batch: Batch, matches: int, bound: int, seconds: float) -> None:
        steps = self.meter.steps
        self.check(steps)
        answer = BatchAnswer(self.branch, batch.own - batch.low, *self.ranking, steps, matches, bound, seconds)
        self.search.profile.add_answer(answer)
