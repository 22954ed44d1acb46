"""What a row costs at each step on Spark, and what follows for ten billion events on a cluster, checked against measured runs.

``python -m benchmarks.spark.scale [--events N] [--repeats N] [--folder FOLDER | --no-record]`` prints the page and writes it with its
record to ``results/``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import gpu_cep
from benchmarks.baselines.floors import best_seconds
from benchmarks.baselines.measure import Case, events_of
from benchmarks.record import pages
from benchmarks.record.arguments import measuring
from benchmarks.record.machine import ON_SPARK, environment, name_on, versions
from benchmarks.spark.floor import handed_over, total
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.slices import SETTINGS
from benchmarks.workloads.questions import WORKLOADS, query_text

EVENTS, REPEATS = 10_000_000, 3
NODE_CORES, NODES, TASKS, LARGE = 16, (1, 4, 16, 64), 2_000, 10_000_000_000
COLUMNS = ("patient", "ts", "type")
# A row of the three columns in a shuffle: a word each, and one that says which are NULL.
ROW_BYTES = 8 * (len(COLUMNS) + 1)
PACKAGES = (*ON_SPARK, "numba")


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of one core: of a row that is read, and of one of the `share` that is left, to shuffle, to hand to Python, to match."""

    read: float
    share: float
    shuffle: float
    hand_over: float
    match: float

    def seconds(self, events: int, cores: int) -> float:
        """Return what `cores` take for so many events, all of them busy all the time."""
        row = self.read + self.share * (self.shuffle + self.hand_over + self.match)
        return events * row / cores / 1e9


@dataclass(frozen=True, slots=True)
class Check:
    """A run on so many cores over so many events: measured seconds, and those that the model gives."""

    events: int
    cores: int
    measured: float
    modelled: float


def stretches(frame: DataFrame, query: str) -> dict[str, Callable[[], object]]:
    """Return a run up to each of its steps, each with all before it."""
    relevant = frame.where("type IN ('C', 'P', 'D', 'B')").select(*COLUMNS)
    shuffled = relevant.repartition("patient")
    return {
        "read": lambda: relevant.write.format("noop").mode("overwrite").save(),
        "shuffle": lambda: shuffled.write.format("noop").mode("overwrite").save(),
        "hand over": lambda: total(handed_over(shuffled)),
        "match": lambda: total(gpu_cep.gpu_match(frame, query, partition_by="patient", output="count", slices=None)),
    }


def measured_costs(path: Path, query: str, events: int, repeats: int) -> tuple[Costs, float]:
    """Return the costs of a row on one core, by the differences between runs; and the seconds of the whole run."""
    with spark_session(1, "4g", SETTINGS) as spark:
        frame = spark.read.parquet(str(path))
        left = frame.where("type IN ('C', 'P', 'D', 'B')").count()
        seconds = {name: _warm(run, repeats) for name, run in stretches(frame, query).items()}
    read, shuffle, hand_over, match = seconds.values()
    parts = (max(0.0, later - earlier) for earlier, later in ((read, shuffle), (shuffle, hand_over), (hand_over, match)))
    return Costs(read * 1e9 / events, left / events, *(part * 1e9 / left for part in parts)), match


def _warm(run: Callable[[], object], repeats: int) -> float:
    run()
    return best_seconds(run, repeats)


def measured_run(paths: list[Path], query: str, cores: int, repeats: int) -> tuple[float, int]:
    """Return the best warm seconds of the whole run over some files, and its answer."""
    with spark_session(cores, "4g", SETTINGS) as spark:
        frame = spark.read.parquet(*map(str, paths))
        count = partial(stretches(frame, query)["match"])
        answer = count()
        return best_seconds(count, repeats), int(str(answer))


