-- The first C after each A, then the first N after it.
WITH a AS (SELECT key, ts, rowid AS n FROM events WHERE type = 'A'),
c AS (SELECT key, ts, min(rowid) AS n FROM events WHERE type = 'C' GROUP BY key, ts),
no AS (SELECT key, ts FROM events WHERE type = 'N'),
pairs AS (SELECT a.key, a.ts, a.n AS a, c.n AS c, c.ts AS c_ts FROM a ASOF JOIN c ON a.key = c.key AND a.ts < c.ts
  WHERE c.ts - a.ts <= {window})
SELECT a AS first, c AS last FROM pairs ASOF LEFT JOIN no ON pairs.key = no.key AND c_ts < no.ts
  WHERE no.ts IS NULL OR no.ts - pairs.ts > {window}
