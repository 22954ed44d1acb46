"""The first query of each kind on a card, with no kernel on disk: what a user waits for who has just installed the package by pip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.gpu.cold_start import FirstQuery, first_query
from benchmarks.gpu.findings import Check, Finding, in_time, note, row
from benchmarks.gpu.questions import QUESTIONS

FIRST = "First queries"
# Seconds of wall time that a first query is to take at most, from the start of its process.
TARGET = 10.0


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """A question's first query: seconds from the start of its process to the answer, and those of its parts."""

    question: str
    imports: float
    card: float
    answer: float
    together: float
    again: float

    @classmethod
    def of(cls, first: FirstQuery) -> FirstAnswer:
        """Return the same with the sum of its parts."""
        together = first.imports + first.card + first.answer
        return cls(first.question, first.imports, first.card, first.answer, together, first.again)

    def cells(self) -> dict[str, str]:
        met = "met" if self.together <= TARGET else "not met"
        return {
            "question": self.question,
            "imports": f"{self.imports:.1f} s",
            "opening the card": f"{self.card:.1f} s",
            "answer": f"{self.answer:.1f} s",
            "together": f"{self.together:.1f} s",
            "target": f"≤ {TARGET:.0f} s: {met}",
            "the same again": f"{1000 * self.again:.0f} ms",
        }


def run(check: Check) -> Iterator[Finding]:
    """Yield each question in a new process, as far as time goes."""
    if check.device.simulated:
        yield note("What compilers take is asked of a card only.")
        return
    yield note("The bytecode of all packages was there, as pip leaves it: a query that was not timed wrote it.")
    yield from in_time(check, {name: name for name in QUESTIONS}, _asked)


def _asked(name: str) -> Iterator[Finding]:
    yield row(FIRST, FirstAnswer.of(first_query(name)))
