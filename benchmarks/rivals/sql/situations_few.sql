-- Situations from the events at which a flag changes, joined by their endpoints.
WITH marked AS (
  SELECT key, ts, x > 95 AS h, y > 95 AS l, lag(x > 95, 1, false) OVER stream AS was_h, lag(y > 95, 1, false) OVER stream AS was_l,
    lag(ts) OVER stream AS before
  FROM events WINDOW stream AS (PARTITION BY key ORDER BY ts)),
h AS (SELECT * FROM (SELECT key, ts, h, lead(ts) OVER (PARTITION BY key ORDER BY ts) AS te FROM marked WHERE h <> was_h)
  WHERE h AND te IS NOT NULL),
l AS (SELECT * FROM (SELECT key, ts, l, lead(ts) OVER stream AS te, lead(before) OVER stream AS last FROM marked WHERE l <> was_l
  WINDOW stream AS (PARTITION BY key ORDER BY ts)) WHERE l AND te IS NOT NULL)
SELECT h.ts AS first, l.last AS last FROM h
  JOIN l ON h.key = l.key AND l.ts > h.ts AND l.ts < h.te AND l.te > h.te AND l.te - h.ts <= {window}
