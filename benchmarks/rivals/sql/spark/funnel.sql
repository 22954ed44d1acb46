-- Each step is the next of its type after the step before; Spark has no ASOF join, so the last step is found first.
WITH relevant AS (SELECT key, ts, type FROM events WHERE type IN ('view', 'cart', 'address', 'payment', 'order')),
d AS (SELECT key, ts, type, last_value(CASE WHEN type = 'order' THEN ts END) IGNORE NULLS OVER later AS last
  FROM relevant WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
c AS (SELECT key, ts, type, last_value(CASE WHEN type = 'payment' THEN last END) IGNORE NULLS OVER later AS last
  FROM d WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
b AS (SELECT key, ts, type, last_value(CASE WHEN type = 'address' THEN last END) IGNORE NULLS OVER later AS last
  FROM c WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
a AS (SELECT ts, type, last_value(CASE WHEN type = 'cart' THEN last END) IGNORE NULLS OVER later AS last
  FROM b WINDOW later AS (PARTITION BY key ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT ts AS first, last FROM a WHERE type = 'view' AND last - ts <= {window}
