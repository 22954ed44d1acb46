"""What else answers some of the questions: loops in C++, written for one question each, and DuckDB with window functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.baselines.cpp_loops import has_compiler, library_of

SOURCE = Path(__file__).parent / "loops.cpp"

# The question -> the loop that answers it.
LOOPS = {
    "sessions": "sessions",
    "V shape, next row": "v_shape_next_row",
    "funnel, no window": "funnel",
    "equal rows": "equal_rows",
    "above the first": "above_the_first",
    "running sum": "running_sum",
}

# The question -> SQL that gives the same rows without MATCH_RECOGNIZE.
STATEMENTS = {
    "sessions": """
        WITH begun AS (
            SELECT key, ts, rowid AS n, ts - lag(ts) OVER w >= 4 IS NOT FALSE AS begins
            FROM rows WINDOW w AS (PARTITION BY key ORDER BY ts, rowid)),
        numbered AS (SELECT key, ts, sum(begins::INT) OVER (PARTITION BY key ORDER BY ts, n ROWS UNBOUNDED PRECEDING) AS session FROM begun)
        SELECT key, min(ts) AS t, max(ts) AS u, count(*) AS n FROM numbered GROUP BY key, session""",
    "V shape, next row": """
        WITH turns AS (
            SELECT key, ts, row_number() OVER w AS n, price < lag(price) OVER w AS falls, price > lag(price) OVER w AS rises
            FROM rows WINDOW w AS (PARTITION BY key ORDER BY ts, rowid)),
        ends AS (
            SELECT *, coalesce(min(CASE WHEN falls THEN NULL ELSE n END) OVER w, count(*) OVER (PARTITION BY key) + 1) AS bottom,
                coalesce(min(CASE WHEN rises THEN NULL ELSE n END) OVER w, count(*) OVER (PARTITION BY key) + 1) AS top
            FROM turns WINDOW w AS (PARTITION BY key ORDER BY n ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
        SELECT s.key, s.ts AS t, last.ts AS u, last.n - s.n + 1 AS n
        FROM ends s JOIN ends b ON b.key = s.key AND b.n = s.bottom AND b.rises
        JOIN ends last ON last.key = b.key AND last.n = b.top - 1
        WHERE s.bottom > s.n + 1""",
}


class _Rows(ctypes.Structure):
    _fields_ = (*((name, ctypes.c_void_p) for name in ("key", "ts", "price", "size", "level", "kind")), ("rows", ctypes.c_int64))


class _Found(ctypes.Structure):
    _fields_ = (*((name, ctypes.c_void_p) for name in ("key", "first", "last", "count")), ("matches", ctypes.c_int64))


def loop_of(question: str, table: pa.Table) -> Callable[[], pa.Table] | None:
    """Return what runs the loop of a question over rows in order and gives the matches; None if there is no loop, or no compiler."""
    if question not in LOOPS or not has_compiler():
        return None
    arrays: dict[str, np.ndarray] = {name: table[name].to_numpy() for name in ("key", "ts", "price", "size", "level")}
    arrays["kind"] = table["kind"].combine_chunks().indices.to_numpy()
    rows = _Rows(**{name: array.ctypes.data for name, array in arrays.items()}, rows=len(table))
    run = getattr(_library(), LOOPS[question])

    def matches() -> pa.Table:
        # the function holds the arrays, at which `rows` points
        size = len(arrays["key"])
        columns = {name: np.empty(size, np.int32 if name == "key" else np.int64) for name in ("key", "t", "u", "n")}
        found = _Found(*(each.ctypes.data for each in columns.values()), 0)
        run(ctypes.byref(rows), ctypes.byref(found))
        return pa.table({name: each[: found.matches] for name, each in columns.items()})

    return matches


def statement_of(question: str, table: pa.Table, threads: int) -> Callable[[], pa.Table] | None:
    """Return what asks DuckDB for the same rows, over its own table; None if there is no SQL for the question."""
    if question not in STATEMENTS:
        return None
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.register("given", table.select(["key", "ts", "price"]))
    connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    return lambda: connection.sql(STATEMENTS[question]).to_arrow_table()


def agree(ours: pa.Table, theirs: pa.Table) -> bool:
    """Return whether two results have the same rows, in any order."""
    order = [(name, "ascending") for name in ("key", "t", "u", "n")]
    columns = [pa.table({name: table[name].cast(pa.int64()) for name, _ in order}).sort_by(order) for table in (ours, theirs)]
    return bool(columns[0].equals(columns[1]))


@cache
def _library() -> ctypes.CDLL:
    return library_of("row-patterns", [SOURCE])
