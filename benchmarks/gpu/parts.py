"""The parts of the GPU check, each in a process of its own: one that crashes, hangs or loses the device leaves the others their turn."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu.findings import BEGUN, Deadline, Finding, fault, note, read_findings
from benchmarks.gpu.process import finished, last_lines
from benchmarks.gpu.report import PartResult

# What a part's process ends with: there is no device, or it was lost.
NO_DEVICE, LOST = 2, 3
# Share of a part's time after which it begins nothing more.
WORKING_SHARE = 0.8
# So often a part goes on in a new process after an item that lost the device.
MOST_LOST = 3
LEAST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Part:
    """A module with ``run(check)``, its title, and its share of the time."""

    module: str
    title: str
    weight: float


PARTS = {
    "device": Part("benchmarks.gpu.facts", "Device", 2),
    "first_queries": Part("benchmarks.gpu.first_queries", "First queries", 3),
    "warmup": Part("benchmarks.gpu.warmup", "Compiling", 3),
    "conformance": Part("benchmarks.gpu.conformance", "Conformance: the GPU's matches are the CPU's", 6),
    "large": Part("benchmarks.gpu.large", "Conformance on large input", 4),
    "kernels": Part("benchmarks.gpu.kernels", "Kernels and primitives against their floors", 5),
    "end_to_end": Part("benchmarks.gpu.end_to_end", "End to end", 6),
    "crossover": Part("benchmarks.gpu.crossover", "From which size on the GPU wins", 6),
    "sanitizer": Part("benchmarks.gpu.sanitizer", "Memory safety", 2),
}


class NoDevice(Exception):
    """There is nothing to check here; the message says why."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process of a part: its status (None: out of time), its output, what it found, and the items that it began."""

    status: int | None
    output: str
    findings: Sequence[Finding]
    begun: Sequence[str]


def run_parts(options: argparse.Namespace) -> Iterator[PartResult]:
    """Yield the parts asked for, one after the other; time that a part leaves goes to the later ones."""
    names = [name for name in PARTS if name == "device" or not options.only or name in options.only]
    deadline = Deadline.after(options.minutes * 60)
    for place, name in enumerate(names):
        share = PARTS[name].weight / sum(PARTS[later].weight for later in names[place:])
        yield run_part(name, max(1.0, deadline.left * share), options)


def run_part(name: str, seconds: float, options: argparse.Namespace) -> PartResult:
    """Return one part, which has so many seconds."""
    begin = time.monotonic()
    found = list(_attempts(name, Deadline.after(seconds), options))
    return PartResult(name, PARTS[name].title, time.monotonic() - begin, found)


def _attempts(name: str, deadline: Deadline, options: argparse.Namespace) -> Iterator[Finding]:
    """Yield what the part finds: the item that lost the device is run again with launches that are waited for, then those behind it.

    Raises
    ------
    NoDevice
        The process finds no device.
    """
    attempt = _attempt(name, deadline, options, frozenset(), {})
    yield from attempt.findings
    done: frozenset[str] = frozenset()
    for _ in range(MOST_LOST):
        if attempt.status != LOST or not attempt.begun or deadline.left < LEAST_SECONDS:
            break
        *before, lost = attempt.begun
        yield note(f"Again, with CUDA_LAUNCH_BLOCKING=1: {lost}")
        done |= frozenset(before)
        yield from _attempt(name, deadline, options, done, {"CUDA_LAUNCH_BLOCKING": "1"}, most=1).findings
        done |= {lost}
        attempt = _attempt(name, deadline, options, done, {})
        yield from attempt.findings
    yield from ending(attempt.status, attempt.output)


def _attempt(
    name: str,
    deadline: Deadline,
    options: argparse.Namespace,
    without: frozenset[str],
    settings: Mapping[str, str],
    most: int | None = None,
) -> Attempt:
    """Run one process of the part, with environment variables `settings`, for `most` items of each list, but those in `without`."""
    seconds = max(1.0, deadline.left)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "findings"
        command = [sys.executable, "-m", "benchmarks.gpu.check", "--part", name, "--findings", str(path)]
        command += ["--seconds", str(seconds * WORKING_SHARE), "--events", str(options.events), *(["--quick"] if options.quick else [])]
        limits = [limit for limit in (most, options.most) if limit is not None]
        command += ["--most", str(min(limits))] if limits else []
        command += ["--without", *sorted(without)] if without else []
        status, output = finished(command, seconds, {**os.environ, **settings})
        found = read_findings(path) if path.exists() else []
    if status == NO_DEVICE:
        raise NoDevice(output.strip())
    told = [each for each in found if each.kind != BEGUN]
    return Attempt(status, output, told, [each.text for each in found if each.kind == BEGUN])


def ending(status: int | None, output: str) -> list[Finding]:
    """Return a fault if a part's process did not end well."""
    if status == 0:
        return []
    reasons = {
        None: "ran out of time and was ended",
        LOST: "lost the device",
        -9: "was killed, as the system does with a process that takes too much of the host's memory",
    }
    reason = reasons.get(status, f"ended with status {status}")
    return [fault(f"The part {reason}.{last_lines(output)}")]
