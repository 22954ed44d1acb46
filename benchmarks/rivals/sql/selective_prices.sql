-- Pairs by slices of the window, then quotes by slices of a quarter of it.
WITH halts AS (
  SELECT ts, x, ts // {window} - step AS slice FROM events CROSS JOIN (VALUES (0), (1)) AS steps(step) WHERE type = 'Halt'),
trades AS (SELECT ts, x, ts // {window} AS slice FROM events WHERE type = 'Trade'),
quotes AS (SELECT ts, x, ts // ({window} // 4) AS slice FROM events WHERE type = 'Quote'),
ends AS (
  SELECT trades.ts AS t, trades.x AS x, halts.ts AS h FROM halts JOIN trades ON trades.slice = halts.slice
  WHERE trades.ts < halts.ts AND halts.ts - trades.ts <= {window} AND trades.x < halts.x),
spread AS (SELECT t, x, h, unnest(range((h - {window}) // ({window} // 4), t // ({window} // 4) + 1)) AS slice FROM ends)
SELECT quotes.ts AS first, t, h AS last FROM spread JOIN quotes ON quotes.slice = spread.slice
WHERE quotes.ts < t AND h - quotes.ts <= {window} AND quotes.x < spread.x
