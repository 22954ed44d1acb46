"""Latencies of micro-batches: medians behind those that load code, and ratios to the way that matches nothing."""

from __future__ import annotations

import pyarrow as pa

import gpu_cep as cep
from benchmarks.spark import micro_batches
from benchmarks.spark.streaming import events


def test_latencies_are_medians_behind_those_that_load_code() -> None:
    times = [9_000] * micro_batches.LOADING + [30, 10, 20]
    progress = [{"durationMs": {"triggerExecution": time, **dict.fromkeys(micro_batches.STEPS, time // 10)}} for time in times]
    found = micro_batches.latency(micro_batches.ONE, 1_000, progress)
    assert (found.batches, found.whole, found.steps["addBatch"]) == (3, 20, 2)


def test_ratios_are_to_the_way_that_matches_nothing() -> None:
    steps = dict.fromkeys(micro_batches.STEPS, 1.0)
    found = [micro_batches.Latency(way, 10, 3, whole, steps) for way, whole in ((micro_batches.BARE, 40.0), (micro_batches.ONE, 50.0))]
    assert micro_batches.table(found).splitlines()[-1].startswith("| 10 | one pattern | 3 | 50 | 1.25 |")


def test_the_questions_find_matches_in_the_events() -> None:
    table = pa.concat_tables([events(2_000, 20, number) for number in range(3)])
    counts = [cep.match(table, text).num_rows for text in (*micro_batches.rules(3), micro_batches.CLAUSE)]
    assert counts[0] > counts[1] > counts[2] > 0
    assert counts[3] > 0
