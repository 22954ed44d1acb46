"""What a Python worker of Spark takes of the memory, by what it is allowed and by the events of its partition.

``python -m benchmarks.spark.worker_memory`` prints its page and writes it to
results/ with its record. Each figure is of a process that does what a worker
does, without a JVM beside it: it takes batches as Spark sends them, made as
they are asked for, and gives batches back.
``python -m benchmarks.spark.worker_memory EVENTS BYTES OUTPUT`` is that process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from benchmarks.record import pages
from benchmarks.record.folders import RESULTS, ROOT
from benchmarks.record.machine import described, environment, name_on
from benchmarks.record.memory import peak_bytes
from gpu_cep.engine.answers import answer_schema
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.schemas import batch_schema, spark_schema
from gpu_cep_spark.tasks.worker import Work, match_partition

QUERY = "PARTITION BY user PATTERN SEQ(A a, B b+, C c) WHERE b.x > a.x AND c.x < a.x WITHIN 500000"
STREAMS, BATCH = 5_000, 10_000
MIB = 1 << 20
# More than any partition here needs: nothing waits on disk.
UNBOUNDED = 1 << 42
PARTITION = 5_000_000
ALLOWED = (UNBOUNDED, 1_024 * MIB, 512 * MIB, 256 * MIB, 128 * MIB)
PARTITIONS = (1_250_000, 2_500_000, 5_000_000, 10_000_000)
OUTPUTS = ("count", "matches")


@dataclass(frozen=True, slots=True)
class Use:
    """A worker's peak of resident bytes beyond what it had when it began, its seconds, and the bytes of its events and of its result."""

    events: int
    allowed: int
    output: str
    input_bytes: int
    output_bytes: int
    base: int
    peak: int
    seconds: float

    @property
    def taken(self) -> int:
        return self.peak - self.base


def batches(events: int) -> Iterator[pa.RecordBatch]:
    """Yield events of `STREAMS` users as Spark sends them: in batches, with text as text."""
    random = np.random.default_rng(5)
    kinds, cities = pa.array(["A", "B", "C", "D"]), pa.array([f"the city of number {n}" for n in range(500)])
    for begin in range(0, events, BATCH):
        size = min(BATCH, events - begin)
        columns = {
            "ts": np.arange(begin, begin + size),
            "type": kinds.take(pa.array(random.integers(0, 4, size))),
            "user": random.integers(0, STREAMS, size),
            "x": random.random(size),
            "city": cities.take(pa.array(random.integers(0, 500, size))),
        }
        yield pa.record_batch(columns)


def work(allowed: int, output: str) -> Work:
    """Return what gpu_match would ask of the worker."""
    options = make_options()
    query = NarrowQuery.of(QUERY, next(batches(1)).schema, options, Settings(output=output, engine="cpu"))
    returned = batch_schema(spark_schema(answer_schema(query.plan, query.events)), "UTC")
    return Work(query.plan, QUERY, query.events, {}, query.plan.stream_keys, returned, allowed)


def measured(events: int, allowed: int, output: str) -> Use:
    """Return the figures of this process."""
    asked = work(allowed, output)
    list(match_partition(asked, _read(asked, 1_000)))  # loads the code
    base, begin = peak_bytes(), time.perf_counter()
    sizes: list[int] = []
    found = sum(batch.nbytes for batch in match_partition(asked, _counted(_read(asked, events), sizes)))
    return Use(events, allowed, output, sum(sizes), found, base, peak_bytes(), time.perf_counter() - begin)


def _read(asked: Work, events: int) -> Iterator[pa.RecordBatch]:
    """Return the columns that the query reads."""
    return (batch.select(asked.events.names) for batch in batches(events))


def _counted(source: Iterator[pa.RecordBatch], sizes: list[int]) -> Iterator[pa.RecordBatch]:
    for batch in source:
        sizes.append(batch.nbytes)
        yield batch


def in_a_process(events: int, allowed: int, output: str) -> Use:
    """Return the figures of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.spark.worker_memory", str(events), str(allowed), output]
    return Use(**json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout))


def table(uses: Sequence[Use]) -> str:
    """Return a line for each worker."""
    head = ("output", "events", "their MiB", "allowed, MiB", "taken, MiB", "taken / events", "result, MiB", "s")
    lines = [
        (
            use.output,
            f"{use.events:,}",
            f"{use.input_bytes / MIB:,.0f}",
            "–" if use.allowed == UNBOUNDED else f"{use.allowed / MIB:,.0f}",
            f"{use.taken / MIB:,.0f}",
            f"{use.taken / use.input_bytes:.2f}",
            f"{use.output_bytes / MIB:,.0f}",
            f"{use.seconds:.1f}",
        )
        for use in uses
    ]
    return pages.table([head, *lines], figures=len(head) - 1)


def markdown(by_room: Sequence[Use], by_size: Sequence[Use], where: str) -> str:
    """Return the figures as a page."""
    parts = [
        "# What a Python worker takes of the memory",
        where,
        f"`{QUERY}` over events of {STREAMS:,} users in batches of {BATCH:,}. *Allowed* is `worker_memory=` (a dash: more than is needed), "
        "*taken* the peak of resident memory beyond that of a worker which has loaded its code. What does not fit waits on disk.",
        "## One partition, less and less memory",
        table(by_room),
        "## The same memory, larger and larger partitions",
        table(by_size),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Measure, print the page, write it and its record; or be the process that is measured."""
    if arguments:
        events, allowed, output = arguments
        print(json.dumps(asdict(measured(int(events), int(allowed), output))))
        return
    in_a_process(1_000_000, UNBOUNDED, "matches")  # compiles what is not in numba's cache
    by_room = [in_a_process(PARTITION, allowed, output) for output in OUTPUTS for allowed in ALLOWED]
    by_size = [in_a_process(events, 256 * MIB, "matches") for events in PARTITIONS]
    where = environment()
    page = markdown(by_room, by_size, f"{described(where)}; one run each, on a busy machine.")
    record = {"environment": where, "by_room": [*map(asdict, by_room)], "by_size": [*map(asdict, by_size)]}
    pages.publish(page, RESULTS, name_on(where, "worker-memory"), record)


if __name__ == "__main__":
    main(sys.argv[1:])
