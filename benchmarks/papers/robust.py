"""Robust skip-till-next-match: by backtracking against all matches and post-processing, and against skip-till-next-match.

``python -m benchmarks.papers.robust [--repeats N] [--missed-events N]`` follows section 6.5 of the thesis (figures 6.6 to 6.8, table 6.1)
on prices drawn at random. It prints Markdown and writes it with the JSON record to ``benchmarks/results/``. Both ways
must find the same matches before anything is timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.baselines.measure import Disagreement
from benchmarks.papers.post_processing import conforming, most_of_one_window
from benchmarks.record import pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import LIBRARY, environment, name_on, versions

VARIABLES = (3, 4, 5, 6, 7, 8)
WINDOW = 22  # events: one per tick
WINDOWS = (8, 10, 12, 14, 16, 18, 20, 22)
VARIABLES_OF_WINDOWS = 6
FALLING_EVENTS = 1_000
TRADES = 1_000
MISSED_EVENTS = 100_000
MISSED_VARIABLES = 5
PATIENCE = 0.3  # seconds


@dataclass(frozen=True, slots=True)
class Question:
    """A pattern over prices, without strategy."""

    name: str
    pattern: str
    conditions: tuple[str, ...]
    window: int

    def text(self, strategy: str) -> str:
        return f"PATTERN {self.pattern} WHERE {strategy} {{ {' AND '.join(self.conditions)} }} WITHIN {self.window}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Backtracking and all + post-processing: the median seconds, and how many matches each had before filtering, at most in one window."""

    name: str
    window: int
    events: int
    matches: int
    all_matches: int
    backtracking_seconds: float
    post_processing_seconds: float
    backtracking_intermediate: int
    post_processing_intermediate: int


@dataclass(frozen=True, slots=True)
class Missed:
    """Skip-till-next-match beside robust skip-till-next-match: matches and median seconds."""

    name: str
    window: int
    events: int
    matches: int
    robust_matches: int
    seconds: float
    robust_seconds: float


def downward(variables: int, window: int) -> Question:
    """Return so many events, each at a lower price than the one before: the thesis' patterns of figures 6.6 to 6.8."""
    names = [f"v{number}" for number in range(1, variables + 1)]
    return Question(f"{variables} variables", f"SEQ({', '.join(names)})", _trend(names, ">"), window)


def _trend(names: Sequence[str], operator: str) -> tuple[str, ...]:
    return tuple(f"{first}.price {operator} {second}.price" for first, second in pairwise(names))


# P_1 to P_4 of the thesis: ten or more rising prices; rising prices, then any event or more; a double bottom; two kinds, both rising.
MISCELLANEOUS = (
    Question(
        "P1",
        "SEQ(v1, v2, v3, v4, v5, v6, v7, v8, v9, v10+)",
        (*_trend([f"v{number}" for number in range(1, 11)], "<"), "prev(v10.price) < v10.price"),
        24,
    ),
    Question(
        "P2",
        "SEQ(v1, v2, v3, v4, v5+, v6+)",
        (*_trend(["v1", "v2", "v3", "v4", "v5"], "<"), "prev(v5.price) < v5.price", "v4.price < v6.price"),
        16,
    ),
    Question(
        "P3",
        "SEQ(v1+, v2, v3+, v4, v5+, v6, v7+)",
        (
            *("prev(v1.price) > v1.price", "last(v1.price) > v2.price", "v2.price < v3[1].price"),
            *("prev(v3.price) < v3.price", "last(v3.price) < v4.price", "v4.price > v5[1].price"),
            *("prev(v5.price) > v5.price", "last(v5.price) > v6.price", "v6.price < v7[1].price"),
            "prev(v7.price) < v7.price",
        ),
        14,
    ),
    Question(
        "P4",
        "SEQ(AND(GOOG v1, AAPL w1), AND(GOOG v2, AAPL w2), AND(GOOG v3, AAPL w3), AND(GOOG v4, AAPL w4), AND(GOOG v5+, AAPL w5+))",
        tuple(
            condition
            for name in "vw"
            for condition in (*_trend([f"{name}{number}" for number in range(1, 6)], "<"), f"prev({name}5.price) < {name}5.price")
        ),
        26,
    ),
)


def falling(events: int) -> pa.Table:
    """Return a price that falls by one with each event, with noise of three."""
    noise = np.random.default_rng(2026).normal(scale=3.0, size=events)
    return pa.table({"ts": np.arange(events), "price": noise - np.arange(events)})


def trades(events: int) -> pa.Table:
    """Return trades of two kinds, whose price walks at random with noise."""
    rng = np.random.default_rng(2026)
    price = np.cumsum(rng.normal(size=events)) + rng.normal(scale=1.5, size=events)
    return pa.table({"ts": np.arange(events), "type": np.array(["GOOG", "AAPL"])[rng.integers(0, 2, events)], "price": price})


def by_backtracking(question: Question, events: pa.Table) -> pa.Table:
    return _matches(question, events, "robust_skip_till_next_match")


def by_post_processing(question: Question, events: pa.Table) -> pa.Table:
    return conforming(_matches(question, events, "skip_till_any_match"))


def _matches(question: Question, events: pa.Table, strategy: str) -> pa.Table:
    return gpu_cep.match(events, question.text(strategy), output="indices", threads=1)


