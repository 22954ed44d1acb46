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
from dataclasses import dataclass

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


def measured(kind: Kind, events: int, rounds: int) -> SmallCall:
    """Time calls of one kind over so many events, once all kernels are loaded and the plan is known."""
    form = FORMS[BASE]
    table = TABLES[form.table](make(kind.workload, kind.shape, events))
    form.answer(kind, table)
    taken = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.thread_time()
        for _ in range(CALLS):
            form.answer(kind, table)
        taken.append(((time.thread_time() - cpu) / CALLS, (time.perf_counter() - wall) / CALLS))
    profile = cProfile.Profile()
    profile.runcall(form.answer, kind, table)
    functions = sum(each.callcount for each in profile.getstats())
    return SmallCall(kind.name, min(cpu for cpu, _ in taken), min(wall for _, wall in taken), functions)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time calls over few events.")
    parser.add_argument("--events", type=int, default=EVENTS, help=f"so many events of each kind; {EVENTS:,} unless told")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="NAME", help="some kinds instead of all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"the best of so many rounds counts; {ROUNDS} unless told")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    asked = _arguments(argv)
    print(f"{'kind':18}{'CPU, ms':>10}{'clock, ms':>11}{'functions':>11}   a call of {asked.events:,} events")
    found = []
    for name in asked.kinds:
        call = measured(KINDS[name], asked.events, asked.rounds)
        found.append(call)
        print(f"{call.kind:18}{1e3 * call.cpu:10.3f}{1e3 * call.wall:11.3f}{call.functions:11,}", flush=True)
    middle = [statistics.median(values) for values in zip(*((call.cpu, call.wall, call.functions) for call in found), strict=True)]
    print(f"{'median':18}{1e3 * middle[0]:10.3f}{1e3 * middle[1]:11.3f}{middle[2]:11,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
