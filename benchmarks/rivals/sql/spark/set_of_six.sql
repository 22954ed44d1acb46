-- The next G from each event on, and from it that of the next event of each type: the latest ends the match. Backwards, as Spark
-- computes a frame that ends with the stream anew for each row.
WITH relevant AS (
  SELECT key, ts, type, last_value(CASE WHEN type = 'G' THEN ts END) IGNORE NULLS OVER later AS e
  FROM events WHERE type IN ('A', 'B', 'C', 'D', 'E', 'F', 'G')
  WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
ends AS (SELECT ts, last_value(CASE WHEN type = 'A' THEN e END) IGNORE NULLS OVER later AS A,
  last_value(CASE WHEN type = 'B' THEN e END) IGNORE NULLS OVER later AS B,
  last_value(CASE WHEN type = 'C' THEN e END) IGNORE NULLS OVER later AS C,
  last_value(CASE WHEN type = 'D' THEN e END) IGNORE NULLS OVER later AS D,
  last_value(CASE WHEN type = 'E' THEN e END) IGNORE NULLS OVER later AS E,
  last_value(CASE WHEN type = 'F' THEN e END) IGNORE NULLS OVER later AS F FROM relevant WHERE type <> 'G' AND e IS NOT NULL
  WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
SELECT ts AS first, greatest(A, B, C, D, E, F) AS last FROM ends
WHERE A IS NOT NULL AND B IS NOT NULL AND C IS NOT NULL AND D IS NOT NULL AND E IS NOT NULL AND F IS NOT NULL
  AND greatest(A, B, C, D, E, F) - ts <= {window}
