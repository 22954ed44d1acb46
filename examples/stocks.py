"""The stock trades of thesis fig. 6.1 with pattern P3 (query Q3)."""

from __future__ import annotations

import pyarrow as pa

# Number, S, P, V, milliseconds after the first full second of its part of the figure.
ROWS = (
    (1, "GOOG", 615, 100, 344),
    (2, "IBM", 204, 200, 357),
    (3, "GOOG", 610, 400, 368),
    (4, "GOOG", 618, 100, 380),
    (5, "GOOG", 620, 300, 396),
    (6, "GOOG", 628, 200, 401),
    (7, "GOOG", 628, 700, 421),
    (8, "GOOG", 632, 100, 450),
    (71, "GOOG", 629, 200, 100_555),
    (72, "GOOG", 645, 300, 100_572),
    (73, "MSFT", 28, 100, 100_581),
    (74, "GOOG", 632, 100, 100_592),
    (75, "GOOG", 635, 700, 100_605),
    (76, "GOOG", 638, 100, 100_613),
    (77, "GOOG", 642, 600, 100_628),
    (78, "GOOG", 635, 500, 100_640),
)

P3 = """
PATTERN SEQ(s1, s2, s3+, s4)
WHERE s1.S = 'GOOG' AND s2.S = 'GOOG' AND s3.S = 'GOOG' AND s4.S = 'GOOG'
  AND s1.P < s2.P AND s2.P < s3.P AND prev(s3.P) < s3.P
  AND s1.V < s4.V AND s2.V < s4.V AND s3.V < s4.V
WITHIN 100 ms
"""


def stocks() -> pa.Table:
    """Return the event stream Stocks: n (the event's number in the figure), S, P, V and T in milliseconds."""
    numbers, symbols, prices, volumes, times = zip(*ROWS, strict=True)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "S": pa.array(symbols, pa.string()),
            "P": pa.array(prices, pa.int64()),
            "V": pa.array(volumes, pa.int64()),
            "T": pa.array(times, pa.timestamp("ms")),
        }
    )
