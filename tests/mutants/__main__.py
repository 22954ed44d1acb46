"""``python -m tests.mutants``: plants faults, one at a time in a copy of the tree, and tells which ones the tests notice.

Kernels are kept by their sources, so that only a fault in kernels compiles
anything; its first tests run them uncompiled, unless ``--compile`` is given. Of
each fault the tests that should notice it run first, and then, unless
``--first`` is given, the rest of the suite.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.fault import Fault
from tests.mutants.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]
# Some faults let a search go on for ever; all tests together take less.
MOST_SECONDS = 1_200
# What pytest returns where tests failed, and where it found none to run.
FAILED, NONE_FOUND = 1, 5
# How a process ends that wrote where it must not.
CRASHES = {-number: number.name for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a fault was missed, else 0."""
    options = _parser().parse_args(arguments)
    known = {fault.name for fault in FAULTS}
    unknown = sorted({*(options.only or ())} - known)
    if unknown:
        raise SystemExit(f"no such fault: {', '.join(unknown)}")
    chosen = [fault for fault in FAULTS if _is_chosen(fault, options)]
    missed = []
    with tempfile.TemporaryDirectory(prefix="gpu_cep-faults-") as folder:
        whole = Path(folder) / "whole"
        copy_tree(whole)
        for fault in chosen:
            began = time.monotonic()
            noticed = _try(fault, whole, Path(folder) / "faulty", options)
            print(f"{'caught' if noticed else 'MISSED'}  {time.monotonic() - began:6.0f} s  {fault.name:40}  {noticed}", flush=True)
            missed += [] if noticed else [fault.name]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults caught by the {options.suite} suite", flush=True)
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plant faults and tell which ones the tests notice.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these faults alone")
    parser.add_argument("--compile", action="store_true", help="compile kernels with a fault before their first tests")
    parser.add_argument("--kernels", choices=("with", "without", "alone"), default="with", help="faults in kernels")
    parser.add_argument("--suite", choices=("fast", "full"), default="fast", help="of which suite the tests are")
    parser.add_argument("--first", action="store_true", help="run only the tests that should notice a fault, not the rest of the suite")
    parser.add_argument("--processes", type=int, default=0, help="for the rest of the suite; 0: none beside this one")
    return parser


def _is_chosen(fault: Fault, options: argparse.Namespace) -> bool:
    if options.only:
        return fault.name in options.only
    return options.kernels == "with" or fault.in_kernels == (options.kernels == "alone")


def _try(fault: Fault, whole: Path, tree: Path, options: argparse.Namespace) -> str:
    """Plant a fault in a copy of the tree; returns the first test that fails, empty if none does."""
    shutil.copytree(whole, tree)
    try:
        plant(fault, tree)
        suite = ["--full"] if options.suite == "full" else []
        noticed = _first_failure(tree, [*suite, *(["--plain"] if fault.in_kernels and not options.compile else []), *fault.tests])
        if not noticed and not options.first:
            noticed = _first_failure(tree, [*suite, *(["--numprocesses", str(options.processes)] if options.processes else [])])
    finally:
        shutil.rmtree(tree)
    return noticed


def copy_tree(target: Path) -> None:
    """Copy the files that git knows or would add.

    It is copied once, so that nobody's work on the checkout shows in a later fault.
    """
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def plant(fault: Fault, tree: Path) -> None:
    """Put the fault into its file.

    Raises
    ------
    ValueError
        The text that it replaces does not stand there exactly once.
    """
    path = tree / fault.path
    source = path.read_text(encoding="utf-8")
    found = source.count(fault.right)
    if found != 1:
        raise ValueError(f"{fault.name}: its text stands {found} times in {fault.path}, not once: {fault.right!r}")
    path.write_text(source.replace(fault.right, fault.wrong), encoding="utf-8")


def _first_failure(tree: Path, arguments: list[str]) -> str:
    """Run pytest in a copy of the tree; returns the first test that fails, or how else the tests end, empty if all pass."""
    roots = os.pathsep.join(str(tree / root) for root in (".", "kernels", "spark_glue"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", "--as-found", *arguments]
    environment = {**os.environ, "PYTHONPATH": roots}
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no end after {MOST_SECONDS} s"
    if run.returncode in (0, NONE_FOUND):
        return ""
    if run.returncode in CRASHES:
        return f"ended by {CRASHES[run.returncode]}"
    failures = [line for line in run.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")) and "::" in line]
    if run.returncode != FAILED or not failures:
        raise RuntimeError(f"pytest ended with {run.returncode}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return failures[0].partition(" ")[2].split(" - ")[0]


if __name__ == "__main__":
    sys.exit(main())
