"""Choose the algorithm that joins situations (a rule of the planner).

``auto`` becomes the join by index ranges. An algorithm for event patterns is an error that names
those for situations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.interval_plan import IntervalPlan

AUTO = "range_join"


@dataclass(frozen=True, slots=True)
class IntervalAlgorithm:
    """A way to join situations.

    `name`: what ``algorithm=`` calls it.
    `does`: what it does, in words, for explain.
    `by_window`, `by_zones`: whether windows and the zones of constraints narrow its candidates.

    Every algorithm tests the candidates that are left, so that all find the same matches.
    """

    name: str
    does: str
    by_window: bool = False
    by_zones: bool = False


_ALGORITHMS = (
    IntervalAlgorithm(
        "range_join", "finds the situations that constraints and window allow by binary search", by_window=True, by_zones=True
    ),
    IntervalAlgorithm("end_join", "tries the situations that end within the window, as ISEQ does", by_window=True),
    IntervalAlgorithm("nested_loop", "tries all situations of the stream"),
    IntervalAlgorithm("brute_force", "tries all combinations, by definition"),
)
INTERVAL_ALGORITHMS = tuple(algorithm.name for algorithm in _ALGORITHMS)


def choose_join(plan: IntervalPlan) -> IntervalPlan:
    """Return the plan with the algorithm that the settings name, or the join by index ranges for ``auto``.

    Raises
    ------
    UnsupportedError
        The algorithm that is named is for event patterns.

    Examples
    --------
    >>> before = draft("DEFINE A AS x > 1, B AS y > 1 PATTERN A before B")
    >>> before.algorithm, choose_join(before).algorithm
    ('auto', 'range_join')
    """
    name = plan.settings.algorithm
    if name == "auto":
        return replace(plan, algorithm=AUTO)
    if name not in INTERVAL_ALGORITHMS:
        supported = ", ".join(("auto", *INTERVAL_ALGORITHMS))
        raise UnsupportedError([Diagnostic(f"algorithm={name!r} is for event patterns; supported for situations: {supported}")])
    return replace(plan, algorithm=name)


def interval_algorithm(name: str) -> IntervalAlgorithm:
    """Return the table's row of the algorithm `name`."""
    return next(algorithm for algorithm in _ALGORITHMS if algorithm.name == name)
