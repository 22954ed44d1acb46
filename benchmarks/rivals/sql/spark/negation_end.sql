-- The first N after each C, then the first C after each A.
WITH relevant AS (
  SELECT key, ts, rowid AS n, type FROM events WHERE type IN ('A', 'N')
  UNION ALL SELECT key, ts, min(rowid) AS n, 'C' AS type FROM events WHERE type = 'C' GROUP BY key, ts),
c AS (SELECT key, ts, n, type, last_value(CASE WHEN type = 'N' THEN ts END) IGNORE NULLS OVER later AS no
  FROM relevant WINDOW later AS (PARTITION BY key ORDER BY ts DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
a AS (SELECT ts, n, type, last_value(CASE WHEN type = 'C' THEN struct(n, ts, no) END) IGNORE NULLS OVER later AS c
  FROM c WINDOW later AS (PARTITION BY key ORDER BY ts DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT n AS first, c.n AS last FROM a WHERE type = 'A' AND c.ts - ts <= {window} AND (c.no IS NULL OR c.no - ts > {window})
