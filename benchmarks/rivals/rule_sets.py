"""Ask Flink CEP or OpenCEP the rules of a set beside ``match_all``, which must find the same matches.

``python -m benchmarks.rivals.rule_sets [--rival flink] [--events N] [--rules N …] [--per-job N] [--repeats N]`` prints a table:
seconds of the clock and of processors for 1, 10 and 100 rules of three rising events of a key. Flink has a pattern operator for each
rule, and the events in the memory of its JVM. It runs a job after the other, each with at most so many rules.

``… --rival opencep --opencep FOLDER`` asks OpenCEP, which is on no package index: FOLDER holds a checkout of
https://github.com/ilya-kolchinsky/OpenCEP. It is Python, and shares equal parts of the patterns' trees. A few thousand events are
enough. It knows no skip-till-next-match: the rules it is asked have all matches of skip_till_any_match.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.record.clocks import timed
from benchmarks.rivals.asking import ask
from benchmarks.rivals.environments import environment

RULES, REPEATS = (1, 10, 100), 3
EVENTS_PER_KEY, TYPES, WINDOW, THREADS, PER_JOB = 100, 30, 60_000, 2, 10
_TEXT = (
    "PARTITION BY k PATTERN SEQ({} a, {} b, {} c) WHERE {} {{ b.x > a.x AND c.x > b.x }} WITHIN {} RETURN a.ts AS a, b.ts AS b, c.ts AS c"
)


@dataclass(frozen=True, slots=True)
class Rival:
    """Another engine: the strategy of the rules that it is asked, and what asks it, given a job; `events` are enough for it."""

    name: str
    strategy: str
    events: int
    threads: int
    asked: Callable[[dict[str, Any]], dict[str, Any]]


def made(events: int) -> pa.Table:
    """Return events in order of time, no two of which have the same."""
    random = np.random.default_rng(41)
    types = pa.array([f"T{number}" for number in range(TYPES)]).take(pa.array(random.integers(0, TYPES, events)))
    keys = random.integers(0, max(1, events // EVENTS_PER_KEY), events)
    return pa.table({"ts": np.arange(events), "k": keys, "type": types, "x": random.random(events)})


def triples(rules: int) -> list[tuple[str, ...]]:
    """Return the types of three events for each rule."""
    random = np.random.default_rng(42)
    return [tuple(f"T{number}" for number in random.choice(TYPES, 3, replace=False).tolist()) for _ in range(rules)]


def texts(rules: int, strategy: str) -> dict[str, str]:
    """Return the rules by their numbers."""
    return {str(number): _TEXT.format(*types, strategy, WINDOW) for number, types in enumerate(triples(rules))}


def comparable(found: pa.Table) -> pa.Table:
    """Return the number of the rule and the times of each match."""
    return found.select(["pattern", "a", "b", "c"]).set_column(0, "pattern", found["pattern"].cast(pa.int64()))


def ours(events: pa.Table, rules: Mapping[str, str], threads: int, repeats: int) -> tuple[float, float]:
    """Return the median seconds of the clock and of processors that ``match_all`` takes."""
    taken = [timed(lambda: cep.match_all(events, rules, threads=threads))[0] for _ in range(repeats + 1)]
    clock, processors = zip(*taken[1:], strict=True)
    return median(clock), median(processors)


def in_jobs(rules: Sequence[tuple[str, ...]], per_job: int) -> str:
    """Return the types of rules as text, in parts of so many rules, each with the number of its first one."""
    parts = [(begin, rules[begin : begin + per_job]) for begin in range(0, len(rules), per_job)]
    return "|".join(f"{begin}:{';'.join(' '.join(types) for types in part)}" for begin, part in parts)


def theirs(rival: Rival, events: pa.Table, text: str, expected: pa.Table, repeats: int) -> dict[str, Any]:
    """Return what the rival takes; raises RuntimeError if it finds other matches."""
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(events, Path(folder) / "events.parquet")
        pq.write_table(expected, Path(folder) / "expected.parquet")
        job = {
            "question": "rules", "text": text, "window": WINDOW, "events": f"{folder}/events.parquet",
            "expected": f"{folder}/expected.parquet", "key": "k", "value": "x",
            "types": tuple(f"T{number}" for number in range(TYPES)), "threads": rival.threads, "repeats": repeats, "mode": "STREAMING",
        }  # fmt: skip
        return rival.asked(job)


def ask_flink(job: dict[str, Any]) -> dict[str, Any]:
    """Return what Flink takes for a job."""
    where = environment("flink")
    if where.missing:
        raise RuntimeError(f"there is no Flink: {where.missing}")
    return ask("Flink CEP", "flink", where.python, job)


def ask_opencep(checkout: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Return what OpenCEP takes for a job; it needs the standard library alone."""
    return ask("OpenCEP", "opencep", Path(sys.executable), {**job, "checkout": str(checkout)})


def lines(rival: Rival, size: int, counts: Sequence[int], per_job: int, repeats: int) -> Iterator[str]:
    """Yield a line for each number of rules."""
    events = made(size)
    for count in counts:
        rules = texts(count, rival.strategy)
        expected = comparable(cep.match_all(events, rules))
        clock, processors = ours(events, rules, rival.threads, repeats)
        measured = theirs(rival, events, in_jobs(triples(count), per_job), expected, repeats)
        seconds, cpu_seconds = median(measured["seconds"]), median(measured["cpu_seconds"])
        yield (
            f"| {count:,} | {len(expected):,} | {clock:.3f} | {processors:.3f} | {seconds:.2f} | {cpu_seconds:.2f} "
            f"| {seconds / clock:.0f} | {cpu_seconds / processors:.0f} |"
        )


def find_checkout(folder: str | None) -> Path:
    """Return the folder with OpenCEP's sources.

    Raises
    ------
    RuntimeError
        There is none; the message says what to do.
    """
    remedy = "give --opencep a folder with a checkout of https://github.com/ilya-kolchinsky/OpenCEP"
    if folder is None:
        raise RuntimeError(f"OpenCEP is on no package index; {remedy}")
    if not (Path(folder) / "CEP.py").is_file():
        raise RuntimeError(f"{folder} has no CEP.py; {remedy}")
    return Path(folder).resolve()


def chosen(name: str, checkout: str | None) -> Rival:
    """Return the rival of a name; raises RuntimeError as :func:`find_checkout`."""
    if name == "flink":
        return Rival("Flink CEP", "skip_till_next_match", 100_000, THREADS, ask_flink)
    return Rival("OpenCEP", "skip_till_any_match", 5_000, 1, partial(ask_opencep, find_checkout(checkout)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival", choices=("flink", "opencep"), default="flink")
    parser.add_argument("--opencep", metavar="FOLDER", help="a checkout of OpenCEP")
    parser.add_argument("--events", type=int)
    parser.add_argument("--rules", type=int, nargs="+", default=RULES)
    parser.add_argument("--per-job", type=int, default=PER_JOB, help="the most rules of one job of Flink's")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    asked = parser.parse_args(arguments)
    try:
        rival = chosen(asked.rival, asked.opencep)
    except RuntimeError as fault:
        parser.error(str(fault))
    size = asked.events or rival.events
    print(f"{size:,} events in memory, {rival.threads} threads; {rival.name} has the same matches under {rival.strategy}\n")
    print(f"| rules | matches | clock s | CPU s | {rival.name} clock s | {rival.name} CPU s | clock ratio | CPU ratio |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for line in lines(rival, size, asked.rules, asked.per_job, asked.repeats):
        print(line, flush=True)


if __name__ == "__main__":
    main()
