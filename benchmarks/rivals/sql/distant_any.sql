-- All pairs by slices of a quarter of the window.
WITH a AS (SELECT ts, rowid AS n, x, ts // ({window} // 4) + step AS slice FROM events CROSS JOIN range(5) AS steps(step) WHERE type = 'A'),
c AS (SELECT ts, rowid AS n, x, ts // ({window} // 4) AS slice FROM events WHERE type = 'C')
SELECT a.n AS first, c.n AS last FROM a JOIN c ON a.slice = c.slice AND c.ts > a.ts AND c.ts - a.ts <= {window} AND c.x > 2 * a.x
