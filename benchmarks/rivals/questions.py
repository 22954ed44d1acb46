"""Three questions that rivals can be asked too, in the words of each: SQL by hand, SQL's row patterns, Flink's Java patterns.

A match is compared as a row of the times of its events, which are unique here, and of the number of events that a
quantified variable took; together with the question they say which events the match has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

import gpu_cep
from benchmarks.workloads.questions import WORKLOADS, Workload, generate, query_text, window_ticks

# Gaps and islands: only what is no B is kept, with its neighbours' times; a match is an A whose successor there is a C.
_ISLANDS = """
WITH neighbours AS (
  SELECT symbol, ts, type, price, row_number() OVER stream AS n, lead(ts) OVER stream AS next_ts
  FROM events WINDOW stream AS (PARTITION BY symbol ORDER BY ts)),
successors AS (
  SELECT ts AS c, type, price, n, lag(type) OVER stream AS a_type, lag(ts) OVER stream AS a, lag(price) OVER stream AS a_price,
    lag(next_ts) OVER stream AS b_first, lag(n) OVER stream AS a_n
  FROM neighbours WHERE type <> 'B' WINDOW stream AS (PARTITION BY symbol ORDER BY n))
SELECT a, b_first, n - a_n - 1 AS b_count, c FROM successors
WHERE type = 'C' AND a_type = 'A' AND n - a_n > 1 AND a_price < price AND c - a <= {window}
"""

# The first C, P and D from each start on, and the first B after each of them: the latest of the three B ends the match.
_NEXT_OCCURRENCES = """
WITH relevant AS (
  SELECT patient, ts, type, count(CASE WHEN type = 'P' THEN 1 END) OVER so_far AS p_number,
    min(CASE WHEN type = 'B' THEN ts END) OVER following AS b
  FROM events WHERE type IN ('C', 'P', 'D', 'B')
  WINDOW so_far AS (PARTITION BY patient ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
    following AS (PARTITION BY patient ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)),
firsts AS (
  SELECT patient, ts, type, p_number,
    min(CASE WHEN type = 'C' THEN ts END) OVER following AS c, min(CASE WHEN type = 'C' THEN b END) OVER following AS c_b,
    min(CASE WHEN type = 'P' THEN ts END) OVER following AS p, min(CASE WHEN type = 'P' THEN b END) OVER following AS p_b,
    min(CASE WHEN type = 'D' THEN ts END) OVER following AS d, min(CASE WHEN type = 'D' THEN b END) OVER following AS d_b
  FROM relevant WINDOW following AS (PARTITION BY patient ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)),
spans AS (
  SELECT *, greatest(c_b, p_b, d_b) AS b FROM firsts
  WHERE type <> 'B' AND c_b IS NOT NULL AND p_b IS NOT NULL AND d_b IS NOT NULL AND greatest(c_b, p_b, d_b) - ts <= {window})
SELECT c, p AS p_first, e.p_number - s.p_number + CASE WHEN s.type = 'P' THEN 1 ELSE 0 END AS p_count, d, s.b AS b
FROM spans s JOIN relevant e ON e.patient = s.patient AND e.ts = s.b
"""

# Self-joins over slices of time as long as the window, so that they are hash joins: an event looks into its slice and the one before.
_SLICED_JOINS = """
WITH halts AS (
  SELECT ts, price, ts - ts % {window} - step AS slice FROM events CROSS JOIN (VALUES (0), ({window})) AS steps(step)
  WHERE type = 'Halt'),
trades AS (SELECT ts, price, ts - ts % {window} AS slice FROM events WHERE type = 'Trade'),
quotes AS (SELECT ts, price, ts - ts % {window} AS slice FROM events WHERE type = 'Quote'),
ends AS (
  SELECT trades.ts AS t, trades.price AS price, halts.ts AS h FROM halts JOIN trades ON trades.slice = halts.slice
  WHERE trades.ts < halts.ts AND halts.ts - trades.ts <= {window} AND trades.price < halts.price),
spread AS (SELECT t, price, h, h - h % {window} - step AS slice FROM ends CROSS JOIN (VALUES (0), ({window})) AS steps(step))
SELECT quotes.ts AS q, t, h FROM spread JOIN quotes ON quotes.slice = spread.slice
WHERE quotes.ts < t AND h - quotes.ts <= {window} AND quotes.price < spread.price
"""

_CONTIGUOUS_ROWS = """
SELECT a, b_first, b_count, c FROM events MATCH_RECOGNIZE (
  PARTITION BY {key} ORDER BY {order}
  MEASURES A.ts AS a, FIRST(B.ts) AS b_first, COUNT(B.ts) AS b_count, C.ts AS c
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A B+ C) {within}
  DEFINE A AS A.type = 'A', B AS B.type = 'B', C AS C.type = 'C' AND C.price > A.price AND C.ts - A.ts <= {window})
"""

# Flink has neither PERMUTE nor alternatives: every relevant event is taken, up to the first B that has a C, a P and a D before it.
# `c`, `p` and `d` are an event's time if it is of that type, else NULL.
_ALL_THREE = "(S.type = 'C' OR COUNT(X.c) > 0) AND (S.type = 'P' OR COUNT(X.p) > 0) AND (S.type = 'D' OR COUNT(X.d) > 0)"
_SET_DEFINITIONS = f"""S AS S.type IN ('C', 'P', 'D'), X AS NOT (X.type = 'B' AND {_ALL_THREE}),
    B AS B.type = 'B' AND {_ALL_THREE} AND B.ts - S.ts <= {{window}}"""

_SET_ROWS = f"""
SELECT c, p_first, p_count, d, b FROM (
  SELECT *, CASE WHEN type = 'C' THEN ts END AS c, CASE WHEN type = 'P' THEN ts END AS p, CASE WHEN type = 'D' THEN ts END AS d
  FROM events WHERE type IN ('C', 'P', 'D', 'B')) MATCH_RECOGNIZE (
  PARTITION BY {{key}} ORDER BY {{order}}
  MEASURES COALESCE(S.c, MIN(X.c)) AS c, COALESCE(S.p, MIN(X.p)) AS p_first, COALESCE(S.d, MIN(X.d)) AS d,
    COUNT(S.p) + COUNT(X.p) AS p_count, B.ts AS b
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (S X+ B) {{within}}
  DEFINE {_SET_DEFINITIONS})
