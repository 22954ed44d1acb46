-- Situations from the events at which a flag changes, joined by slices of time.
WITH marked AS (
  SELECT key, ts, x > 50 AS h, y > 50 AS l, lag(x > 50, 1, false) OVER stream AS was_h, lag(y > 50, 1, false) OVER stream AS was_l,
    lag(ts) OVER stream AS before
  FROM events WINDOW stream AS (PARTITION BY key ORDER BY ts)),
changes AS MATERIALIZED (SELECT * FROM marked WHERE h <> was_h OR l <> was_l),
h AS (SELECT * FROM (SELECT key, ts, h, lead(ts) OVER (PARTITION BY key ORDER BY ts) AS te FROM changes WHERE h <> was_h)
  WHERE h AND te IS NOT NULL),
l AS (SELECT * FROM (SELECT key, ts, l, lead(ts) OVER stream AS te, lead(before) OVER stream AS last FROM changes WHERE l <> was_l
  WINDOW stream AS (PARTITION BY key ORDER BY ts)) WHERE l AND te IS NOT NULL),
starts AS (SELECT key, ts, te, ts // {window} + step AS slice FROM h CROSS JOIN (VALUES (0), (1)) AS steps(step))
SELECT starts.ts AS first, l.last AS last FROM starts
JOIN l ON l.key = starts.key AND l.ts // {window} = starts.slice AND l.ts > starts.te AND l.te - starts.ts <= {window}
