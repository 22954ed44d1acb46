"""Ask Flink CEP the rules of a set beside ``match_all``, which must find the same matches.

``python -m benchmarks.rivals.rule_sets [--events N] [--rules N …] [--repeats N]`` prints a table: seconds of the clock and of
processors for 1, 10 and 100 rules of three rising events of a key. Flink has a pattern operator for each rule in one job, and the
events in the memory of its JVM.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.rivals.asking import ask
from benchmarks.rivals.environments import environment

EVENTS, RULES, REPEATS = 100_000, (1, 10, 100), 3
KEYS, TYPES, WINDOW, THREADS = 1_000, 30, 60_000, 2
_TEXT = (
    "PARTITION BY k PATTERN SEQ(T{} a, T{} b, T{} c) WHERE b.x > a.x AND c.x > b.x WITHIN {} RETURN a.ts AS a, b.ts AS b, c.ts AS c"
)


def made(events: int) -> pa.Table:
    """Return events in order of time, no two of which have the same."""
    random = np.random.default_rng(41)
    types = pa.array([f"T{number}" for number in range(TYPES)]).take(pa.array(random.integers(0, TYPES, events)))
    return pa.table({"ts": np.arange(events), "k": random.integers(0, KEYS, events), "type": types, "x": random.random(events)})


def triples(rules: int) -> list[tuple[str, ...]]:
    """Return the types of three events for each rule."""
    random = np.random.default_rng(42)
    return [tuple(f"T{number}" for number in random.choice(TYPES, 3, replace=False).tolist()) for _ in range(rules)]


def texts(rules: int) -> dict[str, str]:
    """Return the rules by their numbers."""
    return {
        str(number): _TEXT.format(*(name.removeprefix("T") for name in types), WINDOW) for number, types in enumerate(triples(rules))
    }


def comparable(found: pa.Table) -> pa.Table:
    """Return the number of the rule and the times of each match."""
    return found.select(["pattern", "a", "b", "c"]).set_column(0, "pattern", found["pattern"].cast(pa.int64()))


def ours(events: pa.Table, rules: Mapping[str, str], repeats: int) -> tuple[float, float]:
    """Return the median seconds of the clock and of processors that ``match_all`` takes."""
    taken = []
    for _ in range(repeats + 1):
        begin, cpu = time.perf_counter(), time.process_time()
        cep.match_all(events, rules, threads=THREADS)
        taken.append((time.perf_counter() - begin, time.process_time() - cpu))
    clock, processors = zip(*taken[1:], strict=True)
    return median(clock), median(processors)


def flink(events: pa.Table, rules: int, expected: pa.Table, repeats: int) -> dict[str, Any]:
    """Return what Flink takes; raises RuntimeError if it finds other matches."""
    where = environment("flink")
    if where.missing:
        raise RuntimeError(f"there is no Flink: {where.missing}")
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(events, Path(folder) / "events.parquet")
        pq.write_table(expected, Path(folder) / "expected.parquet")
        job = {
            "question": "rules", "text": ";".join(" ".join(types) for types in triples(rules)), "window": WINDOW,
            "events": f"{folder}/events.parquet", "expected": f"{folder}/expected.parquet", "key": "k", "value": "x",
            "types": tuple(f"T{number}" for number in range(TYPES)), "threads": THREADS, "repeats": repeats, "mode": "STREAMING",
        }  # fmt: skip
        return ask("Flink CEP", "flink", where.python, job)


def lines(size: int, counts: Sequence[int], repeats: int) -> Iterator[str]:
    """Yield a line for each number of rules."""
    events = made(size)
    for count in counts:
        rules = texts(count)
        expected = comparable(cep.match_all(events, rules))
        clock, processors = ours(events, rules, repeats)
        measured = flink(events, count, expected, repeats)
        theirs, theirs_processors = median(measured["seconds"]), median(measured["cpu_seconds"])
        yield (
            f"| {count:,} | {len(expected):,} | {clock:.3f} | {processors:.3f} | {theirs:.2f} | {theirs_processors:.2f} "
            f"| {theirs / clock:.0f} | {theirs_processors / processors:.0f} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rules", type=int, nargs="+", default=RULES)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    asked = parser.parse_args(arguments)
    print(f"{asked.events:,} events in memory, {THREADS} threads; Flink CEP has the same matches\n")
    print("| rules | matches | clock s | CPU s | Flink clock s | Flink CPU s | clock ratio | CPU ratio |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for line in lines(asked.events, asked.rules, asked.repeats):
        print(line, flush=True)


if __name__ == "__main__":
    main()
