-- The first C far above each B; then the first B above each A whose C is in the window.
WITH relevant AS (SELECT key, ts, x, type, ts // {window} AS slice FROM events WHERE type IN ('A', 'B', 'C')),
rises AS (
  SELECT b.key, b.ts, b.x, min(c.ts) AS c FROM (SELECT key, ts, x, slice + step AS slice FROM relevant
    CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'B') AS b
  JOIN (FROM relevant WHERE type = 'C') AS c ON b.key = c.key AND b.slice = c.slice AND c.ts > b.ts AND c.ts - b.ts <= {window}
    AND c.x > b.x + 40
  GROUP BY ALL),
a AS (SELECT key, ts, x, slice + step AS slice FROM relevant CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'A')
SELECT a.ts AS first, min(rises.ts) AS b, arg_min(c, rises.ts) AS last FROM a JOIN rises
  ON a.key = rises.key AND a.slice = rises.ts // {window} AND rises.ts > a.ts AND c - a.ts <= {window} AND rises.x > a.x
GROUP BY a.ts
