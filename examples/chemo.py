"""The thesis' running example: events of chemotherapy treatments (fig. 3.1, with patterns P1 and P2)."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

# e1 to e15: PID, L, V, U, day of July.
ROWS = (
    (1, "C", 1672.5, "mg", 3),
    (1, "B", 7100.0, "1/µl", 4),
    (1, "P", 111.5, "mg", 5),
    (2, "B", 10100.0, "1/µl", 6),
    (1, "D", 84.0, "mg/l", 7),
    (2, "P", 88.0, "mg", 8),
    (2, "D", 84.0, "mg/l", 9),
    (2, "C", 1320.0, "mg", 10),
    (2, "P", 98.0, "mg", 11),
    (1, "P", 116.5, "mg", 12),
    (2, "P", 88.0, "mg", 15),
    (1, "B", 3400.0, "1/µl", 17),
    (2, "B", 4000.0, "1/µl", 18),
    (2, "B", 4900.0, "1/µl", 19),
    (1, "B", 3000.0, "1/µl", 22),
)

P1 = """
PATTERN SEQ(AND(c, p+, d), b)
WHERE c.L = 'C' AND p.L = 'P' AND d.L = 'D' AND b.L = 'B'
  AND c.PID = p.PID AND p.PID = d.PID AND d.PID = b.PID AND prev(p.V) < p.V
WITHIN 15 days
"""

P2 = """
PATTERN SEQ(AND(c, p+), b)
WHERE c.L = 'C' AND p.L = 'P' AND b.L = 'B'
  AND c.PID = p.PID AND p.PID = b.PID AND prev(p.V) < p.V
WITHIN 15 days
"""


def chemo() -> pa.Table:
    """Return the event stream Chemo: PID, L, V, U and T; row n holds event e(n+1)."""
    pids, types, values, units, days = zip(*ROWS, strict=True)
    return pa.table(
        {
            "PID": pa.array(pids, pa.int64()),
            "L": pa.array(types, pa.string()),
            "V": pa.array(values, pa.float64()),
            "U": pa.array(units, pa.string()),
            "T": pa.array([datetime(2010, 7, day) for day in days], pa.timestamp("us")),
        }
    )
