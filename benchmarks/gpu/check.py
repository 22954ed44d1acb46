"""Prove the GPU engine on this machine's card, and measure it: conformance, memory safety, kernels, whole queries.

``python -m benchmarks.gpu.check [--minutes N] [--events N] [--only PART …] [--quick] [--out FOLDER]`` prints its report and writes it
as Markdown and JSON to ``benchmarks/results/``. Each part runs in a process of its own, with a share of the time: one that crashes,
hangs or runs out of memory is reported, and the others still run. Exit status: 0, 1 if there is a fault, 2 without a usable device.

With NUMBA_ENABLE_CUDASIM=1 it runs on the CUDA simulator, on tiny input, to prove the command itself; nothing is written unless
``--out`` asks for it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmarks.gpu.findings import Check, Deadline, Finding, fault, read_findings, write_findings
from benchmarks.gpu.process import finished, last_lines
from benchmarks.gpu.report import GpuReport, PartResult, markdown, part_markdown, write
from benchmarks.record.folders import RESULTS

# What must be installed beside CuPy and numba-cuda, of which the device itself tells.
REQUIRED = ("hypothesis", "lark", "numba", "numpy", "pyarrow")
NO_DEVICE = 2
# Share of a part's time after which it begins nothing more.
WORKING_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Part:
    """A module with ``run(check)``, its title, and its share of the time."""

    module: str
    title: str
    weight: float


PARTS = {
    "device": Part("benchmarks.gpu.facts", "Device", 2),
    "conformance": Part("benchmarks.gpu.conformance", "Conformance: the GPU's matches are the CPU's", 6),
    "large": Part("benchmarks.gpu.large", "Conformance on large input", 4),
    "kernels": Part("benchmarks.gpu.kernels", "Kernels and primitives against their floors", 5),
    "end_to_end": Part("benchmarks.gpu.end_to_end", "End to end", 6),
    "crossover": Part("benchmarks.gpu.crossover", "From which size on the GPU wins", 6),
    "sanitizer": Part("benchmarks.gpu.sanitizer", "Memory safety", 2),
}


class NoDevice(Exception):
    """There is nothing to check here; the message says why."""


def run_parts(options: argparse.Namespace) -> list[PartResult]:
    """The parts asked for, one after the other; time that a part leaves goes to the later ones."""
    names = [name for name in PARTS if name == "device" or not options.only or name in options.only]
    deadline = Deadline.after(options.minutes * 60)
    results = []
    for place, name in enumerate(names):
        share = PARTS[name].weight / sum(PARTS[later].weight for later in names[place:])
        results.append(run_part(name, max(1.0, deadline.left * share), options))
        print(part_markdown(results[-1]), flush=True)
    return results


def run_part(name: str, seconds: float, options: argparse.Namespace) -> PartResult:
    """One part in a process of its own, which has so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "findings"
        command = [sys.executable, "-m", "benchmarks.gpu.check", "--part", name, "--findings", str(path)]
        command += ["--seconds", str(seconds * WORKING_SHARE), "--events", str(options.events), *(["--quick"] if options.quick else [])]
        begin = time.monotonic()
        status, output = finished(command, seconds)
        spent = time.monotonic() - begin
        findings = read_findings(path) if path.exists() else []
    if status == NO_DEVICE:
        raise NoDevice(output.strip())
    return PartResult(name, PARTS[name].title, spent, [*findings, *ending(status, output)])


def ending(status: int | None, output: str) -> list[Finding]:
    """A fault if a part's process did not end well."""
    if status == 0:
        return []
    reason = "ran out of time and was ended" if status is None else f"ended with status {status}"
    return [fault(f"The part {reason}.{last_lines(output)}")]


def carry_out(options: argparse.Namespace) -> int:
    """The side of a part's own process."""
    from gpu_cep_kernels.device.interface import DeviceUnavailable
    from gpu_cep_kernels.device.selection import open_device

    try:
        device = open_device()
    except DeviceUnavailable as reason:
        print(f"EngineUnavailable: there is no GPU to check: {reason}")
        return NO_DEVICE
    check = Check(device, Deadline.after(options.seconds), options.events, options.quick)
    write_findings(options.findings, import_module(PARTS[options.part].module).run(check))
    return 0


def missing_packages() -> list[str]:
    return [package for package in REQUIRED if find_spec(package) is None]


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prove and measure the GPU engine on this machine's card.")
    parser.add_argument("--minutes", type=float, default=7.5, help="time for all parts together")
    parser.add_argument("--events", type=int, default=100_000_000, help="events of the end-to-end measurements, if time and memory allow")
    parser.add_argument("--only", nargs="+", choices=sorted(PARTS), help="these parts instead of all")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to prove the command, not the card")
    parser.add_argument("--out", type=Path, help=f"where the report is written (default: {RESULTS})")
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--findings", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    simulated = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
    options.quick = options.quick or simulated
    if missing := missing_packages():
        print(f"EngineUnavailable: not installed: {', '.join(missing)} (python -m pip install {' '.join(missing)})")
        return NO_DEVICE
    if options.part:
        return carry_out(options)
    begin = time.monotonic()
    try:
        parts = run_parts(options)
    except NoDevice as reason:
        print(reason)
        return NO_DEVICE
    report = GpuReport(device_name(parts), simulated, date.today().isoformat(), time.monotonic() - begin, parts)
    folder = options.out or (None if simulated else RESULTS)
    print(markdown(report).split("\n## ")[0])
    if folder is not None:
        print(*write(report, folder, options.only or ()), sep="\n")
    return 1 if any(part.faults for part in parts) else 0


def device_name(parts: Sequence[PartResult]) -> str:
    """As the facts have it."""
    names = [found.record["value"] for found in parts[0].findings if found.record.get("what") == "device"]
    return names[0] if names else "an unknown device"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
