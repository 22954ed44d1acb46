"""One stream that Spark cuts into slices of time: what a second core gains, beside Spark's bare shuffle; and what a hot key costs.

``python -m benchmarks.spark.slices [--events N] [--repeats N] [--folder FOLDER | --no-record]`` checks that Spark counts the matches that a
local run counts, prints the page and writes it with its record to ``results/``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep
from benchmarks.record import pages
from benchmarks.record.arguments import measuring
from benchmarks.record.machine import ON_SPARK, environment, name_on, versions
from benchmarks.record.memory import peak_bytes
from benchmarks.spark.floor import handed_over, total
from benchmarks.spark.sessions import BATCH_ROWS, SHUFFLE_PARTITIONS, spark_session
from benchmarks.spark.times import descendants

EVENTS, REPEATS, KEYS, HOT = 20_000_000, 3, 100, 0.9
PARTITIONS, WINDOW = 8, 1_000
# The settings of sessions, also for the model of a cluster.
SETTINGS = {SHUFFLE_PARTITIONS: str(PARTITIONS), "spark.sql.files.maxPartitionBytes": "16m", BATCH_ROWS: "1000000"}
QUERY = f"PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN {WINDOW}"
BARE = "one stream, bare shuffle + mapInArrow"
KEYLESS, EVEN, HOT_KEY = "one stream, gpu_match", "even keys, gpu_match", "a hot key, gpu_match"
WHOLE = ", slices=None"
WAYS = {
    1: (BARE, KEYLESS),
    2: (BARE, KEYLESS, EVEN, HOT_KEY, EVEN + WHOLE, HOT_KEY + WHOLE, KEYLESS + WHOLE),
}
KEY_OF = {KEYLESS: None, EVEN: "even", HOT_KEY: "hot"}


@dataclass(frozen=True, slots=True)
class SliceTiming:
    """The seconds of one way on so many cores, what it counted, and the most memory that a Python worker took."""

    way: str
    cores: int
    seconds: float
    answer: int
    worker_bytes: int


def events(number: int) -> pa.Table:
    """Return events in the order of time, half of them of a type that is asked for, with a key of even values and a skewed one."""
    random = np.random.default_rng(7)
    even = random.integers(0, KEYS, number)
    return pa.table(
        {
            "ts": np.arange(number),
            "type": pa.array(np.array(list("ABCDEF"))[random.integers(0, 6, number)]),
            "x": random.random(number),
            "even": even,
            "hot": np.where(random.random(number) < HOT, 0, even),
        }
    )


def plain_handover(frame: DataFrame) -> DataFrame:
    """Return what Spark takes to filter and shuffle the same columns by time, and to hand them to Python."""
    relevant = frame.where("type IN ('A', 'B', 'C')").select("ts", "type", "x")
    return handed_over(relevant.repartition(F.floor(F.col("ts") / (16 * WINDOW))))


def counts_of(frame: DataFrame, key: str | None = None, slices: str | None = "auto") -> int:
    return total(gpu_cep.gpu_match(frame, QUERY, partition_by=key, output="count", slices=slices))


def answer_of(way: str, frame: DataFrame) -> int:
    """Return what one way counts."""
    if way == BARE:
        return total(plain_handover(frame))
    return counts_of(frame, KEY_OF[way.removesuffix(WHOLE)], None if way.endswith(WHOLE) else "auto")


def measured(path: Path, repeats: int) -> list[SliceTiming]:
    """Return the best time of each way; they take turns, so that other work of the machine slows all of them alike."""
    best: dict[tuple[str, int], SliceTiming] = {}
    for _ in range(repeats):
        for cores, ways in WAYS.items():
            with spark_session(cores, "4g", SETTINGS) as spark:
                frame = spark.read.parquet(str(path))
                counts_of(frame.where(f"ts < {2 * WINDOW}"))  # workers start and load the kernels
                for way in ways:
                    timing = timed(way, cores, frame)
                    print(timing, file=sys.stderr)
                    best[way, cores] = min(timing, best.get((way, cores), timing), key=lambda each: each.seconds)
    return list(best.values())


def timed(way: str, cores: int, frame: DataFrame) -> SliceTiming:
    """Return what one run of one way takes."""
    for worker in workers():
        Path(f"/proc/{worker}/clear_refs").write_text("5")  # forgets the peak so far
    start = time.perf_counter()
    answer = answer_of(way, frame)
    seconds = time.perf_counter() - start
    return SliceTiming(way, cores, seconds, answer, max(map(peak_bytes, workers()), default=0))


def workers() -> list[int]:
    """Return the Python processes below this one."""
    return [process for process in descendants(os.getpid()) if "python" in Path(f"/proc/{process}/comm").read_text()]


def check(timings: list[SliceTiming], table: pa.Table) -> None:
    """Raise AssertionError unless each way counts what a local run counts."""
    counted = {way: gpu_cep.match(table, QUERY, partition_by=key, output="count")["count"] for way, key in KEY_OF.items()}
    for timing in timings:
        expected = None if timing.way == BARE else sum(counted[timing.way.removesuffix(WHOLE)].to_pylist())
        assert expected in (None, timing.answer), f"{timing.way} counts {timing.answer}, not {expected}"


def ratios(timings: list[SliceTiming]) -> dict[str, float]:
    """Return the ratios that slices must keep, at least 0.9 and at most 1.5, and what they take where there are keys enough."""
    seconds = {(timing.way, timing.cores): timing.seconds for timing in timings}
    gains = {way: seconds[way, 1] / seconds[way, 2] for way in (KEYLESS, BARE)}
    return {
        "gain of a second core, gpu_match": gains[KEYLESS],
        "gain of a second core, bare shuffle": gains[BARE],
        "the one over the other": gains[KEYLESS] / gains[BARE],
        "a hot key over even keys": seconds[HOT_KEY, 2] / seconds[EVEN, 2],
        "even keys, in slices over whole": seconds[EVEN, 2] / seconds[EVEN + WHOLE, 2],
    }


def markdown(timings: list[SliceTiming], found: dict[str, float], where: dict[str, str], number: int, repeats: int) -> str:
    rows = [["way", "cores", "seconds", "M events/s", "peak of one worker"]]
    for each in timings:
        rate, peak = number / each.seconds / 1e6, f"{each.worker_bytes / 2**20:,.0f} MiB"
        rows.append([each.way, str(each.cores), f"{each.seconds:.2f}", f"{rate:.2f}", peak])
    sections = [
        f"# Slices of time under Spark, on {where['machine']}, {where['day']}",
        f"Commit {where['commit']}; {versions(where, ON_SPARK)}; "
        f"load average {where['load']} before the first run, above 0 where others were at work. "
        f"{number:,} events in Parquet, half of them asked for; {KEYS:,} keys, of which the hot one has {HOT:.0%} of the rows; "
        f"{PARTITIONS} shuffle partitions; the best of {repeats} warm runs, turn by turn. "
        f"`{QUERY}`, counted; counts are those of a local run. Written by `python -m benchmarks.spark.slices`.",
        pages.table([["ratio", "is"], *([name, f"{value:.2f}"] for name, value in found.items())], figures=1),
        pages.table(rows, figures=4),
    ]
    return "\n\n".join(sections) + "\n"


def main(argv: list[str]) -> int:
    options = measuring("Measure streams in slices of time under Spark.", EVENTS, REPEATS).parse_args(argv)
    where = environment(ON_SPARK)
    with tempfile.TemporaryDirectory() as folder:
        path, table = Path(folder) / "events.parquet", events(options.events)
        pq.write_table(table, path)
        timings = measured(path, options.repeats)
    check(timings, table)
    found = ratios(timings)
    page = markdown(timings, found, where, options.events, options.repeats)
    record = {"environment": where, "events": options.events, "ratios": found, "timings": [asdict(each) for each in timings]}
    pages.publish(page, options.folder, name_on(where, "slices"), record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
