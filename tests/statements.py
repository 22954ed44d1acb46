"""Statements of SQL with MATCH_RECOGNIZE that DuckDB and Spark read alike, and what each of them returns."""

from __future__ import annotations

import pyarrow as pa

TICKS = pa.table({"ts": [1, 2, 3, 4, 1, 2], "sym": ["A"] * 4 + ["B"] * 2, "price": [5, 3, 4, 2, 9, 8]})
FALL = (
    "MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES FIRST(price) AS high, LAST(D.price) AS low"
    " PATTERN (S D) DEFINE D AS price < PREV(price))"
)
ALL = "MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts ALL ROWS PER MATCH PATTERN (S D) DEFINE D AS price < PREV(price))"
FALLS = [("A", 4, 2), ("A", 5, 3), ("B", 9, 8)]

STATEMENTS = {
    "a table": f"SELECT * FROM ticks {FALL}",
    "an alias": f"SELECT m.* FROM ticks {FALL} AS m WHERE m.low > 0",
    "an alias before": f"SELECT * FROM ticks AS t {FALL}",
    "a subquery": f"SELECT * FROM (SELECT * FROM ticks) {FALL} AS m",
    "a join as relation": f"SELECT * FROM (ticks JOIN (SELECT 1 AS one) AS o ON true) {FALL}",
    "in a subquery": f"SELECT * FROM (SELECT * FROM ticks {FALL} AS m) AS n",
    "in WITH": f"WITH x AS (SELECT * FROM ticks {FALL}) SELECT * FROM x",
    "over WITH": f"WITH x AS (SELECT * FROM ticks), y (a, sym, price, ts) AS (SELECT 1, sym, price, ts FROM x) SELECT * FROM y {FALL}",
    "over nested WITH": f"WITH x AS (SELECT * FROM ticks) SELECT * FROM (WITH y AS (SELECT * FROM x) SELECT * FROM y {FALL} AS m)",
    "a name of WITH that hides a table": f"WITH ticks AS (SELECT * FROM ticks) SELECT * FROM ticks {FALL}",
    "over another": f"SELECT * FROM ticks {ALL} AS m {FALL}",
    "right behind another": f"SELECT * FROM ticks {ALL} {FALL} AS m",
    "over a subquery with another": f"SELECT * FROM (SELECT * FROM ticks {ALL} AS m) AS s {FALL}",
    "joined": f"SELECT m.* FROM (SELECT 'A' AS k UNION ALL SELECT 'B') AS k JOIN ticks {FALL} AS m ON k.k = m.sym",
    "behind a comma": f"SELECT m.* FROM (SELECT 1) AS o, ticks {FALL} AS m",
    "behind ON and a comma": f"SELECT m.* FROM ticks a JOIN ticks b ON a.ts = b.ts AND a.ts = 1, ticks {FALL} m WHERE a.sym < b.sym",
    "twice": f"SELECT a.* FROM ticks {FALL} AS a JOIN ticks {ALL} AS b ON a.sym = b.sym AND a.high = b.price",
    "in EXISTS": f"SELECT m.* FROM ticks {FALL} AS m WHERE EXISTS (SELECT 1 FROM ticks {FALL} AS n WHERE n.low = m.low)",
    "in a comment": f"SELECT m.* /* t MATCH_RECOGNIZE ( */ FROM ticks {FALL} AS m -- MATCH_RECOGNIZE (",
    "in a text": f"SELECT m.* FROM ticks {FALL} AS m WHERE 'MATCH_RECOGNIZE (' <> ''",
    "small letters and blanks": "select * from ticks " + FALL.replace("MATCH_RECOGNIZE (", "match_recognize -- a comment (\n ("),
    "brackets in texts": "SELECT * FROM ticks " + FALL.replace("DEFINE", "DEFINE /* ( */ S AS sym <> ')' OR sym <> '('' (',"),
    "a semicolon": f"SELECT * FROM ticks {FALL};",
}  # fmt: skip
