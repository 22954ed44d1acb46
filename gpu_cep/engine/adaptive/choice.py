"""The algorithm of each batch: the one that is asked for, or the one that is expected to cost least."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from gpu_cep.engine.accounting.budget import Meter
from gpu_cep.engine.adaptive.algorithms import CONTENDERS, going_by_starts
from gpu_cep.engine.adaptive.statistics import Survey
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.own_events import are_own
from gpu_cep.engine.matchers.search import Matcher, Search
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.state_counts import sum_of
from gpu_cep.plan.costs import MARGIN, TRIAL, Answer, Estimate

# A choice is made anew where a batch made so many times the steps that were expected of it, or so many times fewer, and not a few.
_DRIFT, _FEW_STEPS = 4, 1 << 13

# A choice: the estimate of the algorithm that is taken, and those of the others.
Choice = tuple[Estimate, tuple[Estimate, ...]]


@dataclass(frozen=True, slots=True)
class _Made:
    """A choice among algorithms for a branch, how many threads share a batch, and its events, starts, and events of each variable.

    The choice may still be in the making; where that fails, it does for all that wait for it.
    """

    names: tuple[str, ...]
    branch: int
    workers: int
    sizes: Indices
    choice: Future[Choice]

    def suits(self, names: tuple[str, ...], branch: int, workers: int, sizes: Indices) -> bool:
        """Whether the choice is the same: not twice as many events, and none of the numbers has twice the share in them, or half."""
        if (self.names, self.branch, self.workers) != (names, branch, workers) or sizes[0] >= 2 * self.sizes[0]:
            return False
        scaled = sizes * (self.sizes[0] / sizes[0])
        return bool((2 * scaled > self.sizes).all() and (scaled < 2 * self.sizes).all())


@dataclass
class Choices:
    """Chooses among algorithms, for each batch and branch; where not all events may start a match among those that go from start to start.

    Batches share a choice where they are alike and none is much larger, until
    one of them shows that it was made for other events.
    """

    names: tuple[str, ...]
    _made: list[_Made] = field(default_factory=list, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def matchers(self, searches: tuple[Search, ...], batch: Batch) -> list[Matcher]:
        """The matchers of all branches for a batch."""
        first = searches[0]
        events = BatchEvents(first.plan, first.ordered, batch, first.profile)
        names = self.names if are_own(first.ordered, batch, first.own) else going_by_starts(self.names)
        return [self._matcher(names, number, search, events) for number, search in enumerate(searches)]

    def _matcher(self, names: tuple[str, ...], branch: int, search: Search, events: BatchEvents) -> Matcher:
        if len(names) == 1:
            choice: Choice = Estimate(names[0], 0.0, exact=False), ()
            return _recorded(choice, branch, search, events, _ignore)
        survey = Survey(search, events)
        if survey.decided_by_labels:
            # nothing is weighed, so nothing is counted
            return _recorded((Estimate("ses_automaton", 0.0, exact=False), ()), branch, search, events, _ignore)
        known = self._chosen(names, branch, survey, np.array([survey.events, survey.starts, *survey.counts]))
        choice = _scaled(known.choice.result(), survey.events / float(known.sizes[0]))

        def judge(steps: int) -> None:
            if _has_drifted(choice[0], steps):
                self._forget(known)

        return _recorded(choice, branch, search, events, judge)

    def _chosen(self, names: tuple[str, ...], branch: int, survey: Survey, sizes: Indices) -> _Made:
        """The choice for batches of such sizes, which the first thread that asks makes."""
        with self._lock:
            known = next((made for made in self._made if made.suits(names, branch, survey.workers, sizes)), None)
            if known is not None:
                return known
            made = _Made(names, branch, survey.workers, sizes, Future())
            self._made.append(made)
        try:
            made.choice.set_result(cheapest(survey, names))
        except BaseException as fault:
            made.choice.set_exception(fault)
            raise
        return made

    def _forget(self, known: _Made) -> None:
        with self._lock:
            self._made = [made for made in self._made if made is not known]


def cheapest(survey: Survey, names: tuple[str, ...]) -> Choice:
    """The cheapest of some algorithms for a batch.

    One that at its best would save no more than a trial costs is not tried.
    """
    if not survey.counts.all():
        first, *others = (Estimate(name, CONTENDERS[name].least_time(survey), exact=False) for name in names)
        return first, tuple(others)
    least = sorted((CONTENDERS[name].least_time(survey), name) for name in names)
    found: list[Estimate] = []
    for cost, name in least:
        ruled_out = any(each.exact and each.cost <= (1 + MARGIN) * cost + TRIAL for each in found)
        found.append(Estimate(name, cost, exact=False) if ruled_out else CONTENDERS[name].estimated_time(survey))
    chosen = min((each for each in found if each.exact), key=lambda each: each.cost)
    return chosen, tuple(each for each in found if each is not chosen)


def _scaled(choice: Choice, factor: float) -> Choice:
    """The same for so many times the events."""
    return choice[0].scaled(factor), tuple(each.scaled(factor) for each in choice[1])


def _has_drifted(expected: Estimate, steps: int) -> bool:
    """Whether a batch made many more or many fewer steps than were expected of it."""
    if expected.at_most and steps < expected.steps:
        return False
    more, fewer = max(expected.steps, steps), min(expected.steps, steps)
    return expected.exact and more > _FEW_STEPS and more > _DRIFT * fewer


def _ignore(steps: int) -> None:
    """What is done about the steps of the only algorithm there is."""


def _recorded(choice: Choice, branch: int, search: Search, events: BatchEvents, judge: Callable[[int], None]) -> Matcher:
    meter = Meter(search.budget)
    metered = replace(search, budget=meter)
    matcher = CONTENDERS[choice[0].algorithm].matcher(metered, events)
    return _Recorded(matcher, meter, search, branch, choice, judge)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A matcher of one batch; what it did goes into the profile, beside what was expected of it."""

    matcher: Matcher
    meter: Meter
    search: Search
    branch: int
    choice: Choice
    judge: Callable[[int], None]

    def find(self, batch: Batch) -> Matches:
        begin = time.perf_counter()
        matches = self.matcher.find(batch)
        self._record(batch, len(matches), len(matches.events), time.perf_counter() - begin)
        return matches

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        begin = time.perf_counter()
        starts, totals = self.matcher.count(batch)
        self._record(batch, sum_of(totals), 0, time.perf_counter() - begin)
        return starts, totals

    def _record(self, batch: Batch, matches: int, bound: int, seconds: float) -> None:
        expected, others = self.choice
        steps = self.meter.steps
        self.judge(steps)
        self.search.profile.answered(Answer(self.branch, batch.own - batch.low, expected, others, steps, matches, bound, seconds))
