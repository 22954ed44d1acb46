"""List the algorithms with a lower bound of their cost, an estimate by samples, and their matchers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gpu_cep.engine.adaptive.statistics import BatchStatistics
from gpu_cep.engine.events.sampling import WorkSample
from gpu_cep.engine.matchers.automaton.two_phase import TwoPhase
from gpu_cep.engine.matchers.joins.join_tree import JoinTree
from gpu_cep.engine.matchers.lazy.lazy_automata import LazyChain, LazyTree
from gpu_cep.engine.matchers.nfab.buffer_counts import every_path_matches
from gpu_cep.engine.matchers.nfab.nfab import Nfab
from gpu_cep.engine.matchers.search import Matcher, Search
from gpu_cep.engine.matchers.window_matcher import over_windows
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.plan.costs import (
    BOUND,
    CHAIN_BATCH,
    CHAINED,
    COUNTED,
    FILTERED,
    ITERATED,
    JOIN_BATCH,
    JOINED,
    JUDGED,
    OCCURRENCE,
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
    WINDOW,
    Estimate,
    extrapolate_offers,
)
from gpu_cep_kernels.rules.tables import BY_PROGRAM


@dataclass(frozen=True, slots=True)
class CostedAlgorithm:
    """An algorithm with its costs in nanoseconds of work.

    `least_cost` is a lower bound by counts alone. `estimate` does samples of
    the work. `matcher` makes what runs it. If it is `parallel`, threads share
    the work on a batch of many events. If it `filters_starts`, it can leave
    out the matches of starts that are not asked for.
    """

    least_cost: Callable[[BatchStatistics], float]
    estimate: Callable[[BatchStatistics], Estimate]
    matcher: Callable[[Search, BatchEvents], Matcher]
    parallel: bool = True
    filters_starts: bool = True

    def least_time(self, statistics: BatchStatistics) -> float:
        """Return a lower bound of the time that the batch takes, in nanoseconds."""
        return self.least_cost(statistics) / self._workers(statistics)

    def estimated_time(self, statistics: BatchStatistics) -> Estimate:
        """Return the estimate with the time that the batch takes, in nanoseconds, as its cost."""
        found = self.estimate(statistics)
        return replace(found, cost=found.cost / self._workers(statistics))

    def _workers(self, statistics: BatchStatistics) -> int:
        """Return the number of threads that share the batch."""
        return statistics.workers if self.parallel else 1


def _windows_cost(statistics: BatchStatistics) -> float:
    """Return the cost of finding the windows and of ruling out those that labels forbid."""
    finding = WINDOW + OCCURRENCE * statistics.variable_count
    return statistics.event_count * finding + statistics.start_count * CHAINED * statistics.variable_count


def _buffers_cost(statistics: BatchStatistics) -> float:
    """Return the cost of listing each variable's events."""
    return statistics.event_count * OCCURRENCE * statistics.variable_count


def _least_automaton_cost(statistics: BatchStatistics) -> float:
    return WALK_BATCH + _windows_cost(statistics)


def _least_nfab_cost(statistics: BatchStatistics) -> float:
    return PASS_BATCH + _windows_cost(statistics) + PASSED * statistics.event_count


def _least_chain_cost(statistics: BatchStatistics) -> float:
    return CHAIN_BATCH + _buffers_cost(statistics)


def _least_tree_cost(statistics: BatchStatistics) -> float:
    return CHAIN_BATCH + _buffers_cost(statistics) + TREE_PIVOT * statistics.start_count


def _least_join_cost(statistics: BatchStatistics) -> float:
    return JOIN_BATCH + _buffers_cost(statistics)


def _writing_cost(statistics: BatchStatistics, bound: float, each: float) -> float:
    """Return the cost of writing matches that bind `bound` events, `each` nanoseconds an event.

    It is nothing if matches are only counted.
    """
    return 0.0 if statistics.counts_only else bound * each


def _estimate_automaton(statistics: BatchStatistics) -> Estimate:
    """Estimate the SES automaton, which walks every candidate window."""
    sample = statistics.automaton_sample
    walking = STEP * (sample.all_steps - sample.all_passed) + SKIP * sample.all_passed
    walking += _program_cost(statistics.search) * sample.all_steps
    writing = _writing_cost(statistics, sample.all_bound, BOUND)
    cost = _least_automaton_cost(statistics) + walking + WALKED * sample.all_matches + writing
    return Estimate("ses_automaton", cost, sample.all_steps, sample.all_matches)


