"""What an event costs where windows are long, where most events are noise, and where one window holds the whole stream.

``python -m benchmarks.planner.long_windows`` prints its page and writes it to results/
with its record. Strategies are those that decide which events a run passes
over. Questions without noise are asked over windows of 30 events and more;
noise are events that no variable binds.
"""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import gpu_cep as cep
from benchmarks.record import pages
from benchmarks.record.clocks import least
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import described, environment, name_on
from gpu_cep.choices import EventAlgorithm, Strategy
from gpu_cep.errors import MatchLimitExceeded

EVENTS, MANY_EVENTS = 400_000, 5_000_000
REPEATS = 3
# Seconds of CPU time after which a figure is not taken again.
LONGEST = 4.0
WINDOWS = (30, 300, 3_000, 30_000, 300_000)
NOISES = (0.0, 0.9, 0.99, 0.999)
NOISY_WINDOW = 30_000
# Steps that a run is given: where it takes more, its cost grows with the window, and the row ends.
MOST_STEPS = 100_000_000
SHARES = {"A": 0.1, "B": 0.4, "C": 0.1, "D": 0.4}


@dataclass(frozen=True, slots=True)
class Question:
    """A query of its strategy, and the algorithms that answer it."""

    name: str
    text: str
    strategy: Strategy = "skip_till_next_match"
    algorithms: tuple[EventAlgorithm, ...] = ("ses_automaton",)


BOTH: tuple[EventAlgorithm, ...] = ("ses_automaton", "nfab")
QUESTIONS = (
    Question("a rare rise", "SEQ(A a, B b, C c) WHERE b.x > a.x + 0.99"),
    Question("a rare key", "SEQ(A a, B b, C c) WHERE a.k = b.k AND b.x < c.x"),
    Question("a rare fall, and none between", "SEQ(A a, ~D d, B b) WHERE d.x > a.x + 0.9 AND b.x < a.x - 0.9"),
    Question("a set", "SEQ(AND(A a, B b), C c) WHERE b.k = a.k AND c.x > a.x + 0.9"),
    Question("a rise, robust", "SEQ(A a, B b, C c) WHERE b.x > a.x + 0.99", "robust_skip_till_next_match"),
    Question("a rising run, contiguous", "SEQ(A a, B b+) WHERE b[i].x > b[i-1].x", "strict_contiguity", BOTH),
    Question("a record run", "SEQ(A a, B b+, C c) WHERE b[i].w > b[i-1].w AND c.w < a.w", algorithms=BOTH),
    Question("a run of all that rise", "SEQ(A a, B b+, C c) WHERE b[i].u > b[i-1].u AND c.x > 0.999", algorithms=BOTH),
    Question("a run with a rare end", "SEQ(A a, B b+, C c) WHERE c.x > a.x + 0.99", algorithms=BOTH),
    Question("a mean", "SEQ(A a, B b+, C c) WHERE c.x > avg(b.x) + 0.49", algorithms=BOTH),
    Question("dead ends, robust", "SEQ(A a, B b, C c) WHERE a.x < b.x AND c.x > b.x + 0.99", "robust_skip_till_next_match"),
    Question("dead ends of runs, robust", "SEQ(A a, B b+, C c) WHERE b[i].w > b[i-1].w AND c.k = last(b.k)", "robust_skip_till_next_match"),
    Question("dead ends of a start, robust", "SEQ(A a, B b+, C c) WHERE b.x > a.x AND c.x > a.x + 0.99", "robust_skip_till_next_match"),
)
# Those of which each start takes a bounded number of steps: they are asked of noisy and of endless windows, too.
FLAT = QUESTIONS[:6]


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds of CPU time per event, and matches, by window or noise; a row that took too many steps ends early."""

    question: str
    algorithm: str
    nanoseconds: dict[str, float]
    matches: dict[str, int]


@dataclass(frozen=True, slots=True)
class Shared:
    """One window over a whole stream: seconds on the clock and of CPU time by threads, the share of the busiest, and bytes per event."""

    question: str
    events: int
    matches: int
    clock: dict[str, float]
    cpu: dict[str, float]
    busiest: float
    peak: float


def events_of(size: int, noise: float = 0.0) -> pa.Table:
    """Return an event in every unit of time: values x at random, keys k, a random walk w, and u, which rises for ever but for a little."""
    random = np.random.default_rng(11)
    shares = [noise, *((1 - noise) * share for share in SHARES.values())]
    types = pa.array(random.choice(["X", *SHARES], size, p=shares)).dictionary_encode()
    walk, rise = np.cumsum(random.normal(size=size)), np.arange(size) + 3 * random.random(size)
    columns = {"x": random.random(size), "k": random.integers(0, 1_000, size), "w": walk, "u": rise}
    return pa.table({"ts": np.arange(size), "type": types, **columns})


def asked(events: pa.Table, question: Question, window: int | None, algorithm: EventAlgorithm, threads: int = 1) -> int:
    """Return how many matches there are."""
    text = f"PATTERN {question.text}" + ("" if window is None else f" WITHIN {window}")
    tuning = cep.Tuning(algorithm=algorithm, threads=threads, max_steps=MOST_STEPS)
    return sum(cep.match(events, text, strategy=question.strategy, output="count", tuning=tuning)["count"].to_pylist())


def cost(question: Question, algorithm: EventAlgorithm, points: Sequence[tuple[str, pa.Table, int]], repeats: int) -> Cost:
    """Return the question's cost at each point, by its name, over events and with a window, until one takes too many steps."""
    nanoseconds, matches = {}, {}
    for name, events, window in points:
        try:
            seconds, matches[name] = least(partial(asked, events, question, window, algorithm), repeats, LONGEST)
        except MatchLimitExceeded:
            break
        nanoseconds[name] = 1e9 * seconds.cpu / len(events)
    return Cost(question.name, algorithm, nanoseconds, matches)


