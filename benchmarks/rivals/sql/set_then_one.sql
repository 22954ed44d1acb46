-- The next B from each event on, and from it that of the next C, P and D: the latest of the three ends the match.
WITH relevant AS (
  SELECT key, ts, type, first_value(CASE WHEN type = 'B' THEN ts END IGNORE NULLS) OVER later AS e
  FROM events WHERE type IN ('C', 'P', 'D', 'B')
  WINDOW later AS (PARTITION BY key ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)),
ends AS (SELECT ts, first_value(CASE WHEN type = 'C' THEN e END IGNORE NULLS) OVER later AS C,
  first_value(CASE WHEN type = 'P' THEN e END IGNORE NULLS) OVER later AS P,
    first_value(CASE WHEN type = 'D' THEN e END IGNORE NULLS) OVER later AS D FROM relevant WHERE type <> 'B' AND e IS NOT NULL
  WINDOW later AS (PARTITION BY key ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))
SELECT ts AS first, greatest(C, P, D) AS last FROM ends
WHERE C IS NOT NULL AND P IS NOT NULL AND D IS NOT NULL AND greatest(C, P, D) - ts <= {window}
