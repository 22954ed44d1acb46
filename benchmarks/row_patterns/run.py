"""How fast SQL's row patterns are matched, in rows a second and as multiples of copying the columns.

``python -m benchmarks.row_patterns.run [--rows N] [--threads N] [--repeats N] [--only NAME …]`` asks each question of few and
of many partitions, over rows in order, and prints a table. The processor's time is that of all threads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.record import pages
from benchmarks.row_patterns.questions import KEYS, QUESTIONS, Question, rows_of

# What label-only patterns are to reach with ONE ROW PER MATCH on two threads.
AIM = 40e6


def seconds(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The least time by the clock and the least processor time of some runs, after one that warms up."""
    run()
    clock, cpu = [], []
    for _ in range(repeats):
        begin, spent = time.perf_counter(), time.process_time()
        run()
        clock.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - spent)
    return min(clock), min(cpu)


def copy_columns(table: pa.Table) -> list[np.ndarray]:
    """A copy of each column; of text its codes."""
    columns = (table[name].combine_chunks() for name in table.column_names)
    return [(each.indices if pa.types.is_dictionary(each.type) else each).to_numpy().copy() for each in columns]


def measured(question: Question, table: pa.Table, threads: int, repeats: int, copying: float) -> tuple[str, ...]:
    """A row of the table: the matches, the rates, and the processor time as a multiple of copying."""
    text = f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {question.clauses})"
    found = gpu_cep.match(table, text, threads=threads).num_rows
    clock, cpu = seconds(lambda: gpu_cep.match(table, text, threads=threads), repeats)
    rate = len(table) / clock
    met = "" if not question.labels or "ALL ROWS" in question.clauses else "yes" if rate >= AIM else "no"
    return f"{found:,}", f"{rate / 1e6:.1f}", f"{len(table) / cpu / 1e6:.1f}", f"{cpu / copying:.1f}", met


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure how fast SQL's row patterns are matched.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in QUESTIONS], default=[each.name for each in QUESTIONS])
    options = parser.parse_args(argv)
    rows = []
    for keys, count in KEYS.items():
        table = rows_of(options.rows, count)
        _, copying = seconds(lambda table=table: copy_columns(table), options.repeats)
        for question in QUESTIONS:
            if question.name in options.only:
                rows.append((question.name, keys, *measured(question, table, options.threads, options.repeats, copying)))
                print(*rows[-1], sep="\t", file=sys.stderr)
    head = ("question", "rows", "result", "M rows/s", "M rows per CPU s", "× copying", f"≥ {AIM / 1e6:.0f} M/s")
    print(pages.table([head, *rows], figures=len(head) - 2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