def by_window(size: int = EVENTS, repeats: int = REPEATS, windows: Sequence[int] = WINDOWS) -> list[Cost]:
    """Return the costs of all questions without noise."""
    events = events_of(size)
    points = [(f"{window:,}", events, window) for window in windows]
    return [cost(question, algorithm, points, repeats) for question in QUESTIONS for algorithm in question.algorithms]


def by_noise(size: int = EVENTS, repeats: int = REPEATS, window: int = NOISY_WINDOW) -> list[Cost]:
    """Return the costs of flat questions: the more noise, the fewer events that a variable binds."""
    points = [(f"{100 * noise:g} %", events_of(size, noise), window) for noise in NOISES]
    return [cost(question, question.algorithms[0], points, repeats) for question in FLAT]


def shared(question: Question, size: int = MANY_EVENTS, repeats: int = REPEATS) -> Shared:
    """Return the times of one window over all events, by one thread and by two."""
    events = events_of(size)
    clock, cpu, matches = {}, {}, set()
    for threads in (1, 2):
        run = partial(asked, events, question, None if "~" not in question.text else size, question.algorithms[0], threads)
        taken, found = least(run, repeats, LONGEST)
        clock[str(threads)], cpu[str(threads)] = taken
        matches.add(found)
    assert len(matches) == 1, question
    before = thread_seconds()
    run()
    spent = [seconds - before.get(thread, 0.0) for thread, seconds in thread_seconds().items()]
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Shared(question.name, size, matches.pop(), clock, cpu, max(spent) / max(sum(spent), 1e-9), peak / size)


def thread_seconds() -> dict[str, float]:
    """Return the CPU seconds of each of this process's threads, on Linux."""
    ticks = {path.parent.name: path.read_text().rpartition(")")[2].split()[11:13] for path in Path("/proc/self/task").glob("*/stat")}
    return {thread: sum(map(int, spent)) / os.sysconf("SC_CLK_TCK") for thread, spent in ticks.items()}


def two_threads(size: int = 1 << 26) -> float:
    """Return how many times as much two threads do as one that share nothing: what the machine has to give while figures are taken."""
    data = bytes(size)

    def spread(threads: int) -> int:
        with ThreadPoolExecutor(threads) as pool:
            return len([*pool.map(hashlib.sha256, [data] * threads)])

    (one, _), (two, _) = (least(partial(spread, threads), REPEATS, LONGEST) for threads in (1, 2))
    return 2 * one.clock / two.clock


def copying(size: int = EVENTS, repeats: int = REPEATS) -> float:
    """Return nanoseconds per event to copy the columns that the questions read."""
    columns = [np.asarray(events_of(size)[name]) for name in ("ts", "x", "k", "w")]
    seconds, _ = least(lambda: sum(len(column.copy()) for column in columns), repeats, LONGEST)
    return 1e9 * seconds.cpu / size


