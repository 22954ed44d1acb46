"""Compare ``match_all`` of 1 to 1,000 patterns with ``match`` of one, and with reading all columns.

``python -m benchmarks.rules.run [--events N] [--rules N …] [--repeats N] [--folder FOLDER] [--only KIND …]`` prints a table for events in
memory and for the same events in Parquet. Before anything is timed, the first patterns must have the matches that ``match`` finds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.record.clocks import least
from benchmarks.rules.workload import KINDS, TYPES, made

EVENTS, RULES, REPEATS, GROUP = 10_000_000, (1, 10, 100, 1_000), 3, 1 << 20
# So many patterns are compared with calls of their own.
COMPARED = 5


def least_cpu(does: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of some runs, in seconds."""
    return least(does, repeats)[0].cpu


def scan(table: pa.Table) -> None:
    """Look at each value of each column once."""
    for column in table.columns:
        pc.max(column if not pa.types.is_string(column.type) else pc.binary_length(column))


def compare(events: Any, rules: dict[str, str]) -> None:
    """Raise AssertionError unless the first rules have the matches that they have by themselves."""
    first = dict(list(rules.items())[:COMPARED])
    found = cep.match_all(events, first, split=True)
    for name, text in first.items():
        if not found[name].equals(cep.match(events, text)):
            raise AssertionError(f"{name}: match_all finds other rows than match")


def lines(events: Any, floor: float, kinds: Sequence[str], counts: Sequence[int], repeats: int) -> list[str]:
    """Return a line for each kind and number of rules: seconds, ratios to one pattern and to the floor, and matches."""
    found = []
    for kind in kinds:
        rules = KINDS[kind](max(counts))
        compare(events, rules)
        one = least_cpu(partial(cep.match, events, next(iter(rules.values()))), repeats)
        for count in counts:
            some = dict(list(rules.items())[:count])
            matches = cep.match_all(events, some).num_rows
            taken = least_cpu(partial(cep.match_all, events, some), repeats)
            found.append(f"| {kind} | {count:,} | {taken:.2f} | {taken / one:.1f} | {taken / floor:.1f} | {matches:,} |")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rules", type=int, nargs="+", default=RULES)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--folder", default=tempfile.gettempdir())
    asked = parser.parse_args(arguments)
    counts = [count for count in asked.rules if count <= TYPES // 3]
    table = made(asked.events)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = str(Path(folder) / "events.parquet")
        pq.write_table(table, path, row_group_size=GROUP)
        ways = (("in memory", table, lambda: scan(table)), ("in Parquet", path, lambda: pq.read_table(path)))
        for name, events, floor in ways:
            base = least_cpu(floor, asked.repeats)
            print(f"\n{asked.events:,} events {name}; looking at all columns takes {base:.2f} s of processors\n")
            print("| rules | number | CPU s | one pattern's | all columns' | matches |\n|---|---:|---:|---:|---:|---:|")
            for line in lines(events, base, asked.only, counts, asked.repeats):
                print(line, flush=True)


if __name__ == "__main__":
    main()
