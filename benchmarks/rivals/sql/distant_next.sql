-- All pairs by slices of time, the first end of each start.
WITH a AS (SELECT key, ts, x, ts // {window} + step AS slice FROM events CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'A'),
c AS (SELECT key, ts, x, ts // {window} AS slice FROM events WHERE type = 'C')
SELECT a.ts AS first, min(c.ts) AS last FROM a
  JOIN c ON a.key = c.key AND a.slice = c.slice AND c.ts > a.ts AND c.ts - a.ts <= {window} AND c.x > 2 * a.x
GROUP BY a.ts