def _estimate_nfab(statistics: BatchStatistics) -> Estimate:
    """Estimate NFA^b, which takes each event once and reads matches off its buffer.

    The offers of events to runs are extrapolated from the first events. The
    matches are those of a sample by the automaton.
    """
    traced, sample = statistics.traced_offers, statistics.path_sample
    halves = np.diff(np.interp([0, traced[-1, 0] / 2, traced[-1, 0]], *traced.T))
    offers = extrapolate_offers(halves.tolist(), int(traced[-1, 0]), statistics.window_size, statistics.event_count)
    reading = PATH * sample.all_matches + READ * sample.all_bound
    # threads share what is read off the buffer path by path, and nothing else
    reading *= COUNTED if statistics.counts_only and every_path_matches(statistics.search) else 1 / statistics.workers
    cost = _least_nfab_cost(statistics) + OFFER * offers + reading
    return Estimate("nfab", cost, offers + sample.all_bound, sample.all_matches)


def _estimate_chain(statistics: BatchStatistics) -> Estimate:
    """Estimate the lazy chain, which begins at the rarest variable and binds quantified ones last."""
    names, quantified = statistics.search.variable_names, statistics.search.tables.pattern.maximum != 1
    order = ", ".join(names[v] for v in np.lexsort([statistics.counts, quantified]))
    return _estimate_lazy("lazy_chain", statistics, _least_chain_cost(statistics), PIVOT, statistics.chain_samples, order)


def _estimate_tree(statistics: BatchStatistics) -> Estimate:
    """Estimate the lazy tree, which begins at each start and orders the other variables there."""
    return _estimate_lazy("lazy_tree", statistics, _least_tree_cost(statistics), 0.0, statistics.tree_samples, "")


def _estimate_lazy(
    name: str, statistics: BatchStatistics, least: float, each_pivot: float, samples: tuple[WorkSample, WorkSample], order: str
) -> Estimate:
    """Estimate a lazy automaton from its `least` cost, the cost of `each_pivot`, and samples.

    The samples are of single variables and of quantified variables.
    """
    single, quantified = samples
    last = quantified if quantified.places else single
    searching = each_pivot * single.places + _filter_cost(statistics.search) * single.all_steps + ITERATED * quantified.all_steps
    cost = least + searching + _writing_cost(statistics, last.all_bound, BOUND)
    return Estimate(name, cost, single.all_steps + quantified.all_steps, last.all_matches, order)


def _filter_cost(search: Search) -> float:
    """Return the nanoseconds that a lazy automaton takes to test the conditions on one event."""
    # conditions that do not compare columns of two single variables are judged like programs
    by_program = bool((search.tables.conditions.left_variable < 0).any())
    return FILTERED + PROGRAM * by_program + JUDGED * bool(search.tables.branch.negations)


def _program_cost(search: Search) -> float:
    """Return the nanoseconds that conditions which run as programs add to each step of the automaton.

    It is 0 under strategies where labels rule out most of what the automaton passes over.
    """
    judges = search.plan.strategy == "skip_till_any_match" and (search.tables.conditions.means == BY_PROGRAM).any()
    return PROGRAM * bool(judges)


def _estimate_joins(statistics: BatchStatistics) -> Estimate:
    """Estimate the cheapest tree of joins."""
    found = JoinTree(statistics.search, statistics.batch_events).estimate(statistics.batch)
    writing = _writing_cost(statistics, found.matches * statistics.variable_count, JOINED)
    return replace(found, cost=found.cost + _least_join_cost(statistics) + writing)


ALGORITHMS: dict[str, CostedAlgorithm] = {
    "ses_automaton": CostedAlgorithm(_least_automaton_cost, _estimate_automaton, over_windows(TwoPhase)),
    "backtracking": CostedAlgorithm(_least_automaton_cost, _estimate_automaton, over_windows(TwoPhase)),
    "nfab": CostedAlgorithm(_least_nfab_cost, _estimate_nfab, over_windows(Nfab), parallel=False),
    "lazy_chain": CostedAlgorithm(_least_chain_cost, _estimate_chain, LazyChain, filters_starts=False),
    "lazy_tree": CostedAlgorithm(_least_tree_cost, _estimate_tree, LazyTree, filters_starts=False),
    "join_tree": CostedAlgorithm(_least_join_cost, _estimate_joins, JoinTree, filters_starts=False),
}


def select_start_filtering(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the named algorithms that can leave out starts.

    If none can, it is the automaton, which runs every query.
    """
    return tuple(name for name in names if ALGORITHMS[name].filters_starts) or ("ses_automaton",)
