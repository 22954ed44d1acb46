-- The first B after each A, then the first C after it; a C that has the time of an earlier B is none.
WITH a AS (SELECT key, ts, rowid AS n FROM events WHERE type = 'A'),
b AS (SELECT key, ts, min(rowid) AS n FROM events WHERE type = 'B' GROUP BY key, ts),
c AS (SELECT c.key, c.ts, min(c.rowid) AS n FROM events c LEFT JOIN b ON b.key = c.key AND b.ts = c.ts AND b.n < c.rowid
  WHERE c.type = 'C' AND b.n IS NULL GROUP BY c.key, c.ts),
started AS (SELECT a.key, a.ts, a.n, b.ts AS b_ts FROM a ASOF JOIN b ON a.key = b.key AND a.ts < b.ts)
SELECT started.n AS first, c.n AS last FROM started ASOF JOIN c ON started.key = c.key AND b_ts < c.ts WHERE c.ts - started.ts <= {window}
