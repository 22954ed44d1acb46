"""Row patterns that Flink's SQL has, too: the same MATCH_RECOGNIZE for both, over the rows of ``benchmarks.row_patterns``.

Flink reads rows before the current one by LAST alone, ends no pattern with a greedy quantifier, and does not take back a row
that a greedy quantifier has. So each pattern ends with one row, and no row fits two variables between which there is a choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.row_patterns.questions import rows_of
from benchmarks.workloads.questions import Workload

KEYS = 1_000
KINDS = "abcdefgh"
NEXT_ROW, PAST_LAST_ROW = "TO NEXT ROW", "PAST LAST ROW"
# As Flink's documentation writes it: Flink has no PREV.
_FALLS = "D AS D.price < LAST(D.price, 1) OR (LAST(D.price, 1) IS NULL AND D.price < S.price), U AS U.price > LAST(D.price)"
_STEPS = "A AS A.type = 'a', X AS X.type <> 'b', B AS B.type = 'b'"
# The end of Flink's window is outside of it.
_BEYOND = 1


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A question in the clauses of MATCH_RECOGNIZE.

    `first`, `counted`, `last`: the variables of the first row, of the rows that are counted, and of the last row. `value`: the column
    that is called price. `window`: how many milliseconds a match may take; 0 for any.
    """

    name: str
    pattern: str
    define: str
    first: str
    counted: str
    last: str
    skip: str = PAST_LAST_ROW
    window: int = 0
    value: str = "price"

    @property
    def workload(self) -> Workload:
        """Return what a worker must know of the events."""
        return Workload(self.name, self.query, dict.fromkeys(KINDS, 1 / len(KINDS)), "price", "streamKey", KEYS, self.window)

    @property
    def query(self) -> str:
        return self._clause("ts", f"WITHIN {self.window}")

    def in_flink(self) -> str:
        """Return the statement for Flink."""
        within = f"WITHIN INTERVAL '{(self.window + _BEYOND) / 1000:.3f}' SECOND(9, 3)"
        return f"SELECT t, n, u FROM events {self._clause('event_time', within)}"

    def events(self, count: int) -> pa.Table:
        """Return rows in the order of time, which no two of a partition share."""
        rows, random = rows_of(count, KEYS), np.random.default_rng(31)
        keys = rows["key"].take(pa.array(random.permutation(count)))
        times = np.cumsum(random.integers(1, 4, count))
        return pa.table({"ts": times, "streamKey": keys, "type": rows["kind"], "price": rows[self.value].cast(pa.float64())})

    def stored(self, events: pa.Table) -> pa.Table:
        """Return the rows as they are."""
        return events

    def answer(self, events: pa.Table, threads: int) -> pa.Table:
        """Return the library's answer."""
        return gpu_cep.match(events, self.query, threads=threads)

    def comparable(self, events: pa.Table, rows: pa.Table) -> pa.Table:
        """Return the answer without its keys, for which Flink has other numbers."""
        return rows.select(["t", "n", "u"])

    def _clause(self, time: str, within: str) -> str:
        measures = f"{self.first}.ts AS t, COUNT({self.counted}.ts) AS n, {self.last}.ts AS u"
        window = f" {within}" if self.window else ""
        return (
            f"MATCH_RECOGNIZE (PARTITION BY streamKey ORDER BY {time} MEASURES {measures} ONE ROW PER MATCH "
            f"AFTER MATCH SKIP {self.skip} PATTERN ({self.pattern}){window} DEFINE {self.define})"
        )


# Where a match that begins later may end before, each first row has a match, and a window ends what Flink tries.
ROW_QUESTIONS = {
    each.name: each
    for each in (
        RowQuestion("V shape", "S D+ U", _FALLS, "S", "D", "U"),
        RowQuestion("V shape, next row", "S D+ U", _FALLS, "S", "D", "U", NEXT_ROW),
        RowQuestion("funnel", "A X* B Y* C", f"{_STEPS}, Y AS Y.type <> 'c', C AS C.type = 'c'", "A", "X", "C", window=60_000),
        RowQuestion("counted", "A X{3,20} B", _STEPS, "A", "X", "B"),
        RowQuestion("above the first", "S B+ E", "B AS B.price > S.price, E AS E.price <= S.price", "S", "B", "E", NEXT_ROW, 60_000),
        RowQuestion(
            "above the average", "A{3} B+ E", "B AS B.price > AVG(A.price), E AS E.price <= AVG(A.price)", "A", "B", "E", NEXT_ROW, 60_000
        ),
        RowQuestion("running sum", "A+ E", "A AS SUM(A.price) <= 100, E AS SUM(A.price) + E.price > 100", "A", "A", "E", value="size"),
    )
}
