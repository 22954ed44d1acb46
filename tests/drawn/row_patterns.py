"""Random MATCH_RECOGNIZE clauses and small tables for hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

VARIABLES = ("A", "B", "C", "X")
QUANTIFIERS = ("+", "?", "*", "{2}", "{1,2}", "{2,}", "{0,2}", "+?", "??", "*?", "{1,2}?", "{1,}?")

# What one row decides, what its neighbours decide, and what reads the match so far.
ALONE = (
    "c = 'a'", "c IN ('b', 'c')", "c <> 'a'", "x > 1", "x <= 2", "x IS NULL", "y > 0.5", "x + y > 2", "c = d", "m > 1.5",
    "lower(c) = 'b'", "x % 2 = 0", "TRUE", "f", "coalesce(x, 9) > 2", "c = 'a' OR 1 > 2", "PREV(coalesce(x, 9), 0) > 2",
    "coalesce(c = 'a', f)",
)  # fmt: skip
BESIDE = (
    "x > PREV(x)", "x < PREV(x)", "x <> NEXT(x)", "c = PREV(c)", "c < PREV(d)", "PREV(c) = 'a'", "NEXT(c, 2) IS NULL", "PREV(y) < y",
    "x > 0 AND x > PREV(x, 2)", "PREV(coalesce(x, 0)) = 0", "NEXT(x) IS NULL OR NEXT(x) > 1", "PREV(x) + x > NEXT(x)", "m >= PREV(m)",
    "PREV(x + y) < 3",
)  # fmt: skip
READING = (
    "x >= FIRST(x)", "x > FIRST(A.x)", "x > LAST(B.x)", "sum(x) <= 5", "sum(A.x) < 4", "count(*) <= 2", "count(A.*) < count(B.*) + 2",
    "min(x) > 0", "max(B.x) < 3", "avg(A.x) > 1", "PREV(CLASSIFIER()) = 'A'", "CLASSIFIER(U) = 'A'", "FIRST(c) = c", "LAST(x, 1) < x",
    "PREV(LAST(A.x), 1) < x", "FIRST(A.x, 1) > 1", "sum(y) < 2", "count(x) < 3", "max(c) = 'b'", "NEXT(FIRST(x), 1) <= x", "sum(A.m) < 4",
    "min(y) < 1", "count(U.x) < 3", "sum(CASE WHEN CLASSIFIER() = 'A' THEN 1 ELSE x END) < 5", "A.x < 2", "B.x IS NULL", "U.x > 0",
    "x > 0 AND count(*) < 3 AND x >= PREV(x)", "coalesce(LAST(B.x), 1) > 0", "avg(y) < 1 OR c = 'a'", "avg(m) > 1",
    "FIRST(CLASSIFIER()) = d", "max(CLASSIFIER()) >= 'B'", "LAST(CLASSIFIER(), 1) = 'B'", "NEXT(FIRST(CLASSIFIER()), 1) = 'B'",
    "PREV(LAST(CLASSIFIER(U), 1)) = 'B'", "PREV(CLASSIFIER(), 2) = 'A'", "PREV(FIRST(CLASSIFIER(U), 1), 2) = 'A'", "x >= FIRST(A.x, 1)",
    "x <= LAST(x, 2)", "PREV(LAST(U.x, 1)) = x", "count(DISTINCT x) < 3", "count(DISTINCT A.c) < 2", "count(DISTINCT y) < 3",
    "count(DISTINCT CLASSIFIER()) < 3", "count(DISTINCT U.m) <= count(DISTINCT x)", "count(DISTINCT x + y) = 1", "upper(FIRST(c)) = 'A'",
    "length(LAST(A.c, 1)) = 1", "sum(A.x) / count(B.*) >= 1", "avg(x) <= y", "sum(y) > LAST(y, 1)", "count(x) = LAST(A.x)",
    "x > FIRST(x) + 1", "2 * x > FIRST(A.x)", "LAST(x) - FIRST(x) <= 1", "y < 0.5 * sum(y)", "x < 1.5 * FIRST(x)", "y / FIRST(y) > 1",
    "x % 2 = FIRST(x) % LAST(x, 1)", "x >= FIRST(x) AND count(*) < 4 AND sum(y) < 3", "A.x < 3 AND c = FIRST(c)",
    "sum(x) - x < 4 AND y >= min(y)", "FIRST(coalesce(A.x, 2)) > 1", "max(nullif(c, 'a')) = 'b'", "LAST(nullif(c, 'b'), 1) > 'b'",
    "count(DISTINCT coalesce(c, d)) < 3", "min(CASE WHEN x > 1 THEN c ELSE d END) < c", "count(coalesce(A.c, A.d)) < 3",
)  # fmt: skip
# What reads the variable's own row before, and says what holds if there is none; some of it says the same in every row of a run.
STEPWISE = (
    "x < LAST(B.x, 1) OR LAST(B.x, 1) IS NULL AND x < A.x", "(LAST(x, 1) IS NULL AND x > A.x) OR x > LAST(x, 1)", "B.x > LAST(B.x, 1)",
    "LAST(B.x, 1) IS NULL OR x >= LAST(B.x, 1)", "c = LAST(B.c, 1) OR (LAST(B.c, 1) IS NULL AND c = A.c)", "LAST(B.x, 1) IS NULL OR x > 0",
    "LAST(B.x, 1) IS NULL AND x > A.x", "x < LAST(x, 2) OR LAST(x, 2) IS NULL", "NOT (LAST(B.x, 1) IS NULL OR x < LAST(B.x, 1))",
    "x > 0 AND (LAST(B.x, 1) IS NOT NULL OR A.x > 0) AND x <> LAST(x, 1)", "x < LAST(B.x, 1) OR LAST(B.x, 1) IS NULL AND y < A.y",
    "x IN (1, 3, NULL) OR x = LAST(B.x, 1)", "PREV(LAST(B.x, 1)) < x OR PREV(LAST(B.x, 1)) IS NULL AND PREV(A.x) < x",
    "x < LAST(U.x, 1) OR LAST(U.x, 1) IS NULL", "coalesce(LAST(B.x, 1), A.x) > x", "x > FIRST(B.x) OR FIRST(B.x) IS NULL",
    "x + LAST(B.x, 1) > 2 OR LAST(B.x, 1) IS NULL AND x + A.x > 2", "x < FIRST(x, 1) OR FIRST(x, 1) IS NULL AND x < FIRST(x)",
)  # fmt: skip
MEASURES = (
    "MATCH_NUMBER()", "CLASSIFIER()", "count(*)", "FINAL count(*)", "FIRST(n)", "LAST(n)", "FINAL LAST(n)", "x", "A.x", "LAST(A.x, 1)",
    "FIRST(B.c, 1)", "PREV(x)", "NEXT(LAST(A.c), 2)", "sum(x)", "FINAL sum(A.x)", "avg(x)", "FINAL avg(m)", "min(y)", "max(y)", "min(c)",
    "FINAL max(U.c)", "count(x)", "count(DISTINCT c)", "FINAL count(DISTINCT y)", "median(x)", "FINAL median(y)", "median(m)", "sum(U.m)",
    "CLASSIFIER(U)", "PREV(CLASSIFIER())", "NEXT(CLASSIFIER())", "FIRST(CLASSIFIER(), 1)", "LAST(x) - FIRST(x)", "x > 1 AND A.x IS NULL",
    "CASE WHEN x > 1 THEN c WHEN A.x = 1 THEN 'one' END", "CASE WHEN CLASSIFIER() = 'A' THEN 1 ELSE 0 END", "CLASSIFIER() = c",
    "FIRST(A.n) + MATCH_NUMBER()", "FIRST(A.n + MATCH_NUMBER())", "PREV(coalesce(MATCH_NUMBER() - x, 7))",
    "t", "LAST(B.t)", "sum(CASE WHEN CLASSIFIER() = 'A' THEN 1 ELSE 0 END)", "sum(x * y)",
    "PREV(coalesce(x, 7))", "coalesce(A.x, 7)", "min(CLASSIFIER())", "sum(A.x) / count(*)", "lower(A.c)", "count(A.*)",
    "FINAL FIRST(U.x)", "PREV(FIRST(x), 1)", "NULL", "'text'", "m", "FINAL min(A.x)", "1 + 1", "d", "min(x + 1)", "FINAL sum(y)",
    "sum(y)", "count(c)", "upper(LAST(A.c))", "upper(PREV(FIRST(c), 1))", "length(FINAL FIRST(U.c))",
    "max(CASE WHEN x > 1 THEN c ELSE d END)", "count(DISTINCT coalesce(d, c, 'e'))", "count(CASE WHEN CLASSIFIER() = 'A' THEN c END)",
    "FINAL min(coalesce(U.c, 'b'))", "PREV(nullif(c, 'a')) < d",
    "count(A.n)", "count(U.*)", "FINAL count(B.n)", "FIRST(A.n)", "PREV(LAST(A.n), 1)", "U.n", "FINAL LAST(A.n)",
)  # fmt: skip

ORDERS = (
    "", "ORDER BY n", "ORDER BY n", "ORDER BY o", "ORDER BY o DESC NULLS FIRST", "ORDER BY z DESC, n DESC", "ORDER BY d NULLS FIRST, o",
    "ORDER BY z, t", "ORDER BY o NULLS FIRST, n", "ORDER BY c DESC",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A clause without MATCH_RECOGNIZE and its brackets, and the rows that it is asked of."""

    clauses: str
    table: pa.Table


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda parts: f"({' '.join(parts)})"),
        several.map(lambda parts: f"({' | '.join(parts)})"),
        several.map(lambda parts: f"PERMUTE({', '.join(parts)})"),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda pair: f"({pair[0]}){pair[1]}"),
    )


