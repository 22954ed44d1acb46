-- Means are differences of running sums; the first C of each A whose mean is above it.
WITH sums AS (
  SELECT key, ts, type, x, sum(CASE WHEN type = 'B' THEN x END) OVER so_far AS total,
    count(CASE WHEN type = 'B' THEN 1 END) OVER so_far AS number
  FROM events WHERE type IN ('A', 'B', 'C') WINDOW so_far AS (PARTITION BY key ORDER BY ts ROWS UNBOUNDED PRECEDING)),
a AS (SELECT *, ts // {window} + step AS slice FROM sums CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'A'),
c AS (SELECT *, ts // {window} AS slice FROM sums WHERE type = 'C')
SELECT a.ts AS first, min(c.ts) AS last FROM a JOIN c ON a.key = c.key AND a.slice = c.slice AND c.ts > a.ts AND c.ts - a.ts <= {window}
WHERE c.number > a.number AND (c.total - coalesce(a.total, 0)) / (c.number - a.number) > a.x
GROUP BY a.ts
