-- Each start is joined with the next turn, a low point whose next turn is the top; a top beyond the window gives way to the
-- last event in it.
WITH neighbours AS (
  SELECT key, ts, lag(x) OVER stream < x AS rose, lead(x) OVER stream < x AS falls, lead(x) OVER stream > x AS rises,
    lead(ts) OVER stream AS next
  FROM events WINDOW stream AS (PARTITION BY key ORDER BY ts)),
turns AS (
  SELECT key, ts, rises, next, lead(ts) OVER (PARTITION BY key ORDER BY ts) AS top
  FROM neighbours WHERE (falls IS NOT TRUE AND rises IS NOT TRUE) OR (rose IS NOT TRUE AND rises) OR (rose AND rises IS NOT TRUE)),
bottoms AS (SELECT key, ts, CASE WHEN rises THEN next END AS begin, top FROM turns),
starts AS (
  SELECT neighbours.key, neighbours.ts, begin, top FROM neighbours
    ASOF JOIN bottoms ON bottoms.key = neighbours.key AND bottoms.ts > neighbours.ts
  WHERE falls AND begin - neighbours.ts <= {window})
SELECT ts AS first, top AS last FROM starts WHERE top - ts <= {window}
UNION ALL
SELECT starts.ts AS first, events.ts AS last FROM (FROM starts WHERE top - ts > {window}) AS starts
  ASOF JOIN events ON starts.key = events.key AND events.ts <= starts.ts + {window}
