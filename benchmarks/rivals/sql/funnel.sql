-- Each step is the next of its type after the step before.
WITH a AS (SELECT key, ts FROM events WHERE type = 'view'), b AS (SELECT key, ts FROM events WHERE type = 'cart'),
c AS (SELECT key, ts FROM events WHERE type = 'address'), d AS (SELECT key, ts FROM events WHERE type = 'payment'),
e AS (SELECT key, ts FROM events WHERE type = 'order'),
ab AS (SELECT a.key, a.ts AS first, b.ts FROM a ASOF JOIN b ON a.key = b.key AND a.ts < b.ts WHERE b.ts - first <= {window}),
abc AS (SELECT ab.key, first, c.ts FROM ab ASOF JOIN c ON ab.key = c.key AND ab.ts < c.ts WHERE c.ts - first <= {window}),
abcd AS (SELECT abc.key, first, d.ts FROM abc ASOF JOIN d ON abc.key = d.key AND abc.ts < d.ts WHERE d.ts - first <= {window})
SELECT first, e.ts AS last FROM abcd ASOF JOIN e ON abcd.key = e.key AND abcd.ts < e.ts WHERE e.ts - first <= {window}
