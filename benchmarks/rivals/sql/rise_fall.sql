-- Turning points by lag and lead: each peak with its low point. A rise of one step whose low point may end the match before it matches if
-- the rise before does not: matches in a row of them alternate from the last rise of which it is known (1 it matches, 0 it does not).
WITH neighbours AS (
  SELECT key, ts, lag(x) OVER stream < x AS rose, lead(x) OVER stream > x AS rises, lead(x) OVER stream < x AS falls,
    lag(ts) OVER stream AS previous, lead(ts) OVER stream AS next
  FROM events WINDOW stream AS (PARTITION BY key ORDER BY ts)),
turns AS (
  SELECT key, ts, rose, previous, next, lag(ts) OVER stream AS low, lag(next) OVER stream AS low_next, lag(next, 2) OVER stream AS low_end
  FROM neighbours WHERE (rises AND rose IS NOT TRUE) OR (rose AND falls) WINDOW stream AS (PARTITION BY key ORDER BY ts)),
peaks AS (
  SELECT *, low_end IS NOT DISTINCT FROM low AS touches, row_number() OVER (PARTITION BY key ORDER BY ts) AS n,
    CASE WHEN next - previous > {window} THEN 0 WHEN previous > low OR low_end IS DISTINCT FROM low THEN 1 END AS known
  FROM turns WHERE rose),
chains AS (
  SELECT *, last_value(2 * n + known IGNORE NULLS) OVER so_far AS base
  FROM peaks WINDOW so_far AS (PARTITION BY key ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
decided AS (SELECT *, (n - base // 2 + base) % 2 = 1 AS matches FROM chains),
found AS (
  SELECT key, ts, next AS c, low, matches,
    CASE WHEN touches AND lag(matches, 1, false) OVER (PARTITION BY key ORDER BY ts) THEN low_next ELSE low END AS first
  FROM decided)
SELECT first, c AS last FROM found WHERE matches AND c - first <= {window}
UNION ALL
SELECT min(events.ts) AS first, c AS last FROM found JOIN events ON events.key = found.key AND events.ts > low AND events.ts < found.ts
WHERE matches AND c - first > {window} AND c - events.ts <= {window} GROUP BY found.key, c
