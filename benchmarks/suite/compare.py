"""Two records of ``make bench``, figure by figure: what became slower, in seconds and in multiples of each run's own floor.

``python -m benchmarks.suite.compare BEFORE.json AFTER.json [--limit RATIO]`` prints Markdown. With --limit the exit status is 1 if a
figure takes more than so many times what it took, in multiples of the floor. The floor is a copy of the workload's columns in
the same run, so that a slower machine, or a busy one, does not count as slower code; seconds of two machines say nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.baselines.floors import COPY
from benchmarks.record import pages

# Part of a record -> the fields that name a figure, and those that are figures.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "timings": (("workload", "output", "events", "streams", "window_factor", "contestant", "engine", "threads"), ("seconds",)),
    "algorithms": (("workload", "output", "events", "algorithm"), ("seconds",)),
    "floors": (("workload", "operation"), ("seconds",)),
    "stages": (("workload", "output"), ("seconds", "whole")),
    "spark": (("workload", "contestant", "events"), ("seconds",)),
    "startup": (("cache",), ("import_seconds", "first_match", "same_pattern_again", "new_pattern")),
    "memory": (("workload", "output"), ("peak_bytes",)),
}
NOT_SECONDS = {"memory"}
SHOWN = 20
# Shorter times are the clock's and the machine's.
LEAST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of both runs; `floors` is what the copy of the workload's columns took after over before."""

    part: str
    name: str
    before: float
    after: float
    floors: float

    @property
    def ratio(self) -> float:
        return self.after / self.before

    @property
    def in_floors(self) -> float:
        """Return the ratio in multiples of each run's own floor."""
        return self.ratio / self.floors


class NoRecord(Exception):
    """A file is no record of ``make bench``."""


def read(path: Path) -> dict[str, Any]:
    """Return a run's record.

    Raises
    ------
    NoRecord
        The file is not JSON, or lacks the parts that a run writes.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise NoRecord(f"{path} cannot be read: {fault}") from fault
    missing = [part for part in ("environment", "extent", *PARTS) if not isinstance(record, dict) or part not in record]
    if missing:
        raise NoRecord(f"{path} is no record of make bench: it has no {missing[0]!r}")
    return dict(record)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return all figures that both have, but those too short to compare."""
    old, new = dict(_figures(before)), dict(_figures(after))
    copies = {name: new[name] / old[name] for name in old.keys() & new.keys() if name[0] == "floors" and name[1].endswith(COPY)}
    floors = {name.partition(", ")[0]: ratio for (_, name), ratio in copies.items()}
    return [
        Change(part, name, old[part, name], new[part, name], 1.0 if part in NOT_SECONDS else floors.get(name.partition(", ")[0], 1.0))
        for part, name in old
        if (part, name) in new and old[part, name] >= LEAST_SECONDS
    ]


def _figures(record: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield each figure's part and name, with its value."""
    for part, (names, values) in PARTS.items():
        for entry in record[part]:
            yield from _figures_of(part, entry, names, values)
    for curve, entries in record["curves"].items():
        for entry in entries:
            yield from _figures_of(f"by {curve}", entry, *PARTS["timings"])


def _figures_of(
    part: str, entry: Mapping[str, Any], names: Sequence[str], values: Sequence[str]
) -> Iterator[tuple[tuple[str, str], float]]:
    name = ", ".join(f"{entry[field]:,}" if isinstance(entry[field], int) else str(entry[field]) for field in names)
    for field in values:
        value = entry[field]
        if isinstance(value, dict):
            yield from (((part, f"{name}, {key}"), each) for key, each in value.items())
        elif value is not None:
            yield (part, name if len(values) == 1 else f"{name}, {field}"), value


def markdown(before: Mapping[str, Any], after: Mapping[str, Any], found: Sequence[Change]) -> str:
    """Return the page: each part in short, then the figures that are farthest apart."""
    runs = [("", "machine", "cores", "day", "commit", "extent", "load"), _run("before", before), _run("after", after)]
    parts: list[tuple[str, ...]] = [
        ("part", "figures", "mean ratio of seconds", "mean ratio in floors", "slowest in floors", "fastest in floors")
    ]
    for part in dict.fromkeys(change.part for change in found):
        own = [change for change in found if change.part == part]
        in_floors = [change.in_floors for change in own]
        means = (geometric_mean(change.ratio for change in own), geometric_mean(in_floors), max(in_floors), min(in_floors))
        parts.append((part, f"{len(own)}", *(f"{mean:.2f}" for mean in means)))
    far = sorted(found, key=lambda change: -max(change.in_floors, 1 / change.in_floors))[:SHOWN]
    figures = [("part", "figure", "before", "after", "ratio", "in floors"), *map(_row, far)]
    return "\n\n".join(
        (
            "# What changed",
            pages.table(runs),
            "Ratios are after over before: above 1 is slower, or more memory. In floors, each figure is a multiple of a copy of the "
            "workload's columns in its own run.",
            pages.table(parts, figures=5),
            f"## The {len(far)} figures that are farthest apart",
            pages.table(figures, figures=4),
        )
    ) + "\n"  # fmt: skip


def _run(name: str, record: Mapping[str, Any]) -> tuple[str, ...]:
    where = record["environment"]
    return name, where["machine"], str(where["processors"]), where["day"], where["commit"], record["extent"], str(where["load"])


def _row(change: Change) -> tuple[str, ...]:
    shown = (_shown(change.part, value) for value in (change.before, change.after))
    return change.part, change.name, *shown, f"{change.ratio:.2f}", f"{change.in_floors:.2f}"


def _shown(part: str, value: float) -> str:
    return f"{value / 2**20:,.0f} MiB" if part in NOT_SECONDS else f"{1e3 * value:,.1f} ms"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Compare two records of make bench.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--limit", type=float, help="fail if a figure takes more than so many times what it took, in floors")
    options = parser.parse_args(argv)
    try:
        before, after = read(options.before), read(options.after)
    except NoRecord as fault:
        parser.error(str(fault))
    sizes = [sorted({timing["events"] for timing in record["timings"]}) for record in (before, after)]
    if sizes[0] != sizes[1]:
        parser.error(f"{options.before} has questions of {sizes[0]} events, {options.after} of {sizes[1]}: they do not compare")
    found = changes(before, after)
    if not found:
        parser.error(f"{options.before} and {options.after} have no figure in common")
    print(markdown(before, after, found))
    over = [change for change in found if options.limit is not None and change.in_floors > options.limit]
    for change in over:
        print(f"{change.part}: {change.name} is {change.in_floors:.2f} × what it was, limit {options.limit:g}", file=sys.stderr)
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
