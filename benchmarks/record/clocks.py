"""Time calls by the clock and by processors."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeVar

Answer = TypeVar("Answer")


class Seconds(NamedTuple):
    """What a call takes by the clock, and of processors in all threads together."""

    clock: float
    cpu: float


def timed(call: Callable[[], Answer]) -> tuple[Seconds, Answer]:
    """Return what a call takes, and what it gives."""
    clock, cpu = time.perf_counter(), time.process_time()
    answer = call()
    return Seconds(time.perf_counter() - clock, time.process_time() - cpu), answer


def least(call: Callable[[], Answer], repeats: int, patience: float = inf) -> tuple[Seconds, Answer]:
    """Return the least that some runs of a call take, each measure by itself, and what the last one gives.

    There are `repeats` runs, or as many as begin within `patience` seconds.
    """
    taken, answer = timed(call)
    runs = [taken]
    while len(runs) < repeats and sum(each.clock for each in runs) < patience:
        # before the next run, which may take its memory
        del answer
        taken, answer = timed(call)
        runs.append(taken)
    return Seconds(*map(min, zip(*runs, strict=True))), answer