atoms = st.sampled_from((*VARIABLES * 4, "()", "^", "$"))
patterns = st.recursive(atoms, _joined, max_leaves=6).filter(lambda text: any(name in text.replace("PERMUTE", "") for name in VARIABLES))
excluding = st.tuples(patterns, patterns, atoms).map(
    lambda parts: f"{parts[0]} {{- {parts[1]} -}} {parts[2]}?" if parts[2] in VARIABLES else f"{{- {parts[1]} -}} | {parts[0]}"
)


def _speaks_of(text: str, used: list[str]) -> bool:
    """Whether an expression names variables of the pattern only."""
    return all(f"{name}." not in text or name in used for name in VARIABLES)


@st.composite
def tables(draw: st.DrawFn, most: int = 9) -> pa.Table:
    size = draw(st.integers(0, most))

    def column(values: st.SearchStrategy[object], type: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(values, min_size=size, max_size=size)), type)

    texts = column(st.sampled_from(["a", "b", "c", "a", "b", None]), pa.string())
    return pa.table(
        {
            "n": pa.array(range(size), pa.int64()),
            "k": column(st.sampled_from([None, 1, 2]), pa.int32()),
            "o": column(st.sampled_from([None, 0, 1, 2, 3]), pa.int64()),
            "z": column(st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), float("inf")]), pa.float64()),
            "c": texts.dictionary_encode() if draw(st.booleans()) else texts,
            "d": column(st.sampled_from(["a", "b", "A", None]), pa.string()),
            "x": column(st.sampled_from([0, 1, 2, 3, None]), pa.int32()),
            "y": column(st.sampled_from([0.0, -0.0, 0.25, 1.0, 2.5, None, float("nan")]), pa.float64()),
            "m": column(st.sampled_from([Decimal("1.50"), Decimal("0.25"), None, Decimal("3.00")]), pa.decimal128(9, 2)),
            "t": column(st.integers(0, 5), pa.timestamp("ms")),
            "f": column(st.sampled_from([True, False, None]), pa.bool_()),
        }
    )


