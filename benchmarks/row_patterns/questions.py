"""The questions about row patterns, and the rows of which they are asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

FALL_AND_RISE = "DEFINE D AS price < PREV(price), U AS price > PREV(price)"
ENDS = "MEASURES FIRST(ts) AS t, LAST(ts) AS u, count(*) AS n"
TWO_STEPS = "DEFINE A AS kind = 'a', B AS kind = 'b'"
STEPS = f"{TWO_STEPS}, C AS kind = 'c'"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the clauses behind PARTITION BY and ORDER BY, and whether labels alone decide."""

    name: str
    clauses: str
    labels: bool = True


QUESTIONS = (
    Question("V shape", f"MEASURES FIRST(ts) AS t, LAST(D.price) AS low, LAST(U.price) AS top PATTERN (S D+ U+) {FALL_AND_RISE}"),
    Question("W shape", f"{ENDS} PATTERN (S D+ U+ D+ U+) {FALL_AND_RISE}"),
    Question("V shape, sums", f"MEASURES FIRST(ts) AS t, sum(D.price) AS s, avg(U.price) AS m PATTERN (S D+ U+) {FALL_AND_RISE}"),
    Question("V shape, next row", f"{ENDS} AFTER MATCH SKIP TO NEXT ROW PATTERN (S D+ U+) {FALL_AND_RISE}"),
    Question("V shape, all rows", f"MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS v ALL ROWS PER MATCH PATTERN (S D+ U+) {FALL_AND_RISE}"),
    Question("sessions", f"{ENDS} PATTERN (S N*) DEFINE N AS ts - PREV(ts) < 4"),
    Question("funnel", f"{ENDS} PATTERN (A X*? B X*? C) WITHIN 50 {STEPS}"),
    Question("funnel, no window", f"{ENDS} PATTERN (A X*? B X*? C) {STEPS}"),
    Question("equal rows", f"{ENDS} PATTERN (A+ B+) DEFINE A AS level = 0, B AS level = 0"),
    Question("equal rows, nested", f"{ENDS} PATTERN ((A+ B+)+) DEFINE A AS level = 0, B AS level = 0"),
    Question("permutation of five", f"{ENDS} PATTERN (PERMUTE(A, B, C, D, E)) {STEPS}, D AS kind = 'd', E AS kind = 'e'"),
    Question("reluctant", f"{ENDS} PATTERN ((A | B)*? C) {STEPS}"),
    Question("alternatives", f"{ENDS} PATTERN ((A B | B A | A C | C A | B C | C B)+) {STEPS}"),
    Question("counted", f"{ENDS} PATTERN (A X{{3,20}} B) {TWO_STEPS}"),
    Question("above the first", f"{ENDS} PATTERN (S B+) DEFINE B AS price > FIRST(price)", labels=False),
    Question("running sum", f"{ENDS} PATTERN (A+) DEFINE A AS sum(A.size) <= 100", labels=False),
    Question("above the average", f"{ENDS} PATTERN (A{{3}} B+) DEFINE B AS price > avg(A.price)", labels=False),
    Question("near the average", f"{ENDS} PATTERN (A{{3}} B+) DEFINE B AS price > 0.9 * avg(A.price)", labels=False),
    Question("near the first", f"{ENDS} PATTERN (S B+) DEFINE B AS price > FIRST(price) - 5 AND count(*) < 50", labels=False),
)

KEYS = {"one partition": 1, "1,000 partitions": 1_000, "partitions of 100": None}


def rows_of(rows: int, keys: int | None) -> pa.Table:
    """Return rows in order of key and time: prices that wander, kinds of which five matter, and a level that is always the same."""
    random = np.random.default_rng(30)
    count = rows // 100 if keys is None else keys
    kinds = pa.DictionaryArray.from_arrays(random.integers(0, 8, rows, np.int8), pa.array(list("abcdefgh")))
    return pa.table(
        {
            "key": np.sort(random.integers(0, max(count, 1), rows)).astype(np.int32),
            "ts": np.cumsum(random.integers(0, 6, rows)),
            "price": np.cumsum(random.normal(size=rows)),
            "size": random.integers(1, 20, rows),
            "level": np.zeros(rows, np.int32),
            "kind": kinds,
        }
    )
