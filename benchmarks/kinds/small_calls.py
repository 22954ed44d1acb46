"""What a call over few events takes, for each kind of question: its plan is known, so that most is the engine's fixed work.

``python -m benchmarks.kinds.small_calls [--events N] [--kinds NAME …] [--rounds N]`` prints, for calls on one thread in the form
that users begin with, the shortest milliseconds of processor time and of the clock, and how many functions a call runs outside of
kernels. The last figure is the same on a busy machine.
"""

from __future__ import annotations

import argparse
import cProfile
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.kinds.events import make
from benchmarks.kinds.forms import BASE, FORMS, TABLES
from benchmarks.kinds.questions import KINDS, Kind

EVENTS, ROUNDS, CALLS = 1_000, 40, 10


@dataclass(frozen=True, slots=True)
class SmallCall:
    """The seconds of a call, the least mean of a round, and the functions that it runs."""

    kind: str
    cpu: float
    wall: float
    functions: int


def measured(kinds: Sequence[Kind], events: int, rounds: int) -> list[SmallCall]:
    """Time calls of kinds over so many events each, once all kernels are loaded and the plans are known.

    The kinds take turns, so that no kind is alone with a while in which the machine is slow.
    """
    calls = [_call(kind, events) for kind in kinds]
    taken: list[list[tuple[float, float]]] = [[] for _ in kinds]
    for _ in range(rounds):
        for call, times in zip(calls, taken, strict=True):
            # what the other kinds' calls have displaced is found again
            call()
            times.append(_seconds(call))
    found = []
    for kind, call, times in zip(kinds, calls, taken, strict=True):
        call()
        profile = cProfile.Profile()
        profile.runcall(call)
        functions = sum(each.callcount for each in profile.getstats())
        found.append(SmallCall(kind.name, min(cpu for cpu, _ in times), min(wall for _, wall in times), functions))
    return found


def _call(kind: Kind, events: int) -> Callable[[], object]:
    """Return a call of one kind in the form that users begin with, without arguments."""
    form = FORMS[BASE]
    return partial(form.answer, kind, TABLES[form.table](make(kind.workload, kind.shape, events)))


def _seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Return the mean seconds of processor time and of the clock of some calls."""
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - cpu) / CALLS, (time.perf_counter() - wall) / CALLS


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time calls over few events.")
    parser.add_argument("--events", type=int, default=EVENTS, help=f"so many events of each kind; {EVENTS:,} unless told")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="NAME", help="some kinds instead of all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"the best of so many rounds counts; {ROUNDS} unless told")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    asked = _arguments(argv)
    print(f"{'kind':18}{'CPU, ms':>10}{'clock, ms':>11}{'functions':>11}   a call of {asked.events:,} events")
    found = measured([KINDS[name] for name in asked.kinds], asked.events, asked.rounds)
    for call in found:
        print(f"{call.kind:18}{1e3 * call.cpu:10.3f}{1e3 * call.wall:11.3f}{call.functions:11,}")
    middle = [statistics.median(values) for values in zip(*((call.cpu, call.wall, call.functions) for call in found), strict=True)]
    print(f"{'median':18}{1e3 * middle[0]:10.3f}{1e3 * middle[1]:11.3f}{middle[2]:11,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
