"""The algorithms as the planner sees them: what each costs at least, what it is expected to cost, and what runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gpu_cep.engine.adaptive.statistics import Survey
from gpu_cep.engine.events.sampling import Sample
from gpu_cep.engine.matchers.automaton.two_phase import TwoPhase
from gpu_cep.engine.matchers.joins.join_tree import JoinTree
from gpu_cep.engine.matchers.lazy.lazy_automata import LazyChain, LazyTree
from gpu_cep.engine.matchers.nfab.buffer_counts import decided_by_paths
from gpu_cep.engine.matchers.nfab.nfab import Nfab
from gpu_cep.engine.matchers.search import Matcher, Search
from gpu_cep.engine.matchers.window_matcher import windowed
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.plan.costs import (
    BOUND,
    CHAIN_BATCH,
    COUNTED,
    FILTERED,
    ITERATED,
    JOIN_BATCH,
    JOINED,
    JUDGED,
    OFFER,
    PASS_BATCH,
    PASSED,
    PATH,
    PIVOT,
    PROGRAM,
    READ,
    SKIP,
    STEP,
    TREE_PIVOT,
    WALK_BATCH,
    WALKED,
    Estimate,
    buffers_cost,
    grown_offers,
    windows_cost,
)
from gpu_cep_kernels.rules.tables import BY_PROGRAM


@dataclass(frozen=True, slots=True)
class Contender:
    """An algorithm: `least` is what it costs at least, by counts alone, in nanoseconds; `estimate` tries parts of the work.

    If it `divides`, threads share the work on a batch of many events; if it goes
    `by_starts`, it can leave out those of matches that are not asked for.
    """

    least: Callable[[Survey], float]
    estimate: Callable[[Survey], Estimate]
    matcher: Callable[[Search, BatchEvents], Matcher]
    divides: bool = True
    by_starts: bool = True

    def least_time(self, survey: Survey) -> float:
        """How long it takes at least, in nanoseconds."""
        return self.least(survey) / self._workers(survey)

    def estimated_time(self, survey: Survey) -> Estimate:
        """The estimate, of time instead of work."""
        found = self.estimate(survey)
        return replace(found, cost=found.cost / self._workers(survey))

    def _workers(self, survey: Survey) -> int:
        return survey.workers if self.divides else 1


def _windows(survey: Survey) -> float:
    return windows_cost(survey.events, survey.variables, survey.starts)


def _buffers(survey: Survey) -> float:
    return buffers_cost(survey.events, survey.variables)


def _least_of_walks(survey: Survey) -> float:
    return WALK_BATCH + _windows(survey)


def _least_of_passes(survey: Survey) -> float:
    return PASS_BATCH + _windows(survey) + PASSED * survey.events


def _least_of_chains(survey: Survey) -> float:
    return CHAIN_BATCH + _buffers(survey)


def _least_of_trees(survey: Survey) -> float:
    return CHAIN_BATCH + _buffers(survey) + TREE_PIVOT * survey.starts


def _least_of_joins(survey: Survey) -> float:
    return JOIN_BATCH + _buffers(survey)


def _written(survey: Survey, bound: float, each: float) -> float:
    """What it costs to write matches that bind so many events."""
    return 0.0 if survey.counts_only else bound * each


def _walked(survey: Survey) -> Estimate:
    """Every candidate by the automaton."""
    walk = survey.walk
    walking = STEP * (walk.all_steps - walk.all_passed) + SKIP * walk.all_passed + _judging(survey.search) * walk.all_steps
    cost = _least_of_walks(survey) + walking + WALKED * walk.all_matches + _written(survey, walk.all_bound, BOUND)
    return Estimate("ses_automaton", cost, walk.all_steps, walk.all_matches)


def _passed(survey: Survey) -> Estimate:
    """All runs at once; matches are those of a sample by the automaton, and are read off the buffer."""
    taken, walk = survey.offers, survey.paths
    halves = np.diff(np.interp([0, taken[-1, 0] / 2, taken[-1, 0]], *taken.T))
    offers = grown_offers(halves.tolist(), int(taken[-1, 0]), survey.reach, survey.events)
    reading = PATH * walk.all_matches + READ * walk.all_bound
    # threads share what is read off the buffer path by path, and nothing else
    reading *= COUNTED if survey.counts_only and decided_by_paths(survey.search) else 1 / survey.workers
    cost = _least_of_passes(survey) + OFFER * offers + reading
    return Estimate("nfab", cost, offers + walk.all_bound, walk.all_matches)


def _chained(survey: Survey) -> Estimate:
    """From the rarest variable's events on, quantified variables last."""
    names, quantified = survey.search.names, survey.search.tables.pattern.maximum != 1
    order = ", ".join(names[v] for v in np.lexsort([survey.counts, quantified]))
    return _lazily("lazy_chain", survey, _least_of_chains(survey), PIVOT, survey.chain, order)


def _ordered_anew(survey: Survey) -> Estimate:
    """From each start on."""
    return _lazily("lazy_tree", survey, _least_of_trees(survey), 0.0, survey.tree, "")


def _lazily(name: str, survey: Survey, least: float, pivot: float, samples: tuple[Sample, Sample], order: str) -> Estimate:
    """By a lazy automaton that costs so much at least, and so much more for each pivot, by samples of single and quantified variables."""
    single, quantified = samples
    final = quantified if quantified.places else single
    searched = pivot * single.places + _filtering(survey.search) * single.all_steps + ITERATED * quantified.all_steps
    cost = least + searched + _written(survey, final.all_bound, BOUND)
    return Estimate(name, cost, single.all_steps + quantified.all_steps, final.all_matches, order)


def _filtering(search: Search) -> float:
    """What a lazy automaton takes to filter an event."""
    # what compares no two single variables' columns is judged as a program is
    by_program = bool((search.tables.conditions.left_variable < 0).any())
    return FILTERED + PROGRAM * by_program + JUDGED * bool(search.tables.branch.negations)


def _judging(search: Search) -> float:
    """What programs add to each step of the automaton; unless all matches are sought, labels rule out most of what it passes over."""
    judges = search.plan.strategy == "skip_till_any_match" and (search.tables.conditions.means == BY_PROGRAM).any()
    return PROGRAM * bool(judges)


def _joined(survey: Survey) -> Estimate:
    """By the cheapest tree of joins."""
    found = JoinTree(survey.search, survey.of_batch).estimate(survey.batch)
    rows = _written(survey, found.matches * survey.variables, JOINED)
    return replace(found, cost=found.cost + _least_of_joins(survey) + rows)


CONTENDERS: dict[str, Contender] = {
    "ses_automaton": Contender(_least_of_walks, _walked, windowed(TwoPhase)),
    "backtracking": Contender(_least_of_walks, _walked, windowed(TwoPhase)),
    "nfab": Contender(_least_of_passes, _passed, windowed(Nfab), divides=False),
    "lazy_chain": Contender(_least_of_chains, _chained, LazyChain, by_starts=False),
    "lazy_tree": Contender(_least_of_trees, _ordered_anew, LazyTree, by_starts=False),
    "join_tree": Contender(_least_of_joins, _joined, JoinTree, by_starts=False),
}


def going_by_starts(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some algorithms that can leave out starts, or the one that answers any query."""
    return tuple(name for name in names if CONTENDERS[name].by_starts) or ("ses_automaton",)
