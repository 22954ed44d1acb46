-- Islands: the first and the last event of each session are those on one side of which the gap is long.
WITH neighbours AS (
  SELECT key, ts, ts - lag(ts) OVER stream <= {window} AS goes_on, lead(ts) OVER stream - ts <= {window} AS is_followed
  FROM events WINDOW stream AS (PARTITION BY key ORDER BY ts)),
borders AS (
  SELECT key, ts, coalesce(is_followed, false) AS starts, lead(ts) OVER (PARTITION BY key ORDER BY ts) AS last
  FROM neighbours WHERE coalesce(goes_on, false) <> coalesce(is_followed, false))
SELECT ts AS first, last FROM borders WHERE starts
