"""Row patterns on both engines, over rows enough for many pieces of partitions: whole tables are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.gpu.findings import Finding, fault, row
from benchmarks.row_patterns.questions import QUESTIONS, Question, rows_of

SEED = 30


@dataclass(frozen=True, slots=True)
class Variation:
    """What is done to the rows: so many partitions (None: of a hundred rows each), in no order; `memory` bytes of the card for each row."""

    name: str
    partitions: int | None = 1
    shuffled: bool = False
    memory: int | None = None


# The bound is chosen so that labels fit the card, but not the search of matches.
VARIATIONS = (
    Variation("one partition"),
    Variation("partitions of 100 rows, in no order", partitions=None, shuffled=True),
    Variation("no room for the search", partitions=7, memory=40),
)
# Less is refused, so that few rows always fit.
LEAST_MEMORY = 1 << 20


@dataclass(frozen=True, slots=True)
class LargeRows:
    """A question about so many rows."""

    question: Question
    variation: Variation
    size: int

    @property
    def name(self) -> str:
        return f"{self.question.name}, {self.size:,} rows, {self.variation.name}"


@dataclass(frozen=True, slots=True)
class RowAgreement:
    """Both engines gave the same table, of so many matches; the card left so many rows to the CPU."""

    question: str
    variation: str
    rows: int
    matches: int
    left: int

    def cells(self) -> dict[str, str]:
        numbers = {"rows": self.rows, "matches": self.matches, "rows left to the CPU": self.left}
        return {"question": self.question, "variation": self.variation, **{name: f"{number:,}" for name, number in numbers.items()}}


def large_rows(sizes: Sequence[int]) -> list[LargeRows]:
    """Return every question that labels decide in every variation, the smallest size first."""
    asked = [question for question in QUESTIONS if question.labels]
    return [LargeRows(question, variation, size) for size, variation, question in product(sizes, VARIATIONS, asked)]


def compared_rows(large: LargeRows) -> Iterator[Finding]:
    """Yield both engines' tables."""
    variation, profile = large.variation, gpu_cep.Profile()
    rows = rows_of(large.size, variation.partitions)
    if variation.shuffled:
        rows = rows.take(pa.array(np.random.default_rng(SEED).permutation(large.size)))
    text = f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {large.question.clauses})"
    limit = None if variation.memory is None else max(LEAST_MEMORY, variation.memory * large.size)
    expected = gpu_cep.match(rows, text, engine="cpu")
    found = gpu_cep.match(rows, text, engine="gpu", gpu_memory=limit, profile=profile)
    if not found.equals(expected):
        yield fault(f"{large.name}: another table, of {found.num_rows:,} rows on the GPU and {expected.num_rows:,} on the CPU")
        return
    matches, left = (profile.counts.get(name, 0) for name in ("matches", "left"))
    yield row("Same row patterns", RowAgreement(large.question.name, variation.name, large.size, matches, left))