def ratio(row: Cost) -> float:
    """Return how the last figure compares with the first."""
    first, *others = row.nanoseconds.values()
    return others[-1] / first if others else 1.0


def costs_table(costs: Sequence[Cost], head: str) -> str:
    """Return nanoseconds per event of each row at each point, and how the last compares with the first."""
    names = list(dict.fromkeys(name for row in costs for name in row.nanoseconds))
    lines = [
        (
            row.question,
            row.algorithm,
            *(f"{row.nanoseconds[name]:,.0f}" if name in row.nanoseconds else "–" for name in names),
            f"{ratio(row):,.2f}",
            f"{[*row.matches.values()][-1]:,}",
        )
        for row in costs
        if row.nanoseconds
    ]
    return pages.table([(head, "algorithm", *names, "last to first", "matches at the last"), *lines], figures=len(names) + 2)


def shared_table(rows: Sequence[Shared]) -> str:
    """Return seconds by one and by two threads."""
    seconds = (f"{threads}, {what} s" for what in ("clock", "CPU") for threads in ("1 thread", "2 threads"))
    head = ("", "matches", *seconds, "busiest", "bytes")
    lines = [
        (
            row.question,
            f"{row.matches:,}",
            *(f"{seconds[threads]:.2f}" for seconds in (row.clock, row.cpu) for threads in ("1", "2")),
            f"{100 * row.busiest:.0f} %",
            f"{row.peak:,.0f}",
        )
        for row in rows
    ]
    return pages.table([head, *lines], figures=len(head) - 1)


def markdown(windows: Sequence[Cost], noise: Sequence[Cost], endless: Sequence[Shared], copied: float, twofold: float, where: str) -> str:
    """Return the figures as a page."""
    questions = "\n".join(f"- {question.name}: `{question.text}`, {question.strategy}" for question in QUESTIONS)
    parts = [
        "# Long windows, noisy streams, and one window over all",
        where,
        "Nanoseconds of CPU time per event of the stream, counting matches; to copy the columns that are read takes "
        f"{copied:.1f}. A dash is a run of more than {MOST_STEPS:,} steps.",
        "## Windows",
        f"{EVENTS:,} events of one stream without noise, windows of so many.",
        costs_table(windows, "question"),
        "Where a match binds a bounded number of events, costs level off once windows hold a match: searches jump over the events that "
        "conditions rule out. Costs grow with what matches bind, where that grows with the window: each start walks its own run, unless "
        "`nfab` is asked, which merges runs that go on alike; to those that no condition lets it merge it offers each event. Long runs "
        "that cannot become matches are given up, as far as conditions on single variables tell. Under the robust strategy costs grow "
        "where events lead nowhere that look as if they did: each start comes to those that its own conditions rule out.",
        "## Noise",
        f"{EVENTS:,} events of one stream, windows of {NOISY_WINDOW:,} of them, by the share that no variable binds.",
        costs_table(noise, "question"),
        "## One window over all",
        f"{MANY_EVENTS:,} events of one stream and no window (a negation's is as long as the stream). *Busiest*: the share of the CPU "
        "time of two threads that the busier one took; *bytes*: those that the run holds at its peak, of NumPy's arrays, per event. "
        f"Two threads that share nothing did {twofold:.2f} times the work of one on this machine at the time.",
        shared_table(endless),
        "## Questions",
        questions,
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print the page, write it and its record."""
    by_window(3_000, 1, (30,))  # loads the compiled kernels
    windows, noise, copied, twofold = by_window(), by_noise(), copying(), two_threads()
    endless = [shared(question) for question in FLAT]
    where = environment()
    told = f"{described(where)}; the best of {REPEATS} warm runs each, by one thread where none are named."
    page = markdown(windows, noise, endless, copied, twofold, told)
    rows = {name: [*map(asdict, found)] for name, found in (("windows", windows), ("noise", noise), ("endless", endless))}
    record = {"environment": where, "copying": copied, "two_threads": twofold, **rows}
    pages.publish(page, RESULTS, name_on(where, "long-windows"), record)


if __name__ == "__main__":
    main()
