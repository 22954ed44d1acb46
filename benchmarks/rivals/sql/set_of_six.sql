-- The next G from each event on, and from it that of the next event of each type: the latest ends the match.
WITH relevant AS (
  SELECT key, ts, type, first_value(CASE WHEN type = 'G' THEN ts END IGNORE NULLS) OVER later AS e
  FROM events WHERE type IN ('A', 'B', 'C', 'D', 'E', 'F', 'G')
  WINDOW later AS (PARTITION BY key ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)),
ends AS (SELECT ts, first_value(CASE WHEN type = 'A' THEN e END IGNORE NULLS) OVER later AS A,
  first_value(CASE WHEN type = 'B' THEN e END IGNORE NULLS) OVER later AS B,
    first_value(CASE WHEN type = 'C' THEN e END IGNORE NULLS) OVER later AS C,
      first_value(CASE WHEN type = 'D' THEN e END IGNORE NULLS) OVER later AS D,
        first_value(CASE WHEN type = 'E' THEN e END IGNORE NULLS) OVER later AS E,
          first_value(CASE WHEN type = 'F' THEN e END IGNORE NULLS) OVER later AS F FROM relevant WHERE type <> 'G' AND e IS NOT NULL
  WINDOW later AS (PARTITION BY key ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))
SELECT ts AS first, greatest(A, B, C, D, E, F) AS last FROM ends
WHERE A IS NOT NULL AND B IS NOT NULL AND C IS NOT NULL AND D IS NOT NULL AND E IS NOT NULL AND F IS NOT NULL AND greatest(A, B, C, D, E,
  F) - ts <= {window}
