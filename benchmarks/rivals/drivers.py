"""TPStream's Listing 1 on reports of cars: against a C++ loop, DuckDB and the floors, from memory, from Parquet and on Spark.

``python -m benchmarks.rivals.drivers [--events N] [--repeats N] [--no-spark] [--no-duckdb] [--folder FOLDER | --no-record]`` checks that
all find the same matches, prints the page and writes it with its record to ``results/``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpu_cep
from benchmarks.baselines.floors import best_in_turn, best_seconds
from benchmarks.baselines.interval_peer import ANY_DURATIONS, LONGEST, Listing1, aggressive_drivers
from benchmarks.record import machine, pages
from benchmarks.record.arguments import measuring
from benchmarks.rivals.environments import environment
from benchmarks.workloads import drives

WORKER = Path(__file__).parent / "workers" / "on_duckdb.py"
EVENTS, REPEATS, THREADS = 10_000_000, 5, 2
OUTPUTS = ("count", "matches")
COLUMNS = ("ts", "car_id", "speed", "accel")
IDENTITY = ["id", "match_start", "match_end"]
SPARK_REPEATS = 3
PLAIN_HANDOVER = f"Spark's bare shuffle by car and hand-over to Python, from Parquet, local[{THREADS}]"
PACKAGES = (*machine.LIBRARY, "pyspark")


@dataclass(frozen=True, slots=True)
class WayTiming:
    """The least seconds in which one way answered one query."""

    query: str
    way: str
    matches: int
    seconds: float


def queries(reports: pa.Table) -> dict[str, Listing1]:
    """Listing 1 as printed, and with the thresholds of figure 5, with durations and without."""
    figure = drives.percentiles(reports)
    return {"as printed": Listing1(), "percentiles": Listing1(figure), "percentiles, any duration": Listing1(figure, ANY_DURATIONS)}


def sql(query: Listing1) -> str:
    """Return the same by hand: situations of the events at which a flag changes, joined by their endpoints; averages by a second join."""
    bounds = query.thresholds
    flags = {"a": f"accel > {bounds.acceleration}", "b": f"speed > {bounds.speed}", "c": f"accel < {bounds.braking}"}
    marked = ", ".join(f"{flag} AS {name}, lag({flag}, 1, false) OVER w AS was_{name}" for name, flag in flags.items())
    situations = ", ".join(
        f"{name} AS (SELECT * FROM (SELECT car_id, ts, lead(ts) OVER (PARTITION BY car_id ORDER BY ts) AS te, {name} AS holds "
        f"FROM marked WHERE {name} <> was_{name}) WHERE holds AND te - ts BETWEEN {max(low, 1)} AND {min(high, LONGEST)})"
        for name, (low, high) in zip(flags, query.durations, strict=True)
    )
    return f"""
        WITH marked AS (SELECT ts, car_id, {marked} FROM events WINDOW w AS (PARTITION BY car_id ORDER BY ts)), {situations},
        matched AS (
            SELECT b.car_id AS id, b.ts AS b_ts, b.te AS b_te, least(a.ts, b.ts) AS match_start, greatest(b.te, c.te) AS match_end
            FROM b JOIN a ON a.car_id = b.car_id AND a.te >= b.ts AND a.te < b.te
                   JOIN c ON c.car_id = b.car_id AND c.ts > a.te AND c.ts > b.ts AND c.ts <= b.te
            WHERE greatest(b.te, c.te) - least(a.ts, b.ts) <= {query.window}
        )
        SELECT id, match_start, match_end, avg(speed) AS avg_speed
        FROM matched JOIN events ON car_id = id AND ts >= b_ts AND ts < b_te GROUP BY ALL
    """


def ours(events: Any, query: Listing1, threads: int, output: str) -> Callable[[], pa.Table]:
    return partial(gpu_cep.match, events, gpu_cep.parse(query.text), threads=threads, output=output)


def measured(name: str, query: Listing1, reports: pa.Table, path: Path, repeats: int) -> Iterator[WayTiming]:
    """Yield the times of one query by us and by the loop, matches checked; the ways take turns."""
    cars = drives.CARS
    number, rows = aggressive_drivers(reports, cars, query, rows=True)
    assert rows is not None, "rows were asked for"
    found = ours(reports, query, THREADS, "matches")()
    check(found, rows)
    ways: dict[str, Callable[[], object]] = {
        f"gpu_cep, {output}, {threads} threads": ours(reports, query, threads, output) for threads in (THREADS, 1) for output in OUTPUTS
    }
    ways |= {f"C++, {output}, 1 thread": partial(aggressive_drivers, reports, cars, query, rows=output == "matches") for output in OUTPUTS}
    ways["gpu_cep, matches, from Parquet"] = ours(path, query, THREADS, "matches")
    ways["C++, matches, from Parquet that Arrow reads in threads"] = partial(_loop_on_file, path, query)
    for way, seconds in zip(ways, best_in_turn([*ways.values()], repeats), strict=True):
        yield WayTiming(name, way, number, seconds)
    yield WayTiming(name, "derivation", number, _derivation(reports, query, repeats))


def _loop_on_file(path: Path, query: Listing1) -> None:
    """Run the loop over a file, whose columns it wants in one piece each."""
    aggressive_drivers(pq.read_table(path, columns=list(COLUMNS)).combine_chunks(), drives.CARS, query, rows=True)


def check(found: pa.Table, rows: pa.Table) -> None:
    """Raise AssertionError unless both tables hold the same matches; averages may differ in the last digits."""
    one, other = (table.select([*IDENTITY, "avg_speed"]).sort_by([(key, "ascending") for key in IDENTITY]) for table in (found, rows))
    assert one.num_rows == other.num_rows, f"{one.num_rows} matches, the loop has {other.num_rows}"
    assert all(one[key].to_pylist() == other[key].to_pylist() for key in IDENTITY), "the loop finds other matches"
    assert np.allclose(one["avg_speed"].to_numpy(), other["avg_speed"].to_numpy()), "averages differ"


def _derivation(reports: pa.Table, query: Listing1, repeats: int) -> float:
    """Return the least seconds until all situations are there: what comes before they are joined."""
    seconds = []
    for _ in range(repeats):
        profile = gpu_cep.Profile()
        gpu_cep.match(reports, query.text, threads=THREADS, output="count", profile=profile)
        seconds.append(sum(profile.seconds.get(stage, 0.0) for stage in ("columns", "timestamps", "keys", "order", "situations")))
    return min(seconds)


def copying(reports: pa.Table, repeats: int) -> float:
    """Return the least seconds in which one thread copies the columns that are read."""
    buffers = [np.frombuffer(reports[name].chunk(0).buffers()[1], np.uint8) for name in COLUMNS]
    return best_seconds(lambda: [buffer.copy() for buffer in buffers], repeats)


def on_duckdb(name: str, query: Listing1, path: Path, folder: Path, repeats: int) -> WayTiming | str:
    """Return DuckDB's time on as many threads, the table in its memory; or why it could not be measured."""
    where = environment("duckdb")
    if where.missing:
        return where.missing
    expected = folder / "expected.parquet"
    found = gpu_cep.match(path, query.text).select(IDENTITY)
    pq.write_table(found, expected)
    job = {
        "question": name, "text": sql(query), "window": query.window, "events": str(path), "expected": str(expected), "key": "car_id",
        "value": "speed", "types": [], "threads": THREADS, "repeats": repeats,
    }  # fmt: skip
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([str(where.python), str(WORKER), json.dumps(job)], capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        return done.stderr.splitlines()[-1]
    return WayTiming(name, f"DuckDB, matches, {THREADS} threads", found.num_rows, min(json.loads(done.stdout.splitlines()[-1])["seconds"]))


def on_spark(query: Listing1, path: Path, repeats: int) -> Iterator[WayTiming]:
    """Yield Spark's times on as many local cores: from Parquet to the number of matches' rows, and all rows to Python without a match."""
    from benchmarks.spark.floor import handed_over, total
    from benchmarks.spark.sessions import SHUFFLE_PARTITIONS, spark_session

    with spark_session(THREADS, "6g", {SHUFFLE_PARTITIONS: str(THREADS)}) as spark:
        reports = spark.read.parquet(str(path))
        matched = gpu_cep.gpu_match(reports, query.text)
        way = f"gpu_cep on Spark, matches, from Parquet, local[{THREADS}]"
        yield WayTiming("as printed", way, matched.count(), best_seconds(matched.count, repeats))
        # shuffled anew each time: of a frame that has been collected Spark keeps what was
        every = reports.select(*COLUMNS)
        yield WayTiming("none", PLAIN_HANDOVER, 0, best_seconds(lambda: total(handed_over(every.repartition("car_id"))), repeats))


def markdown(timings: list[WayTiming], missing: list[str], where: dict[str, str], events: int, copy: float) -> str:
    table = pages.table(
        [
            ["query", "way", "matches", "seconds", "M events/s", "copies of the columns"],
            *(
                [t.query, t.way, f"{t.matches:,}", f"{t.seconds:.4f}", f"{events / t.seconds / 1e6:.1f}", f"{t.seconds / copy:.1f}"]
                for t in timings
            ),
        ],
        figures=4,
    )
    sections = [
        f"# Aggressive drivers on {where['machine']}, {where['cores']} cores, {where['day']}",
        f"Commit {where['commit']}; {machine.versions(where, PACKAGES)}; "
        f"load average {where['load']}. {events:,} reports of {drives.CARS:,} cars in memory, unless "
        f"Parquet is named; one thread copies the four columns that are read in {copy:.4f} s. The least of some warm runs each. Written by "
        "`python -m benchmarks.rivals.drivers`.",
        table,
        "`derivation` is what comes before situations are joined. DuckDB has the table in its memory, and its SQL is written by hand.",
        *([] if not missing else ["Not measured: " + "; ".join(missing) + "."]),
        f"Listing 1 as printed: `{Listing1().text}`",
    ]
    return "\n\n".join(sections) + "\n"


def main(argv: list[str]) -> int:
    parser = measuring("Measure TPStream's Listing 1.", EVENTS, REPEATS)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--no-duckdb", action="store_true")
    options = parser.parse_args(argv)
    where = machine.environment(PACKAGES)
    reports = drives.car_reports(options.events)
    timings: list[WayTiming] = []
    missing: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "reports.parquet"
        pq.write_table(reports, path)
        copy = copying(reports, options.repeats)
        for text, query in queries(reports).items():
            timings += measured(text, query, reports, path, options.repeats)
            found = "DuckDB was not asked for" if options.no_duckdb else on_duckdb(text, query, path, folder, options.repeats)
            if isinstance(found, WayTiming):
                timings.append(found)
            else:
                missing.append(found)
            print(f"{text}: {time.strftime('%H:%M:%S')}", file=sys.stderr)
        if not options.no_spark:
            timings += on_spark(Listing1(), path, min(options.repeats, SPARK_REPEATS))
    page = markdown(timings, missing, where, options.events, copy)
    record = {"environment": where, "events": options.events, "copy": copy, "timings": [asdict(each) for each in timings]}
    pages.publish(page, options.folder, machine.name_on(where, "drivers"), record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
