-- The latest start of each situation at every change; a match where H ends and L, begun later, holds.
WITH marked AS (
  SELECT key, ts, x > 80 AS h, y > 80 AS l, lag(x > 80, 1, false) OVER stream AS was_h, lag(y > 80, 1, false) OVER stream AS was_l
  FROM events WINDOW stream AS (PARTITION BY key ORDER BY ts)),
since AS (
  SELECT ts, l, was_h AND NOT h AS ends, max(CASE WHEN h AND NOT was_h THEN ts END) OVER so_far AS h_since,
    max(CASE WHEN l AND NOT was_l THEN ts END) OVER so_far AS l_since
  FROM marked WHERE h <> was_h OR l <> was_l
  WINDOW so_far AS (PARTITION BY key ORDER BY ts ROWS UNBOUNDED PRECEDING))
SELECT h_since AS first, ts AS last FROM since WHERE ends AND l AND l_since > h_since AND ts - h_since <= {window}
