"""The benchmarks' questions by every algorithm that runs them, on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from floors import best_seconds
from measure import OUTPUTS, Case, Disagreement, events_of, match_count, run_match

from gpu_cep.errors import MatchLimitExceeded, UnsupportedError
from gpu_cep.plan.settings import EVENT_ALGORITHMS

# The oracle is no contestant.
ALGORITHMS = tuple(name for name in EVENT_ALGORITHMS if name != "brute_force")
MOST_STEPS = 100_000_000
# A run that takes longer is not repeated.
PATIENCE = 1.0  # seconds
WARM_UP_EVENTS = 1_000


@dataclass(frozen=True, slots=True)
class AlgorithmRate:
    """The best wall time of one algorithm; None where it does not run the query or takes too many steps, with the reason."""

    workload: str
    output: str
    algorithm: str
    events: int
    seconds: float | None
    reason: str = ""


def measure_algorithms(case: Case, outputs: tuple[str, ...], repeats: int) -> list[AlgorithmRate]:
    """All of them on the same events; those that run must find the same number of matches."""
    events = events_of(case)
    return [rate for output in outputs for rate in _by_all(case, events, output, repeats)]


def _by_all(case: Case, events: pa.Table, output: str, repeats: int) -> list[AlgorithmRate]:
    found: dict[str, int] = {}
    rates = [_rate(case, events, output, name, repeats, found) for name in ALGORITHMS]
    if len(set(found.values())) > 1:
        raise Disagreement(f"{case.workload.name}, {OUTPUTS[output]}: {found}")
    return rates


def _rate(case: Case, events: pa.Table, output: str, algorithm: str, repeats: int, found: dict[str, int]) -> AlgorithmRate:
    """One algorithm's rate; what it found goes to `found`."""
    run = partial(run_match, case, events, output, 1, algorithm=algorithm, max_steps=MOST_STEPS)
    rate = partial(AlgorithmRate, case.workload.name, output, algorithm, case.events)
    try:
        run_match(case, events.slice(0, WARM_UP_EVENTS), output, 1, algorithm=algorithm)
        seconds = _seconds(run, repeats)
    except UnsupportedError as error:
        return rate(None, str(error).splitlines()[0])
    except MatchLimitExceeded:
        return rate(None, f"more than {MOST_STEPS:,} steps")
    found[algorithm] = match_count(run(), output)
    return rate(seconds)


def _seconds(run: Callable[[], pa.Table], repeats: int) -> float:
    begin = time.perf_counter()
    run()
    first = time.perf_counter() - begin
    return first if first > PATIENCE else best_seconds(run, repeats)