def compare(question: Question, events: pa.Table, repeats: int) -> Comparison:
    """Return the times of both ways on the same events, on one thread.

    Raises
    ------
    Disagreement
        They found different matches.
    """
    found, every = by_backtracking(question, events), _matches(question, events, "skip_till_any_match")
    if not conforming(every).equals(found):
        raise Disagreement(f"{question.name}, window {question.window}")
    return Comparison(
        question.name,
        question.window,
        events.num_rows,
        found.num_rows,
        every.num_rows,
        _median_seconds(partial(by_backtracking, question, events), repeats),
        _median_seconds(partial(by_post_processing, question, events), repeats),
        most_of_one_window(found),
        most_of_one_window(every),
    )


def count_missed(question: Question, events: pa.Table, repeats: int) -> Missed:
    run, robust = partial(_matches, question, events, "skip_till_next_match"), partial(by_backtracking, question, events)
    counts = run().num_rows, robust().num_rows
    return Missed(question.name, question.window, events.num_rows, *counts, _median_seconds(run, repeats), _median_seconds(robust, repeats))


def _median_seconds(action: Callable[[], object], repeats: int) -> float:
    """Return the median time of at least `repeats` runs of `action`, and of as many as fit into `PATIENCE`; it has run before."""
    seconds: list[float] = []
    while len(seconds) < repeats or sum(seconds) < PATIENCE:
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def compared(repeats: int) -> dict[str, list[Comparison]]:
    """Return the comparisons by the figure of the thesis that they follow."""
    trend, mixed = falling(FALLING_EVENTS), trades(TRADES)
    return {
        "variables": [compare(downward(variables, WINDOW), trend, repeats) for variables in VARIABLES],
        "window": [compare(downward(VARIABLES_OF_WINDOWS, window), trend, repeats) for window in WINDOWS],
        "miscellaneous": [compare(question, mixed, repeats) for question in MISCELLANEOUS],
    }


def missed(events: int, repeats: int) -> list[Missed]:
    prices = trades(events)
    questions = [
        *(downward(variables, WINDOW) for variables in VARIABLES),
        *(downward(MISSED_VARIABLES, window) for window in WINDOWS),
    ]
    return [count_missed(question, prices, repeats) for question in questions]


def markdown(comparisons: dict[str, list[Comparison]], losses: Sequence[Missed], where: dict[str, str]) -> str:
    return (
        "\n\n".join(
            (
                f"# Robust skip-till-next-match on {where['machine']}, {where['day']}",
                f"Commit {where['commit']}; {versions(where, LIBRARY)}; one thread; load average {where['load']}, this benchmark included. "
                "Written by `python -m benchmarks.papers.robust`.",
                "## Backtracking against all matches + post-processing",
                "Both find the same matches. *bt* is the engine's `robust_skip_till_next_match`; *all+pp* its `skip_till_any_match`, then "
                "`post_processing.py`. Rates are of medians and include the fixed cost of a call, which is much of the time of *bt* here. "
                "Intermediate matches are those of the window that has most, before *all+pp* filters.",
                _comparison_section("A downward trend, more variables (thesis figs. 6.7 and 6.8)", comparisons["variables"]),
                _comparison_section("A downward trend, longer windows (figs. 6.7 and 6.8)", comparisons["window"]),
                _comparison_section("Miscellaneous patterns (table 6.1)", comparisons["miscellaneous"]),
                "## Skip-till-next-match against robust skip-till-next-match (fig. 6.6)",
                "A downward trend in a price that walks at random. Missed are the matches that only the robust strategy finds.",
                pages.table(_missed_rows(losses), figures=6),
            )
        )
        + "\n"
    )


def _comparison_section(title: str, comparisons: Sequence[Comparison]) -> str:
    counts = ["window", "events", "matches", "all matches"]
    head = ["pattern", *counts, "bt", "all+pp", "bt / all+pp", "intermediate, bt", "intermediate, all+pp"]
    return f"### {title}\n\n{pages.table([head, *map(_comparison_row, comparisons)], figures=len(head) - 1)}"


def _comparison_row(each: Comparison) -> list[str]:
    counts = (each.window, each.events, each.matches, each.all_matches)
    intermediate = (each.backtracking_intermediate, each.post_processing_intermediate)
    rates = (each.events / each.backtracking_seconds, each.events / each.post_processing_seconds)
    ratio = each.post_processing_seconds / each.backtracking_seconds
    return [each.name, *map(_count, counts), *map(_rate, rates), f"{ratio:,.1f}", *map(_count, intermediate)]


def _missed_rows(losses: Sequence[Missed]) -> list[list[str]]:
    head = ["pattern", "window", "events", "matches", "robust matches", "missed", "throughput, robust / next"]
    rows = [
        [
            each.name,
            *map(_count, (each.window, each.events, each.matches, each.robust_matches)),
            f"{1 - each.matches / each.robust_matches:.1%}",
            f"{each.seconds / each.robust_seconds:.2f}",
        ]
        for each in losses
    ]
    return [head, *rows]


def _count(number: int) -> str:
    return f"{number:,}"


def _rate(events_per_second: float) -> str:
    return f"{events_per_second:,.0f}/s"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure robust skip-till-next-match against other ways to the same matches.")
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many runs counts")
    parser.add_argument("--missed-events", type=int, default=MISSED_EVENTS, help="events of the comparison with skip-till-next-match")
    options = parser.parse_args(argv)
    comparisons, losses, where = compared(options.repeats), missed(options.missed_events, options.repeats), environment(LIBRARY)
    page = markdown(comparisons, losses, where)
    record = {
        "environment": where,
        "comparisons": {name: [asdict(each) for each in found] for name, found in comparisons.items()},
        "missed": [asdict(each) for each in losses],
    }
    pages.publish(page, RESULTS, name_on(where, "robust"), record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
