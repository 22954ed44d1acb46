"""Measure what the layout of event files brings: their order, row groups, dictionaries, statistics, folders and compression.

``python -m benchmarks.suite.layouts [--events N] [--repeats N] [--only LAYOUT …] [--folder FOLDER | --no-record]`` writes the same events
in many layouts, asks each for all of them, for one day and in slices of time, prints its page and writes it with its record to
``benchmarks/results/``. All layouts must give as many matches before anything is timed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.record import pages
from benchmarks.record.arguments import measuring
from benchmarks.record.clocks import least
from benchmarks.record.layouts import Layout, table
from benchmarks.record.machine import described, environment, name_on
from benchmarks.suite.files import QUESTIONS, made

EVENTS, REPEATS, GROUP = 5_000_000, 5, 1 << 17
# Bytes that the run in slices may take, for each event; at once it would take about a hundred.
BYTES_PER_EVENT = 25
Write = Callable[[pa.Table, Path], None]


def _to_file(**how: Any) -> Write:
    """Return a writer of one file, in row groups of :data:`GROUP` rows unless `how` says otherwise."""
    return lambda events, path: pq.write_table(events, path / "events.parquet", **{"row_group_size": GROUP, **how})


def _mixed(events: pa.Table, path: Path) -> None:
    _to_file()(events.take(pa.array(np.random.default_rng(3).permutation(len(events)))), path)


def _late(events: pa.Table, path: Path) -> None:
    """Write events in the order of their arrival, up to an hour late."""
    late = np.random.default_rng(4).integers(0, 3_600_000_000, len(events))
    arrival = events["ts"].to_numpy().astype(np.int64) + late
    _to_file()(events.take(pa.array(np.argsort(arrival, kind="stable"))), path)


def _by_day(events: pa.Table, path: Path) -> None:
    days = pc.cast(pc.floor_temporal(events["ts"], unit="day"), pa.date32())
    pq.write_to_dataset(events.append_column("day", days.cast(pa.string())), str(path), partition_cols=["day"], row_group_size=GROUP)


LAYOUTS: dict[str, Write] = {
    f"in order, row groups of {GROUP:,}": _to_file(),
    "row groups of 10,000": _to_file(row_group_size=10_000),
    "row groups of 1,000,000": _to_file(row_group_size=1_000_000),
    "events up to an hour late": _late,
    "in no order": _mixed,
    "text without dictionaries": _to_file(use_dictionary=False),
    "no statistics": _to_file(write_statistics=False),
    "folders by day": _by_day,
    "not compressed": _to_file(compression="none"),
    "zstd": _to_file(compression="zstd"),
}


def measured(name: str, events: pa.Table, folder: Path, repeats: int) -> Layout:
    """Write one layout and ask it; the best of so many runs."""
    path = folder / str(len(list(folder.iterdir())))
    path.mkdir()
    LAYOUTS[name](events, path)
    memory = BYTES_PER_EVENT * len(events)
    whole, found, _ = _asked(path, "sequence", repeats)
    day, _, of_day = _asked(path, "day", repeats)
    sliced, again, in_slices = _asked(path, "sequence", repeats, memory=memory)
    if found != again:
        raise AssertionError(f"{name}: {found:,} matches at once, and {again:,} in slices")
    size = sum(file.stat().st_size for file in path.rglob("*.parquet"))
    return Layout(name, size, whole, day, sliced, of_day.groups, in_slices.slices, found)


def _asked(path: Path, question: str, repeats: int, **options: Any) -> tuple[float, int, cep.Profile]:
    """Return the least processor seconds of a question, its matches, and what one run did."""
    profile = cep.Profile()
    asked = QUESTIONS[question]
    found = cep.match(path, asked.query, profile=profile, **asked.options, **options).num_rows
    taken, _ = least(lambda: cep.match(path, asked.query, **asked.options, **options), repeats)
    return taken.cpu, found, profile


def markdown(found: Sequence[Layout], where: str, events: int, repeats: int) -> str:
    """Return the figures as a page."""
    parts = [
        "# Layouts of event files",
        where,
        f"{events:,} events of 30 days; {QUESTIONS['sequence'].about}: of all events, of one day, and of all with "
        f"memory={BYTES_PER_EVENT * events:,}. Times are processor time of the best of {repeats} warm runs, in multiples of what all "
        "events of the first layout take.",
        table(found),
    ]
    return "\n\n".join(parts) + "\n"


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = measuring("Measure layouts of event files.", EVENTS, REPEATS)
    parser.add_argument("--only", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> None:
    """Measure, print the page, and write it and its record."""
    options = _arguments(argv)
    events = made(options.events)
    with tempfile.TemporaryDirectory() as folder:
        found = [measured(name, events, Path(folder), options.repeats) for name in options.only]
    counts = {each.matches for each in found}
    if len(counts) > 1:
        raise AssertionError(f"the layouts have {counts} matches")
    where = environment(["pyarrow"])
    page = markdown(found, f"{described(where, ['pyarrow'])}.", options.events, options.repeats)
    record = {"environment": where, "events": options.events, "layouts": [*map(asdict, found)]}
    pages.publish(page, options.folder, name_on(where, "layouts"), record)


if __name__ == "__main__":
    main(sys.argv[1:])
