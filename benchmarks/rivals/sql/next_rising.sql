-- The b of a match are the highest so far, so it ends at the first C that is below any B since A: the last B above each C
-- decides.
WITH relevant AS (SELECT key, ts, x, type, ts // {window} AS slice FROM events WHERE type IN ('A', 'B', 'C')),
falls AS (
  SELECT c.key, c.ts AS c, max(b.ts) AS b FROM (SELECT key, ts, x, slice - step AS slice FROM relevant
    CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'C') AS c
  JOIN (FROM relevant WHERE type = 'B') AS b ON b.key = c.key AND b.slice = c.slice AND b.ts < c.ts AND c.ts - b.ts <= {window}
    AND b.x > c.x
  GROUP BY ALL),
a AS (SELECT key, ts, slice + step AS slice FROM relevant CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'A')
SELECT a.ts AS first, min(c) AS last FROM a
  JOIN falls ON a.key = falls.key AND a.slice = falls.c // {window} AND falls.b > a.ts AND c - a.ts <= {window} GROUP BY a.ts
