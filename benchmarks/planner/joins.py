"""All matches of single variables by joins, by the lazy chain and by the automaton, on the same events.

``python -m benchmarks.planner.joins`` prints its page and writes it to results/ with
its record. Questions differ in what they have of: a rare type, equal values
that do not split the stream, long windows, negation, and events in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import pyarrow as pa

import gpu_cep as cep
from benchmarks.record import pages
from benchmarks.record.clocks import least
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import described, environment, name_on
from gpu_cep.choices import EventAlgorithm, TableOutput

ALGORITHMS: tuple[EventAlgorithm, ...] = ("join_tree", "lazy_chain", "ses_automaton")
OUTPUTS: tuple[TableOutput, ...] = ("indices", "count")
EVENTS = 400_000
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the shares of the types A, B and so on."""

    name: str
    text: str
    shares: tuple[float, ...]


QUESTIONS = (
    Question("rare last", "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 30", (0.49, 0.49, 0.02)),
    Question("no type rare", "SEQ(A a, B b, C c) WITHIN 12", (0.33, 0.33, 0.34)),
    Question("selective pairs", "SEQ(A a, B b, C c) WHERE b.x > c.x + 0.95 AND a.y = c.y WITHIN 60", (0.33, 0.33, 0.34)),
    Question("one key, two of three", "SEQ(A a, B b, C c) WHERE a.k = c.k AND a.x < b.x AND b.x < c.x WITHIN 300", (0.4, 0.4, 0.2)),
    Question("two keys, two pairs", "SEQ(A a, B b, C c, D d) WHERE a.k = b.k AND c.y = d.y WITHIN 200", (0.25,) * 4),
    Question("one key, none between", "SEQ(A a, NOT(D d), B b, C c) WHERE a.k = c.k AND d.x > b.x WITHIN 300", (0.35, 0.3, 0.3, 0.05)),
    Question("any order", "AND(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 20", (0.6, 0.3, 0.1)),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A question's matches, and the seconds to list and to count them, by algorithm."""

    question: Question
    matches: int
    indices: dict[str, float]
    count: dict[str, float]


def events_of(question: Question, size: int) -> pa.Table:
    """Return random events: about one in every one and a half units of time, a thousand keys k and y, values x from 0 to 1."""
    random = np.random.default_rng(7)
    types = pa.array(random.choice(list("ABCD")[: len(question.shares)], size, p=question.shares)).dictionary_encode()
    values = {"k": random.integers(0, 1_000, size), "y": random.integers(0, 1_000, size), "x": random.random(size)}
    return pa.table({"ts": np.cumsum(random.integers(1, 3, size)), "type": types, **values})


def measured(question: Question, size: int = EVENTS, repeats: int = REPEATS) -> Row:
    """Return the times of the question by all algorithms, which must agree on every match."""
    events = events_of(question, size)
    taken: dict[str, dict[str, float]] = {output: {} for output in OUTPUTS}
    matches = 0
    for output in OUTPUTS:
        answers = []
        for algorithm in ALGORITHMS:
            seconds, answer = least(partial(asked, events, question, output, algorithm), repeats)
            taken[output][algorithm] = seconds.cpu
            answers.append(answer)
        assert all(answer.equals(answers[0]) for answer in answers), (question, output)
        matches = matches or answers[0].num_rows
    return Row(question, matches, **taken)


def asked(events: pa.Table, question: Question, output: TableOutput, algorithm: EventAlgorithm) -> pa.Table:
    """Return an algorithm's answer to a question."""
    return cep.match(events, f"PATTERN {question.text}", strategy="skip_till_any_match", output=output, algorithm=algorithm)


def markdown(rows: Sequence[Row], where: str) -> str:
    """Return the figures as a page."""
    head = ("", "matches", *(f"{algorithm}, s" for algorithm in ALGORITHMS), *(f"{algorithm}, counting, s" for algorithm in ALGORITHMS))
    figures = [
        (row.question.name, f"{row.matches:,}", *(f"{seconds[name]:.3f}" for seconds in (row.indices, row.count) for name in ALGORITHMS))
        for row in rows
    ]
    questions = "\n".join(f"- {row.question.name}: `{row.question.text}`" for row in rows)
    parts = [
        "# All matches by joins, by the lazy chain and by the automaton",
        where,
        f"{EVENTS:,} events of one stream, skip till any match; the matches of all algorithms are the same.",
        pages.table([head, *figures], figures=len(head) - 1),
        questions,
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print the page, write it and its record."""
    for question in QUESTIONS:
        measured(question, 1_000, 1)  # loads the compiled kernels
    rows = [measured(question) for question in QUESTIONS]
    where = environment()
    page = markdown(rows, f"{described(where)}. CPU seconds of all threads, the best of {REPEATS} warm runs each.")
    pages.publish(page, RESULTS, name_on(where, "joins"), {"environment": where, "rows": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
