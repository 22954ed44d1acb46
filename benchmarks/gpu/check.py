"""Prove the GPU engine on this machine's card, and measure it: conformance, memory safety, kernels, whole queries.

``python -m benchmarks.gpu.check [--minutes N] [--events N] [--only PART …] [--quick] [--touch GIB] [--out FOLDER]`` prints the versions
of all that it needs, then its report, and writes it as Markdown and JSON to ``benchmarks/results/``. Each part runs in a process of its
own, with a share of the time: one that crashes, hangs or runs out of memory is reported, and the others still run. A part that loses the
device goes on behind the item at fault, which is run again with launches that are waited for. Exit status: 0, 1 if there is a fault,
2 without a usable device or where a package is missing.

Where a command has ten minutes, the parts are run one by one, ``--only warmup --minutes 9`` first, then for instance ``--only kernels
--minutes 9``. ``--join FILE …`` puts their records together into one.

With NUMBA_ENABLE_CUDASIM=1 it runs on the CUDA simulator, on tiny input, to prove the command itself; nothing is written unless
``--out`` asks for it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import date
from importlib import import_module
from pathlib import Path

from benchmarks.gpu.findings import Check, Deadline, write_findings
from benchmarks.gpu.host import touch
from benchmarks.gpu.join import Unlike, joined
from benchmarks.gpu.parts import LOST, NO_DEVICE, PARTS, NoDevice, run_parts
from benchmarks.gpu.report import GpuReport, PartResult, markdown, part_markdown, write
from benchmarks.gpu.versions import REQUIRED, unusable, versions
from benchmarks.record.folders import RESULTS


def carry_out(options: argparse.Namespace) -> int:
    """Run a part in its own process, and return the exit status."""
    from gpu_cep_kernels.device.failures import DeviceLost, cuda_failure
    from gpu_cep_kernels.device.interface import DeviceUnavailable
    from gpu_cep_kernels.device.selection import open_device

    try:
        device = open_device()
    except DeviceUnavailable as reason:
        print(f"EngineUnavailable: there is no GPU to check: {reason}")
        return NO_DEVICE
    check = Check(device, Deadline.after(options.seconds), options.events, options.quick, frozenset(options.without), options.most)
    try:
        write_findings(options.findings, import_module(PARTS[options.part].module).run(check))
    except Exception as fault:
        traceback.print_exc()
        return LOST if isinstance(cuda_failure(fault), DeviceLost) else 1
    return 0


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prove and measure the GPU engine on this machine's card.")
    parser.add_argument("--minutes", type=float, default=7.5, help="time for all parts together")
    parser.add_argument("--events", type=int, default=100_000_000, help="events of the end-to-end measurements, if time and memory allow")
    parser.add_argument("--only", nargs="+", choices=sorted(PARTS), help="these parts instead of all")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to prove the command, not the card")
    parser.add_argument("--touch", type=float, default=0.0, metavar="GIB", help="host memory to use first, where it grows by being used")
    parser.add_argument("--most", type=int, help="so many items of each list of a part: to prove the command")
    parser.add_argument("--join", nargs="+", type=Path, metavar="FILE", help="put these records of single parts together; runs nothing")
    parser.add_argument("--out", type=Path, help=f"where the report is written (default: {RESULTS})")
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--findings", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--without", nargs="*", default=[], help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    simulated = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
    options.quick = options.quick or simulated
    if options.part:
        return carry_out(options)
    if options.join:
        return join(options)
    print(*versions(), sep="\n", end="\n\n", flush=True)
    if faults := unusable(REQUIRED):
        print(f"EngineUnavailable: cannot be imported: {', '.join(faults)} (python -m pip install {' '.join(faults)})")
        print(*(f"{package}: {reason}" for package, reason in faults.items()), sep="\n")
        return NO_DEVICE
    touch(int(options.touch * 2**30))
    return check(options, simulated)


def check(options: argparse.Namespace, simulated: bool) -> int:
    """Run the parts, and report them as they end."""
    begin, parts = time.monotonic(), list[PartResult]()
    try:
        for part in run_parts(options):
            parts.append(part)
            print(part_markdown(part), flush=True)
    except NoDevice as reason:
        print(reason)
        return NO_DEVICE
    report = GpuReport(device_name(parts), simulated, date.today().isoformat(), time.monotonic() - begin, parts)
    folder = options.out or (None if simulated else RESULTS)
    print(markdown(report).split("\n## ")[0])
    if folder is not None:
        print(*write(report, folder, options.only or ()), sep="\n")
    return 1 if any(part.faults for part in parts) else 0


def join(options: argparse.Namespace) -> int:
    """Write the records of parts as one."""
    try:
        report = joined(options.join)
    except Unlike as reason:
        print(reason)
        return 1
    print(*write(report, options.out or RESULTS), sep="\n")
    return 1 if any(part.faults for part in report.parts) else 0


def device_name(parts: Sequence[PartResult]) -> str:
    """Return the device's name as the facts have it."""
    names = [found.record["value"] for found in parts[0].findings if found.record.get("what") == "device"]
    return names[0] if names else "an unknown device"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
