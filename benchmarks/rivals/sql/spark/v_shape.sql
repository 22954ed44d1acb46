-- The next turn after each start is a low point, and the next turn after that the top; a top beyond the window gives way to the
-- last event in it.
WITH neighbours AS (
  SELECT key, ts, lag(x) OVER stream < x AS rose, lead(x) OVER stream < x AS falls, lead(x) OVER stream > x AS rises,
    lead(ts) OVER stream AS next
  FROM events WINDOW stream AS (PARTITION BY key ORDER BY ts)),
turns AS (
  SELECT *, (falls IS NOT TRUE AND rises IS NOT TRUE) OR (rose IS NOT TRUE AND rises) OR (rose AND rises IS NOT TRUE) AS turns
  FROM neighbours),
tops AS (
  SELECT *, last_value(CASE WHEN turns THEN ts END) IGNORE NULLS OVER later AS top
  FROM turns WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
starts AS (
  SELECT key, ts, falls, last_value(CASE WHEN turns THEN struct(CASE WHEN rises THEN next END AS begin, top) END) IGNORE NULLS OVER later AS turn,
    max(ts) OVER (PARTITION BY key ORDER BY ts RANGE BETWEEN CURRENT ROW AND {window} FOLLOWING) AS end
  FROM tops WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT ts AS first, least(turn.top, end) AS last FROM starts WHERE falls AND turn.begin - ts <= {window} AND turn.top IS NOT NULL
