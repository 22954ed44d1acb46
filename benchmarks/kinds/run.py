"""Compare the library with a C++ loop that delivers all row numbers, for many kinds of questions as users ask them.

``python -m benchmarks.kinds.run [--events N] [--kinds NAME …] [--repeats N] [--quick] [--folder FOLDER]`` prints its page and
writes it with its record to ``benchmarks/results/``. Each kind is checked first: the loop and the library must find the same rows.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.baselines.cpp_loops import has_compiler
from benchmarks.baselines.environment import environment
from benchmarks.kinds.measure import KindTimes, measured
from benchmarks.kinds.questions import KINDS
from benchmarks.kinds.report import PACKAGES, markdown, write
from benchmarks.record.folders import RESULTS
from benchmarks.workloads.questions import DEFAULT_EVENTS

REPEATS = 3
QUICK_EVENTS, QUICK_REPEATS = 1_000_000, 2


def measurements(names: Sequence[str], events: int, repeats: int) -> Iterator[KindTimes]:
    """Yield each kind by itself; what one has taken is given back before the next."""
    for name in names:
        print(f"{name}, {events:,} events", file=sys.stderr, flush=True)
        yield measured(KINDS[name], events, repeats)
        gc.collect()
        pa.default_memory_pool().release_unused()


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare gpu_cep with C++ loops over many kinds of questions.")
    parser.add_argument("--events", type=int, help=f"so many events of each kind; {DEFAULT_EVENTS:,} unless told")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="NAME", help="some kinds instead of all")
    parser.add_argument("--repeats", type=int, help=f"the best of so many runs counts; {REPEATS} unless told")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_EVENTS:,} events and {QUICK_REPEATS} runs, unless told")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the record goes")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = _arguments(argv)
    if not has_compiler():
        print("there is no g++, so nothing is compared with C++", file=sys.stderr)
        return 2
    events = options.events or (QUICK_EVENTS if options.quick else DEFAULT_EVENTS)
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    where = environment(PACKAGES)
    found = list(measurements(options.kinds, events, repeats))
    print(markdown(where, found, repeats))
    print(*write(where, found, repeats, options.folder), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
