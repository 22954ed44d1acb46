"""The record of what pushes into streams take, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.record import pages


@dataclass(frozen=True, slots=True)
class Pushed:
    """What pushes of so many events take beside a window of so many.

    `seconds`: processor time of each push.
    `whole`: that of `match` for the events of one window.
    `matches`: how many came out in all.
    """

    question: str
    window: int
    keys: int
    push: int
    seconds: Sequence[float]
    whole: float
    matches: int

    @property
    def rate(self) -> float:
        """Return events a second of processor time."""
        return self.push * len(self.seconds) / sum(self.seconds)


@dataclass(frozen=True, slots=True)
class Read:
    """The processor seconds of a reader of batches, and of a table of the same events."""

    question: str
    keys: int
    events: int
    by_batch: float
    at_once: float


def table(found: Sequence[Pushed]) -> str:
    """Return a line for each question, number of keys and window."""
    head = ("question", "keys", "events in the window", "best, ms", "median, ms", "events/s", "of a window", "matches")
    lines = [
        (
            each.question,
            f"{each.keys:,}",
            f"{each.window:,}",
            f"{1e3 * min(each.seconds):.2f}",
            f"{1e3 * median(each.seconds):.2f}",
            f"{each.rate:,.0f}",
            f"{median(each.seconds) / each.whole:.2f}",
            f"{each.matches:,}",
        )
        for each in found
    ]
    return pages.table([head, *lines], figures=len(head) - 1)


def table_of_reads(found: Sequence[Read]) -> str:
    """Return a line for each question."""
    head = ("question", "keys", "events", "events/s", "times the time of a table")
    lines = [
        (each.question, f"{each.keys:,}", f"{each.events:,}", f"{each.events / each.by_batch:,.0f}", f"{each.by_batch / each.at_once:.2f}")
        for each in found
    ]
    return pages.table([head, *lines], figures=len(head) - 1)


def medians(found: Sequence[Pushed]) -> str:
    """Return the median milliseconds of a push, a line for each question and a column for each window: the worst of all keys."""
    windows = sorted({each.window for each in found})
    worst: dict[tuple[str, int], float] = {}
    for each in found:
        place = each.question, each.window
        worst[place] = max(worst.get(place, 0.0), 1e3 * median(each.seconds))
    questions = sorted({each.question for each in found}, key=lambda name: -worst[name, windows[-1]])
    lines = [[name, *(f"{worst[name, window]:.1f}" for window in windows)] for name in questions]
    return pages.table([["question", *(f"{window:,} events" for window in windows)], *lines], figures=len(windows))
