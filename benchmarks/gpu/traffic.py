"""What travels between host and device, and which stages run where: counted on a device that the CPU plays; no card is needed.

``python -m benchmarks.gpu.traffic [--events N]`` writes results/gpu-traffic.md and .json. The device's kernels run on the CPU and its
arrays are NumPy's; what goes to it and comes back is what would travel to a card and back. Times mean nothing and are not written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

from benchmarks.baselines.measure import Disagreement, match_count
from benchmarks.gpu.counting import CountingDevice
from benchmarks.gpu.questions import OUTPUT, QUESTIONS, Question
from benchmarks.record import pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import package_version
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer

NAME = "gpu-traffic"
EVENTS = 1_000_000
PACKAGES = ("numpy", "pyarrow")
# The last stage in which the device takes part where a matcher on the CPU follows.
LAST = "candidates back"


@dataclass(frozen=True, slots=True)
class Traffic:
    """One question: bytes to the device and back, launches of kernels, the stages there and on the CPU after it, and their counts.

    `uploads` are transfers to the device, of columns, tables, and numbers that the host has carried on.
    `calls` are launches of kernels and of array functions, `waits` those of the host for the device, `moved` the bytes that both read and
    write in the device's memory; all three are the least, as :class:`Counts` says.
    """

    question: str
    about: str
    events: int
    up: int
    down: int
    launches: int
    on_device: tuple[str, ...]
    on_cpu: tuple[str, ...]
    counts: dict[str, int]
    calls: int
    waits: int
    moved: int
    uploads: int


def traffic(question: Question, events: int) -> Traffic:
    """Return what a question over so many events takes.

    Raises
    ------
    Disagreement
        The CPU counts other matches.
    """
    table, device, profile = question.events(events), CountingDevice(), Profile()
    with patch("gpu_cep.engine.phase_one.engine_choice.open_device", lambda: device):
        found = match_count(answer(question.plan(events, table.schema, "gpu"), table, resources=Resources(profile=profile)), OUTPUT)
    expected = match_count(answer(question.plan(events, table.schema, "cpu"), table), OUTPUT)
    if found != expected:
        raise Disagreement(f"{question.name}: {found} matches, {expected} on the CPU")
    stages = tuple(profile.seconds)
    after = stages.index(LAST) + 1 if LAST in stages else len(stages)
    sizes, counts = (device.up, device.down, device.launches), device.counts
    least = counts.launches, counts.waits, counts.moved
    return Traffic(question.name, question.about, events, *sizes, stages[:after], stages[after:], profile.counts, *least, device.uploads)


def markdown(rows: Sequence[Traffic], versions: dict[str, str]) -> str:
    """Return the rows as a page."""
    head = ["question", "on the device", "then on the CPU", "counts", "kernels launched", "bytes per event to it", "and back"]
    head += ["launches in all", "waits", "transfers to it", "bytes per event in its memory"]
    lines = [[row.question, *_stages(row), str(row.launches), *bytes_per_event(row), *_least(row)] for row in rows]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts = [
        "# What travels to a GPU and back",
        f"{rows[0].events:,} events, matches counted. Counted on a device that the CPU plays: nothing here was run on a card. "
        f"Written by `python -m benchmarks.gpu.traffic` with {named}.",
        "Launches in all, waits of the host and bytes in the device's memory are the least: each array function, operator and kernel is "
        "one launch that passes once over its arrays.",
        pages.table([head, *lines], figures=7),
    ]
    return "\n\n".join(parts) + "\n"


def _stages(row: Traffic) -> list[str]:
    counts = " → ".join(f"{name} {count:,}" for name, count in row.counts.items())
    return [", ".join(row.on_device), ", ".join(row.on_cpu), counts]


def _least(row: Traffic) -> list[str]:
    return [str(row.calls), str(row.waits), str(row.uploads), f"{row.moved / row.events:.0f}"]


def bytes_per_event(row: Traffic) -> list[str]:
    """Return the bytes per event to the device, and back from it, as cells."""
    return [f"{row.up / row.events:.1f}", f"{row.down / row.events:.2f}"]


def read_traffic(folder: Path) -> list[Traffic]:
    """Return the rows of the record in `folder`."""
    return [Traffic(**row) for row in pages.read(folder / f"{NAME}.json")["questions"]]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Count what travels to a GPU and back, without one.")
    parser.add_argument("--events", type=int, default=EVENTS)
    options = parser.parse_args(argv)
    rows = [traffic(question, options.events) for question in QUESTIONS.values()]
    versions = {package: package_version(package) for package in PACKAGES}
    page = markdown(rows, versions)
    pages.write(RESULTS, NAME, page, {"versions": versions, "questions": [asdict(row) for row in rows]})
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
