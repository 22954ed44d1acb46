-- Pairs of an A and a C with nothing but B between them are found among the few other types; then each is looked up for a B
-- in its slices.
WITH pairs AS (
  SELECT * FROM (SELECT key, ts AS c, type, lag(ts) OVER stream AS a, lag(type) OVER stream AS a_type
  FROM events WHERE type <> 'B' WINDOW stream AS (PARTITION BY key ORDER BY ts)) WHERE type = 'C' AND a_type = 'A' AND c - a <= {window}),
sliced AS (SELECT key, a, c, unnest(range(a // ({window} // 20), c // ({window} // 20) + 1)) AS slice FROM pairs)
SELECT DISTINCT a AS first, c AS last FROM sliced
  JOIN events b ON b.key = sliced.key AND b.ts // ({window} // 20) = slice AND type = 'B' AND b.ts > a AND b.ts < c
