"""How fast SQL's row patterns are matched: in rows a second, as multiples of copying the columns, beside C++ loops and DuckDB.

``python -m benchmarks.row_patterns.run [--rows N] [--threads N] [--repeats N] [--only NAME …] [--folder FOLDER]`` asks each question
of few and of many partitions, over rows in order, prints its page and writes it with its record to ``benchmarks/results/``. What
others answer is checked first: they must find the same rows. The processor's time is that of all threads.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.record import pages
from benchmarks.record.clocks import Seconds, least
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import environment, name_on
from benchmarks.row_patterns.peers import agree, loop_of, statement_of
from benchmarks.row_patterns.questions import KEYS, QUESTIONS, Question, rows_of
from benchmarks.row_patterns.report import PACKAGES, RowPatternTimes, markdown


def copy_columns(table: pa.Table) -> list[np.ndarray]:
    """Return a copy of each column; of text its codes."""
    columns = (table[name].combine_chunks() for name in table.column_names)
    return [(each.indices if pa.types.is_dictionary(each.type) else each).to_numpy().copy() for each in columns]


def measured(question: Question, partitions: str, table: pa.Table, threads: int, repeats: int, copying: float) -> RowPatternTimes:
    """Return a question's times and those of what else answers it.

    Raises
    ------
    ValueError
        A loop or DuckDB found other rows.
    """
    text = f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {question.clauses})"
    found = gpu_cep.match(table, text, threads=threads)
    taken, _ = least(lambda: gpu_cep.match(table, text, threads=threads), repeats)
    loop = _beside(loop_of(question.name, table), found, question.name, repeats)
    duckdb = _beside(statement_of(question.name, table, threads), found, question.name, repeats)
    return RowPatternTimes(
        question=question.name,
        partitions=partitions,
        rows=len(table),
        result=found.num_rows,
        aimed=question.labels and "ALL ROWS" not in question.clauses,
        seconds=taken.clock,
        cpu_seconds=taken.cpu,
        copying=copying,
        loop=None if loop is None else loop.cpu,
        duckdb_clock=None if duckdb is None else duckdb.clock,
        duckdb=None if duckdb is None else duckdb.cpu,
    )


def _beside(run: Callable[[], pa.Table] | None, ours: pa.Table, name: str, repeats: int) -> Seconds | None:
    if run is None:
        return None
    if not agree(ours, run()):
        raise ValueError(f"{name}: the rows of another contestant are not ours")
    return least(run, repeats)[0]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure how fast SQL's row patterns are matched.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in QUESTIONS], default=[each.name for each in QUESTIONS])
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the record goes")
    options = parser.parse_args(argv)
    where, found = environment(PACKAGES), []
    for partitions, count in KEYS.items():
        table = rows_of(options.rows, count)
        copying = least(partial(copy_columns, table), options.repeats)[0].cpu
        for question in QUESTIONS:
            if question.name in options.only:
                found.append(measured(question, partitions, table, options.threads, options.repeats, copying))
                print(f"{question.name}, {partitions}: {found[-1].rows / found[-1].seconds / 1e6:.1f} M rows/s", file=sys.stderr)
    page = markdown(where, found, options.threads, options.repeats)
    questions = [asdict(each) for each in found]
    record = {"environment": where, "threads": options.threads, "repeats": options.repeats, "questions": questions}
    pages.publish(page, options.folder, name_on(where, "row-patterns"), record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
