"""The medical question on Spark: gpu_match, window functions, a loop in Python, and Spark's plain hand-over to Python.

All contestants count the matches in (or, for the plain hand-over, the relevant rows of) the same Parquet file in one local
session with two threads, warm. The loop gets fewer events, and gpu_match the same few once more beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import gpu_cep
from benchmarks.baselines.floors import best_seconds
from benchmarks.baselines.measure import Case, Disagreement, events_of, match_count, of_usual_length, run_match
from benchmarks.spark.floor import handed_over, total
from benchmarks.spark.loop import count_by_loop
from benchmarks.spark.sessions import BATCH_ROWS, SHUFFLE_PARTITIONS, spark_session
from benchmarks.workloads.questions import Workload, query_text, window_ticks

PARTITIONS = 4
OURS, PLAIN_HANDOVER = "gpu_match", "repartition + mapInArrow(count)"

# Runs from the end of each stream backwards, so that every frame is a running one: `b` is the next B, and the smallest
# `b` over the following C (P, D) events belongs to the next of them. A start matches if all three lie in the window.
RUNNING_FRAMES = """
WITH relevant AS (
  SELECT patient, ts, CASE type WHEN 'C' THEN 1 WHEN 'P' THEN 2 WHEN 'D' THEN 3 ELSE 4 END AS kind
  FROM events WHERE type IN ('C', 'P', 'D', 'B')),
closed AS (
  SELECT patient, ts, kind, min(IF(kind = 4, ts, NULL)) OVER following AS b FROM relevant
  WINDOW following AS (PARTITION BY patient ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
ends AS (
  SELECT ts, kind,
    min(IF(kind = 1, b, NULL)) OVER following AS c,
    min(IF(kind = 2, b, NULL)) OVER following AS p,
    min(IF(kind = 3, b, NULL)) OVER following AS d
  FROM closed
  WINDOW following AS (PARTITION BY patient ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
SELECT count_if(kind <> 4 AND c - ts <= {window} AND p - ts <= {window} AND d - ts <= {window}) AS matches FROM ends
"""

# A start matches if the last B of its window is later than the first C, P and D of it.
SLIDING_FRAMES = """
WITH relevant AS (
  SELECT patient, ts, CASE type WHEN 'C' THEN 1 WHEN 'P' THEN 2 WHEN 'D' THEN 3 ELSE 4 END AS kind
  FROM events WHERE type IN ('C', 'P', 'D', 'B')),
firsts AS (
  SELECT kind,
    min(IF(kind = 1, ts, NULL)) OVER span AS c,
    min(IF(kind = 2, ts, NULL)) OVER span AS p,
    min(IF(kind = 3, ts, NULL)) OVER span AS d,
    max(IF(kind = 4, ts, NULL)) OVER span AS b
  FROM relevant
  WINDOW span AS (PARTITION BY patient ORDER BY ts RANGE BETWEEN CURRENT ROW AND {window} FOLLOWING))
SELECT count_if(kind <> 4 AND c < b AND p < b AND d < b) AS matches FROM firsts
"""

Contestants = Callable[[SparkSession, Case, DataFrame], dict[str, Callable[[], int]]]


@dataclass(frozen=True, slots=True)
class SparkTiming:
    """The best warm wall time of one contestant; `answer` is what it counted."""

    workload: str
    contestant: str
    events: int
    seconds: float
    answer: int

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds


def measure_spark(workload: Workload, events: int, loop_events: int, folder: Path, repeats: int) -> list[SparkTiming]:
    """Return all contestants' times on `workload` (medical, no conditions on pairs), written to `folder` as Parquet; counts are checked."""
    with spark_session(2, "6g", {SHUFFLE_PARTITIONS: str(PARTITIONS), BATCH_ROWS: "1000000"}) as session:
        timings = _measured(session, workload, events, _rivals, folder, repeats)
        return timings + _measured(session, workload, loop_events, _loops, folder, repeats)


def _measured(
    session: SparkSession, workload: Workload, events: int, contestants: Contestants, folder: Path, repeats: int
) -> list[SparkTiming]:
    """Return some contestants' times on so many events, in streams as long as the workload's own."""
    case = of_usual_length(workload, events)
    path = folder / f"{events}.parquet"
    table = events_of(case)
    pq.write_table(table, path)
    expected = match_count(run_match(case, table, "count", 1), "count")
    counts = contestants(session, case, session.read.parquet(str(path)))
    timings = [_timing(case, name, count, repeats) for name, count in counts.items()]
    wrong = [timing for timing in timings if timing.contestant != PLAIN_HANDOVER and timing.answer != expected]
    if wrong:
        raise Disagreement(f"expected {expected} matches: {wrong}")
    return timings


def _rivals(session: SparkSession, case: Case, events: DataFrame) -> dict[str, Callable[[], int]]:
    events.createOrReplaceTempView("events")
    window = window_ticks(case.workload, case.streams)
    return {
        OURS: lambda: _ours(case, events),
        "Spark SQL, running frames": lambda: total(session.sql(RUNNING_FRAMES.format(window=window))),
        "Spark SQL, sliding frames": lambda: total(session.sql(SLIDING_FRAMES.format(window=window))),
        PLAIN_HANDOVER: lambda: total(_plain_handover(events)),
    }


def _loops(session: SparkSession, case: Case, events: DataFrame) -> dict[str, Callable[[], int]]:
    window = window_ticks(case.workload, case.streams)
    return {OURS: lambda: _ours(case, events), "applyInPandas, a loop": lambda: total(count_by_loop(events, window))}


def _ours(case: Case, events: DataFrame) -> int:
    query = query_text(case.workload, case.streams)
    return total(gpu_cep.gpu_match(events, query, partition_by=case.workload.key, output="count"))


def _plain_handover(events: DataFrame) -> DataFrame:
    relevant = events.where("type IN ('C', 'P', 'D', 'B')").select("patient", "ts", "type")
    return handed_over(relevant.repartition(PARTITIONS, "patient"))


def _timing(case: Case, name: str, count: Callable[[], int], repeats: int) -> SparkTiming:
    answer = count()
    return SparkTiming(case.workload.name, name, case.events, best_seconds(count, repeats), answer)
