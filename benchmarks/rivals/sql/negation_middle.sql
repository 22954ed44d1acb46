-- The first N and the first C of each A in the window, by slices of time.
WITH a AS (SELECT key, ts, rowid AS n, ts // {window} + step AS slice FROM events CROSS JOIN (VALUES (0), (1)) AS steps(step)
  WHERE type = 'A'),
others AS (SELECT key, ts, rowid AS n, type, ts // {window} AS slice FROM events WHERE type IN ('N', 'C')),
firsts AS (SELECT a.n AS a, min(others.ts) FILTER (WHERE type = 'N') AS n, min(others.ts) FILTER (WHERE type = 'C') AS c_ts,
  min(others.n) FILTER (WHERE type = 'C') AS c
  FROM a JOIN others ON a.key = others.key AND a.slice = others.slice AND others.ts > a.ts AND others.ts - a.ts <= {window} GROUP BY a.n)
SELECT a AS first, c AS last FROM firsts WHERE c IS NOT NULL AND (n IS NULL OR n >= c_ts)
