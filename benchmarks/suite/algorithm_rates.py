"""The benchmarks' questions by every algorithm that runs them, on one thread."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import get_args

import pyarrow as pa

from benchmarks.baselines.floors import best_seconds
from benchmarks.baselines.measure import OUTPUTS, Case, Disagreement, events_of, match_count, run_match
from gpu_cep.choices import EventAlgorithm
from gpu_cep.errors import MatchLimitExceeded, UnsupportedError

# The oracle is no contestant.
ALGORITHMS: tuple[EventAlgorithm, ...] = tuple(name for name in get_args(EventAlgorithm) if name != "brute_force")
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
    matches: int | None = None
    reason: str = ""


def measure_algorithms(case: Case, outputs: tuple[str, ...], repeats: int) -> list[AlgorithmRate]:
    """Return the rates of all algorithms on the same events; those that run must find the same number of matches."""
    events = events_of(case)
    return [rate for output in outputs for rate in _by_all(case, events, output, repeats)]


def _by_all(case: Case, events: pa.Table, output: str, repeats: int) -> list[AlgorithmRate]:
    rates = [_rate(case, events, output, name, repeats) for name in ALGORITHMS]
    found = {rate.algorithm: rate.matches for rate in rates if rate.matches is not None}
    if len(set(found.values())) > 1:
        raise Disagreement(f"{case.workload.name}, {OUTPUTS[output]}: {found}")
    return rates


def _rate(case: Case, events: pa.Table, output: str, algorithm: EventAlgorithm, repeats: int) -> AlgorithmRate:
    run = partial(run_match, case, events, output, 1, algorithm=algorithm, max_steps=MOST_STEPS)
    rate = partial(AlgorithmRate, case.workload.name, output, algorithm, case.events)
    try:
        run_match(case, events.slice(0, WARM_UP_EVENTS), output, 1, algorithm=algorithm)
        begin = time.perf_counter()
        answer = run()
        seconds = time.perf_counter() - begin
        if seconds <= PATIENCE:
            seconds = best_seconds(run, repeats)
    except UnsupportedError as error:
        return rate(None, reason=str(error).splitlines()[0])
    except MatchLimitExceeded:
        return rate(None, reason=f"more than {MOST_STEPS:,} steps")
    return rate(seconds, match_count(answer, output))
