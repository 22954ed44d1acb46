-- Each sequence by slices of time, the first end of each start.
WITH sliced AS (SELECT key, ts, rowid AS n, x, type, ts // {window} AS slice FROM events WHERE type IN ('A', 'B', 'C', 'D')),
pairs AS (
  SELECT a.n AS first, b.n AS last FROM (SELECT key, ts, n, x, slice + step AS slice FROM sliced
    CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'A') AS a
  JOIN (FROM sliced WHERE type = 'B') AS b ON a.key = b.key AND a.slice = b.slice AND b.ts > a.ts AND b.ts - a.ts <= {window} AND b.x > a.x
  UNION ALL
  SELECT c.n AS first, d.n AS last FROM (SELECT key, ts, n, x, slice + step AS slice FROM sliced
    CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'C') AS c
  JOIN (FROM sliced WHERE type = 'D') AS d ON c.key = d.key AND c.slice = d.slice AND d.ts > c.ts AND d.ts - c.ts <= {window} AND d.x < c.x)
SELECT first, min(last) AS last FROM pairs GROUP BY first