def markdown(costs: Costs, checks: list[Check], where: dict[str, str], query: str) -> str:
    stretch_rows = [
        ["stretch", "ns per row and core", "M rows/s per core"],
        *([name, f"{cost:.0f}", f"{1e3 / cost:.2f}"] for name, cost in _stretches(costs) if cost),
    ]
    check_rows = [["events", "cores", "measured", "by the model", "measured over model"]]
    for check in checks:
        ratio = f"{check.measured / check.modelled:.2f}"
        check_rows.append([f"{check.events:,}", str(check.cores), f"{check.measured:.2f} s", f"{check.modelled:.2f} s", ratio])
    moved = LARGE * costs.share * ROW_BYTES
    large_rows = [["nodes", "cores", "time", "shuffled by each node", f"events of a task, of {TASKS:,}"]]
    for nodes in NODES:
        cores, events = nodes * NODE_CORES, LARGE * costs.share / TASKS
        time = f"{costs.seconds(LARGE, cores):,.0f} s"
        large_rows.append([str(nodes), str(cores), time, f"{moved / nodes / 1e9:,.1f} GB", f"{events:,.0f}"])
    sections = [
        f"# Ten billion events on a cluster, from what one core of {where['machine']} does, {where['day']}",
        f"Commit {where['commit']}; {versions(where, PACKAGES)}; "
        f"load average {where['load']} before the first run, above 0 where others were at work. "
        f"`{query}`, counted, from Parquet; {costs.share:.0%} of the rows pass Spark's filter. "
        "Written by `python -m benchmarks.spark.scale`.",
        "## What a row costs\n\nBy the differences between runs that end after each step, on one core. `read` is of all rows, the "
        "others of those that pass the filter. A stretch that is not shown costs nothing that can be seen beside the others: "
        "`gpu_match` sends event types as a byte each, where the plain hand-over sends text, and saves what it takes to match.",
        pages.table(stretch_rows, figures=2),
        "## The model\n\n`time = events × (read + share × (shuffle + hand over + match)) / cores`, all cores busy, no network: what a "
        f"network adds is its time for {moved / 1e9:,.0f} GB ({ROW_BYTES} bytes for a row of {', '.join(COLUMNS)}, before Spark compresses "
        "it). Checked against runs over one, two and four files of the events:",
        pages.table(check_rows, figures=5),
        f"## {LARGE:,} events\n\nOn nodes of {NODE_CORES} such cores. A worker holds the events of its task, or what `worker_memory` "
        "allows (docs/cluster.md). These figures are computed, not measured. With GPUs: not measured; of the stretches above a GPU takes "
        "work from the last alone.",
        pages.table(large_rows, figures=5),
    ]
    return "\n\n".join(sections) + "\n"


def _stretches(costs: Costs) -> list[tuple[str, float]]:
    return [("read", costs.read), ("shuffle", costs.shuffle), ("hand over", costs.hand_over), ("match", costs.match)]


def main(argv: list[str]) -> int:
    options = measuring("Measure what rows cost on Spark, and compute what large input takes.", EVENTS, REPEATS).parse_args(argv)
    workload = WORKLOADS["medical"]
    case = Case(workload, options.events, workload.streams)
    query = query_text(workload, case.streams)
    where = environment(PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        table = events_of(case)
        paths = [Path(folder) / f"events{number}.parquet" for number in range(4)]
        for number, path in enumerate(paths):
            # patients of their own in each file
            shifted = pa.compute.add(table["patient"], number * workload.streams)
            pq.write_table(table.set_column(table.schema.get_field_index("patient"), "patient", shifted), path)
        costs, _ = measured_costs(paths[0], query, options.events, options.repeats)
        checks, counted = [], []
        for files, cores in ((1, 1), (1, 2), (2, 2), (4, 2)):
            seconds, answer = measured_run(paths[:files], query, cores, options.repeats)
            checks.append(Check(files * options.events, cores, seconds, costs.seconds(files * options.events, cores)))
            counted.append((files, answer))
    expected = sum(gpu_cep.match(table, query, partition_by="patient", output="count")["count"].to_pylist())
    wrong = [(files, answer) for files, answer in counted if answer != files * expected]
    if wrong:
        raise ValueError(f"expected {expected} matches in each file: {wrong}")
    page = markdown(costs, checks, where, query)
    record = {"environment": where, "costs": asdict(costs), "checks": [asdict(check) for check in checks]}
    pages.publish(page, options.folder, name_on(where, "scale"), record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
