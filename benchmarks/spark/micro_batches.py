"""Micro-batches: what one takes from its trigger to its commit, for several questions, and where that time goes.

``python -m benchmarks.spark.micro_batches [--rows N …] [--batches N] [--rules N] [--few N] [--record]`` follows one stream for each
number of rows in a micro-batch. The first way sends the same rows through the shuffle and into the state, and matches nothing. The
others are one pattern, the clause MATCH_RECOGNIZE, and as many patterns as `--rules` says: by one call of gpu_match_all, and, over
`--few` micro-batches, by a call of gpu_match for each. It prints the median of those behind the first ones, which load code; with
`--record` it writes the page with its record to ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import gpu_cep
from benchmarks.record import machine, pages
from benchmarks.record.folders import RESULTS
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.streaming import QUERY, SETTINGS, SPAN, WINDOW, bare_road, source, written

ROWS, BATCHES, RULES, FEW = (1_000, 100_000), 24, 10, 9
# The first micro-batches load code, and their state does not hold a window yet.
LOADING = 4
# Events that a key has in a micro-batch.
OF_KEY = 10
CLAUSE = f"""MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY ts
    MEASURES A.x AS x, C.ts AS at
    PATTERN (A B C) WITHIN INTERVAL '{WINDOW}' SECOND
    DEFINE A AS type = 'A', B AS type = 'B' AND x > A.x, C AS type = 'C' AND x > B.x
)"""
# The steps of a micro-batch, as Spark names them; it takes some more.
STEPS = ("addBatch", "queryPlanning", "walCommit", "commitOffsets")
BARE, ONE, CLAUSED = "shuffled and kept, nothing matched", "one pattern", "MATCH_RECOGNIZE"

Way = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Latency:
    """What micro-batches of so many rows take, in milliseconds: the median of all, and of each step; and of how many micro-batches."""

    way: str
    rows: int
    batches: int
    whole: float
    steps: dict[str, float]


def rules(number: int) -> list[str]:
    """Return so many patterns, which differ in how far x rises."""
    return [QUERY.replace("b.x < c.x", f"b.x + {place / (2 * number)} < c.x") for place in range(number)]


def all_of(patterns: Sequence[str], frame: DataFrame) -> DataFrame:
    """Return the matches of all patterns, found by one stateful query."""
    matches: DataFrame = gpu_cep.gpu_match_all(frame, {f"rule {number}": pattern for number, pattern in enumerate(patterns)})
    return matches


def each_of(patterns: Sequence[str], frame: DataFrame) -> DataFrame:
    """Return the matches of all patterns, each found by a call of its own."""
    return reduce(DataFrame.unionAll, [gpu_cep.gpu_match(frame, pattern) for pattern in patterns])


def measured(session: SparkSession, place: Path, rows: int, batches: int, number: int, few: int) -> Iterator[Latency]:
    """Yield what micro-batches of so many rows take in each way; a stream of a `few` of them is followed by a number of patterns."""
    ways: dict[str, Way] = {BARE: bare_road, ONE: partial(each_of, [QUERY]), CLAUSED: partial(each_of, [CLAUSE])}
    ways |= {f"{number} patterns, gpu_match_all": partial(all_of, rules(number))}
    apart = f"{number} patterns, gpu_match each"
    streams = dict.fromkeys(ways, batches) | {apart: few}
    ways |= {apart: partial(each_of, rules(number))}
    for way, size in streams.items():
        folder = place / f"rows{rows}batches{size}"
        if not folder.exists():
            written(folder, rows, size, max(1, rows // OF_KEY))
        yield latency(way, rows, followed(ways[way](source(session, folder))))


def followed(found: DataFrame) -> list[dict[str, Any]]:
    """Return Spark's progress of each micro-batch with rows; the results go nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        query = found.writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        return [dict(each) for each in query.recentProgress if each["numInputRows"]]


def latency(way: str, rows: int, progress: Sequence[dict[str, Any]]) -> Latency:
    """Return the medians of the micro-batches behind those that load code."""
    taken = [each["durationMs"] for each in progress[LOADING:]]
    steps = {step: median(each[step] for each in taken) for step in STEPS}
    return Latency(way, rows, len(taken), median(each["triggerExecution"] for each in taken), steps)


def table(found: Sequence[Latency]) -> str:
    """Return a line for each number of rows and way, beside the way that matches nothing."""
    bare = {each.rows: each.whole for each in found if each.way == BARE}
    lines = [["rows", "way", "micro-batches", "milliseconds of one", "as many times as shuffled and kept", *STEPS]]
    for each in found:
        times = [f"{each.whole:,.0f}", f"{each.whole / bare[each.rows]:.2f}", *(f"{each.steps[step]:,.0f}" for step in STEPS)]
        lines.append([f"{each.rows:,}", each.way, f"{each.batches}", *times])
    return pages.table(lines, figures=3 + len(STEPS))


def markdown(found: Sequence[Latency], where: dict[str, str]) -> str:
    """Return the page of a record."""
    head = [
        f"# Micro-batches, on {where['machine']}, {where['day']}",
        f"Commit {where['commit']}; load average {where['load']} before the run. local[2], two partitions of the state; {SPAN} seconds of "
        f"events in each micro-batch, {OF_KEY} of a key. Medians of the micro-batches behind the first {LOADING}, in milliseconds. "
        "Written by `python -m benchmarks.spark.micro_batches`.",
    ]
    return "\n\n".join([*head, table(found), f"`{QUERY}`", f"```text\n{CLAUSE}\n```"]) + "\n"


def main(argv: Sequence[str]) -> int:
    """Print what micro-batches take."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.micro_batches", description="Measure micro-batches.")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="of a micro-batch")
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"more than the {LOADING} that load code")
    parser.add_argument("--rules", type=int, default=RULES, help="patterns of the last two ways")
    parser.add_argument("--few", type=int, default=FEW, help="micro-batches of the last way, more than those, too")
    parser.add_argument("--record", action="store_true", help="write the page with its record")
    options = parser.parse_args(argv)
    if min(options.batches, options.few) <= LOADING:
        parser.error(f"--batches and --few are more than {LOADING}")
    where = machine.environment(("gpu-cep", "pyspark", "pyarrow"))
    found: list[Latency] = []
    with tempfile.TemporaryDirectory() as folder, spark_session(2, "3g", SETTINGS) as session:
        for rows in options.rows:
            for each in measured(session, Path(folder), rows, options.batches, options.rules, options.few):
                print(each, file=sys.stderr, flush=True)
                found.append(each)
    name = machine.name_on(where, "micro-batches")
    record = {"environment": where, "query": QUERY, "clause": CLAUSE, "ways": [asdict(each) for each in found]}
    pages.publish(markdown(found, where), RESULTS if options.record else None, name, record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
