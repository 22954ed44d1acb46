"""Choose the algorithms that may answer an event pattern (a rule of the planner).

Precondition: each algorithm's row of the table says which queries it runs.
Rewrite: ``auto`` becomes all contending algorithms that run the query. Each batch of events then
takes the one of least expected cost. A named algorithm that cannot run the query is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gpu_cep.analysis.bound import BoundPattern
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.settings import EVENT_ALGORITHMS, PRUNING_STEPS, Settings

# The most variables that a tree of joins takes: each may nest its generators one level deeper.
_MOST_JOINED = 128


def _runs_any(query: BoundPattern) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to find the matches of an event pattern.

    `name`: what ``algorithm=`` calls it.
    `runs`: tells which queries it can answer.
    `needs`: the same in words, for errors.
    `pruning`: the pruning steps that it can use.
    `does`: what it does, in words, for explain.
    `engines`: what can run its phase 1; its phase 2 runs on a GPU for joins, and for chains under skip_till_next_match.
    `contending`: whether ``auto`` may choose it.
    `selecting`: whether it can drop matches while others are still to be found, or skip them.
    Where these may be exponentially many, by a Kleene closure, ``auto`` takes `selecting` ones only.
    """

    name: str
    runs: Callable[[BoundPattern], bool]
    needs: str
    pruning: tuple[str, ...]
    does: str
    engines: tuple[str, ...] = ("cpu", "gpu")
    contending: bool = True
    selecting: bool = False


def _all_matches(query: BoundPattern) -> bool:
    """Return whether all matches are asked for."""
    return query.strategy == "skip_till_any_match"


def _iterates(query: BoundPattern) -> bool:
    """Return whether all matches are sought and some variable can bind several events."""
    return _all_matches(query) and any(variable.maximum != 1 for variable in query.positives)


def _has_single_only(query: BoundPattern) -> bool:
    """Return whether all matches are sought and every positive variable binds one event."""
    return _all_matches(query) and all(variable.minimum == variable.maximum == 1 for variable in query.positives)


def _has_few_single(query: BoundPattern) -> bool:
    """Return whether a tree of joins can answer: all variables single, and few enough in each branch."""
    return _has_single_only(query) and all(len(branch.variables) <= _MOST_JOINED for branch in query.branches)


def _looks_back_only(query: BoundPattern) -> bool:
    """Return whether the strategy decides about an event without looking at later events."""
    return query.strategy != "robust_skip_till_next_match"


_ALGORITHMS = (
    Algorithm(
        "lazy_chain",
        _all_matches,
        "skip_till_any_match",
        ("filter", "reach", "partition"),
        "binds variables from the rarest to the most frequent, as each batch counts them, and quantified ones last",
    ),
    Algorithm("ses_automaton", _runs_any, "nothing", PRUNING_STEPS, "walks each candidate window", selecting=True),
    Algorithm(
        "nfab",
        _looks_back_only,
        "a strategy other than robust_skip_till_next_match",
        tuple(step for step in PRUNING_STEPS if step != "lift"),
        "takes each event once, with all runs at once, and merges those that go on alike",
    ),
    Algorithm(
        "backtracking",
        _runs_any,
        "nothing",
        ("filter", "reach", "partition", "overlap"),
        "tries one run after the other, from each start",
        contending=False,
    ),
    Algorithm(
        "lazy_tree",
        _all_matches,
        "skip_till_any_match",
        ("filter", "reach", "partition"),
        "binds a first event, then variables from the rarest to the most frequent, as its window counts them, and quantified ones last",
    ),
    Algorithm(
        "join_tree",
        _has_few_single,
        f"skip_till_any_match and variables without quantifiers but ?, at most {_MOST_JOINED} in a branch",
        ("filter", "reach", "partition"),
        "joins the events of variables in the cheapest order, as each batch's statistics have it",
    ),
    Algorithm("brute_force", _runs_any, "nothing", (), "tries all combinations, by definition", engines=("cpu",), contending=False),
)

_BY_NAME = {algorithm.name: algorithm for algorithm in _ALGORITHMS}


def choose_algorithms(plan: EventPlan) -> EventPlan:
    """Return the plan with its contenders: the algorithm that is named, or for ``auto`` all that may be chosen.

    Raises
    ------
    UnsupportedError
        The algorithm that is named cannot run the query, or not on the engine.

    Examples
    --------
    >>> before = draft("PATTERN SEQ(a, b+)")
    >>> before.contenders, choose_algorithms(before).contenders
    (('auto',), ('ses_automaton', 'nfab'))
    """
    settings = plan.settings
    if settings.algorithm == "auto":
        return replace(plan, contenders=tuple(algorithm.name for algorithm in _contending(plan.query, settings)))
    return replace(plan, contenders=(_find_algorithm(plan.query, settings.algorithm, settings.engine).name,))


def may_cut(settings: Settings) -> bool:
    """Return whether searches may leave out matches that `after_match` drops."""
    return "overlap" in settings.prune and settings.searched != "all"


def _contending(query: BoundPattern, settings: Settings) -> list[Algorithm]:
    """Return the algorithms among which ``auto`` chooses for a query."""
    selecting = (may_cut(settings) or settings.limit_per_start is not None) and _iterates(query)
    return [each for each in _ALGORITHMS if each.runs(query) and each.contending and each.selecting >= selecting]


def _find_algorithm(query: BoundPattern, name: str, engine: str) -> Algorithm:
    """Return the row of algorithm `name`; raises as :func:`choose_algorithms`."""
    running = [algorithm for algorithm in _ALGORITHMS if algorithm.runs(query)]
    supported = ", ".join(name for name in EVENT_ALGORITHMS if name == "auto" or algorithm_named(name) in running)
    if name not in EVENT_ALGORITHMS:
        raise UnsupportedError([Diagnostic(f"algorithm={name!r} joins situations; supported for this query: {supported}")])
    chosen = algorithm_named(name)
    if chosen not in running:
        raise UnsupportedError([Diagnostic(f"algorithm={name!r} needs {chosen.needs}; supported for this query: {supported}")])
    if engine not in ("auto", *chosen.engines):
        message = f"algorithm={name!r} is not supported with engine={engine!r}; supported: auto, {', '.join(chosen.engines)}"
        raise UnsupportedError([Diagnostic(message)])
    return chosen


def algorithm_named(name: str) -> Algorithm:
    """Return the table's row of the algorithm `name`."""
    return _BY_NAME[name]
