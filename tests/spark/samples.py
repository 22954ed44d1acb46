"""Event streams and queries that the Spark tests share, and results in a form that knows no order."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

import gpu_cep as cep
from gpu_cep.keywords import read_keywords
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.schemas import arrow_schema

QUERIES = {
    "derived key": "PATTERN SEQ(AND(A a, B b+), C c) WHERE [key] AND prev(b.x) < b.x WITHIN 20",
    "partition by": "PARTITION BY key PATTERN SEQ(A a, B b+) WHERE b.x > a.x WITHIN 10 RETURN a.n AS n, count(b) AS many, max(b.x) AS most",
    "both": "PARTITION BY user PATTERN SEQ(A a, B b) WHERE a.key = b.key AND a.n <> b.n WITHIN 15",
    "any match": "PATTERN SEQ(A a, B b+, C c) WHERE skip_till_any_match { [key] AND [user] } WITHIN 60",
    "no key": "PATTERN SEQ(A a, C c) WHERE a.x < c.x - 60 WITHIN 4",
    "count window": "PARTITION BY user PATTERN SEQ(A a, B b) WHERE [key] WITHIN 3 EVENTS",
    "count window, no key": "PATTERN SEQ(A a, B b, C c) WHERE a.key = b.key WITHIN 8 EVENTS",
    "branches": "PARTITION BY key PATTERN SEQ(A a, OR(B b+, C c), D d?) WHERE count(b) > 1 AND c.x > a.x WITHIN 12 RETURN b, c.n AS m",
    "negation": "PARTITION BY key PATTERN SEQ(NOT(D d), A a, NOT(C c), B b) WHERE c.n > a.n AND d.n = b.n WITHIN 15",
    "negation between derived keys": "PATTERN SEQ(A a, NOT(C c), B b+) WHERE [key] AND avg(b.n) > a.n WITHIN 40",
    "robust": "PATTERN SEQ(A a, B b+, C c) WHERE robust_skip_till_next_match { [key] AND sum(b.n) < c.n } WITHIN 60",
    "strict contiguity": "PARTITION BY user PATTERN SEQ(A a, B b+) WHERE strict_contiguity { a.n <> b.n } WITHIN 30",
    "partition contiguity": "PATTERN SEQ(A a, B b+) WHERE partition_contiguity { [key] AND [user] } WITHIN 90",
    "until": "PARTITION BY user PATTERN SEQ(A a, B b+ UNTIL (type = 'D' AND x > 30), C c) WHERE [key] WITHIN 60",
    "a variable without properties": "PARTITION BY key PATTERN SEQ(A a, any, C c) WHERE any.n > a.n WITHIN 20",
}


def streams(rows: int, seed: int, distinct_times: bool = True) -> pa.Table:
    """Events of a few streams with NULL and NaN attributes and NULL keys, in no order."""
    rng = np.random.default_rng(seed)
    times = rng.permutation(rows) if distinct_times else rng.integers(0, rows // 2, rows)
    x = rng.integers(0, 100, rows).astype(float)
    x[rng.random(rows) < 0.05] = np.nan
    keys = np.array(["k1", "k2", "k3", "k4"])
    return pa.table(
        {
            "unread": pa.nulls(rows, pa.string()),
            "ts": pa.array(times, pa.int64()),
            "type": pa.array(rng.choice(list("ABCD"), rows)),
            "key": pa.array(rng.choice(keys, rows), mask=rng.random(rows) < 0.15),
            "user": pa.array(rng.integers(0, 3, rows), pa.int32(), mask=rng.random(rows) < 0.1),
            "x": pa.array(x, mask=rng.random(rows) < 0.05),
            "n": pa.array(rng.integers(0, 9, rows), pa.int64()),
        }
    )


def physical_plan(frame: DataFrame) -> str:
    """What Spark will do for `frame`, in words."""
    with redirect_stdout(StringIO()) as shown:
        frame.explain()
    return shown.getvalue()


def as_set(table: pa.Table) -> list[str]:
    """The rows of a result as texts in order, in which NaN equals itself."""
    return sorted(map(repr, table.to_pylist()))


def matched_here(
    frame: DataFrame, query: str, slices: Any = None, worker_memory: Any = None, rows: pa.Table | None = None, **options: Any
) -> pa.Table:
    """Return what this process finds in the rows that Spark reads, which it need not read if they are given.

    How tasks share them changes nothing.
    """
    narrow = NarrowQuery.of(query, arrow_schema(frame.schema, "UTC"), *read_keywords(options))
    rows = frame.select(*(f"`{name}`" for name in narrow.events.names)).toArrow() if rows is None else rows.select(narrow.events.names)
    return cep.match(rows, query, **{**options, "order_by": list(narrow.options.order_by)})