@st.composite
def clauses(
    draw: st.DrawFn, conditions: tuple[str, ...] = ALONE + BESIDE + READING, shapes: st.SearchStrategy[str] | None = None, most: int = 9
) -> Drawn:
    """Draw a whole clause: all keys, measures, rows, skip modes and windows; `shapes` are the patterns, None for any.

    There are `most` rows at most.
    """
    rows = draw(st.sampled_from(["", *(f"ALL ROWS PER MATCH {empty}" for empty in ("", "OMIT EMPTY MATCHES", "WITH UNMATCHED ROWS"))]))
    given = patterns if rows.endswith("UNMATCHED ROWS") else st.one_of(patterns, patterns, excluding)
    pattern = draw(given if shapes is None else shapes)
    used = [name for name in VARIABLES if name in pattern.replace("PERMUTE", "")]
    subset = f"SUBSET U = ({', '.join(draw(st.lists(st.sampled_from(used), min_size=1, unique=True)))})"
    defined = [name for name in used if name != "X"]
    chosen = [(name, draw(st.sampled_from([text for text in conditions if _speaks_of(text, used)]))) for name in defined]
    define = f"DEFINE {', '.join(f'{name} AS {text}' for name, text in chosen)}" if chosen else ""
    measures = draw(st.lists(st.sampled_from([text for text in MEASURES if _speaks_of(text, used)]), min_size=1, max_size=4))
    named = ", ".join(f"{text} AS q{number}" for number, text in enumerate(measures))
    partition = draw(st.sampled_from(["", "PARTITION BY k", "PARTITION BY c", "PARTITION BY k, d", "PARTITION BY z"]))
    order = draw(st.sampled_from(ORDERS))
    skips = ["", "", "PAST LAST ROW", "TO NEXT ROW", *(f"TO {way} {name}" for way in ("FIRST", "LAST") for name in (*used, "U"))]
    skip = draw(st.sampled_from(skips))
    skip = skip and f"AFTER MATCH SKIP {skip}"
    windows = ["", "", "WITHIN 2 EVENTS", "WITHIN 4 EVENTS"]
    windows += ["WITHIN 1", "WITHIN 0"] if order in ("ORDER BY n", "ORDER BY o", "ORDER BY z, t", "ORDER BY o NULLS FIRST, n") else []
    window = draw(st.sampled_from(windows))
    return Drawn(f"{partition} {order} MEASURES {named} {rows} {skip} PATTERN ({pattern}) {window} {subset} {define}", draw(tables(most)))