"""

# pandas-match-recognize reads a bare table, here of the relevant events with the columns c, p and d, and has SUBSET.
_SET_ROWS_OF_RELEVANT = f"""
SELECT c, p_first, p_count, d, b FROM relevant MATCH_RECOGNIZE (
  PARTITION BY patient ORDER BY ts
  MEASURES MIN(U.c) AS c, MIN(U.p) AS p_first, MIN(U.d) AS d, COUNT(U.p) AS p_count, B.ts AS b
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (S X+ B) SUBSET U = (S, X)
  DEFINE {_SET_DEFINITIONS})
"""


class RivalQuestion(Protocol):
    """What is asked of the library and of rivals over the same events."""

    @property
    def name(self) -> str: ...

    @property
    def workload(self) -> Workload: ...

    @property
    def window(self) -> int: ...

    @property
    def query(self) -> str: ...

    def events(self, count: int) -> pa.Table:
        """Return the events in the form in which the library gets them."""

    def stored(self, events: pa.Table) -> pa.Table:
        """Return these events in the form in which rivals get them."""

    def answer(self, events: pa.Table, threads: int) -> pa.Table:
        """Return the library's matches as row numbers."""

    def comparable(self, events: pa.Table, rows: pa.Table) -> pa.Table:
        """Return the library's answer in the columns that matches are compared by."""


@dataclass(frozen=True, slots=True)
class Question:
    """A workload's question in SQL and, if SQL's row patterns can ask it, as one of Flink's and of pandas-match-recognize's.

    `parts` are the columns that a match is compared by, with the variable of the library's answer that each comes from, and whether
    the time of its event, the time of the first event of its binding, or the binding's length is meant.
    """

    workload: Workload
    sql: str
    flink: str | None
    pandas: str | None
    parts: dict[str, tuple[str, str]]

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def window(self) -> int:
        return window_ticks(self.workload, self.workload.streams)

    @property
    def query(self) -> str:
        return query_text(self.workload, self.workload.streams)

    def hand_written(self) -> str:
        return self.sql.format(window=self.window)

    def in_flink(self) -> str:
        """Return the row pattern for Flink, whose WITHIN, one tick longer than the window, lets it forget old partial matches."""
        within = f"WITHIN INTERVAL '{(self.window + 1) / 1000:.3f}' SECOND(9, 3)"
        return _stated(self.flink).format(key="streamKey", order="event_time", within=within, window=self.window)

    def in_pandas(self) -> str:
        return _stated(self.pandas).format(key=self.workload.key, order="ts", within="", window=self.window)

    def events(self, count: int) -> pa.Table:
        """Return the events with types as codes of 8 bits, which an ENUM of DuckDB's has, too."""
        events = generate(self.workload, count)
        narrow = events["type"].cast(pa.dictionary(pa.int8(), pa.string()))
        return events.set_column(events.schema.get_field_index("type"), "type", narrow)

    def stored(self, events: pa.Table) -> pa.Table:
        """Return the events as they are."""
        return events

    def answer(self, events: pa.Table, threads: int) -> pa.Table:
        """Return the library's matches as row numbers."""
        return gpu_cep.match(events, self.query, partition_by=self.workload.key, output="indices", threads=threads)

    def comparable(self, events: pa.Table, rows: pa.Table) -> pa.Table:
        """Return the library's answer in the columns that matches are compared by."""
        times = events["ts"].combine_chunks()
        return pa.table({column: _part(rows[name].combine_chunks(), part, times) for column, (name, part) in self.parts.items()})


def _stated(row_pattern: str | None) -> str:
    if row_pattern is None:
        raise ValueError("no row pattern asks this question")
    return row_pattern


_TICKS = {"A": 0.1, "B": 0.5, "C": 0.2, "Q": 0.2}
_RISE = "PATTERN SEQ(A a, B b+, C c) WHERE strict_contiguity { a.price < c.price }"

QUESTIONS = {
    question.name: question
    for question in (
        Question(
            Workload("contiguous", _RISE, _TICKS, "price", "symbol", 1_000, window=20, text_keys=True),
            _ISLANDS,
            _CONTIGUOUS_ROWS,
            _CONTIGUOUS_ROWS,
            {"a": ("a", "time"), "b_first": ("b", "first"), "b_count": ("b", "count"), "c": ("c", "time")},
        ),
        Question(
            replace(WORKLOADS["medical"], name="set", streams=1_000),
            _NEXT_OCCURRENCES,
            _SET_ROWS,
            _SET_ROWS_OF_RELEVANT,
            {"c": ("c", "time"), "p_first": ("p", "first"), "p_count": ("p", "count"), "d": ("d", "time"), "b": ("b", "time")},
        ),
        Question(WORKLOADS["selective"], _SLICED_JOINS, None, None, {name: (name, "time") for name in "qth"}),
    )
}


def _part(rows: pa.Array, part: str, times: pa.Array) -> pa.Array:
    if part == "count":
        return pc.list_value_length(rows).cast(pa.int64())
    return times.take(pc.list_element(rows, 0) if part == "first" else rows)
