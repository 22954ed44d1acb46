-- The first C after each B, then the first B after each A; a C that has the time of an earlier B is none.
WITH ends AS (
  SELECT key, ts, min(rowid) FILTER (WHERE type = 'B') AS b, min(rowid) FILTER (WHERE type = 'C') AS c
  FROM events WHERE type IN ('B', 'C') GROUP BY key, ts),
relevant AS (
  SELECT key, ts, rowid AS a, CAST(NULL AS BIGINT) AS b, CAST(NULL AS BIGINT) AS c FROM events WHERE type = 'A'
  UNION ALL SELECT key, ts, NULL AS a, b, CASE WHEN b IS NULL OR c < b THEN c END AS c FROM ends),
started AS (SELECT key, ts, a, b, last_value(CASE WHEN c IS NOT NULL THEN struct(c AS n, ts) END) IGNORE NULLS OVER later AS next
  FROM relevant WINDOW later AS (PARTITION BY key ORDER BY ts DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
found AS (SELECT ts, a, last_value(CASE WHEN b IS NOT NULL THEN next END) IGNORE NULLS OVER later AS next
  FROM started WINDOW later AS (PARTITION BY key ORDER BY ts DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT a AS first, next.n AS last FROM found WHERE a IS NOT NULL AND next.ts - ts <= {window}
