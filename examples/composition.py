"""A result as the events of the next query: heatings of machines, and the cascades that they make.

The first query finds runs of rising temperature, machine by machine. Its
result has a time (``match_start``, ``match_end``) and attributes like any
table of events, so that the second query finds heatings that spread from one
machine to its neighbour. Both run in the process or, given
:func:`gpu_cep.gpu_match` and a DataFrame, under Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

import gpu_cep as cep

HEATINGS = """
    PARTITION BY machine
    PATTERN SEQ(cold, hot{2,})
    WHERE strict_contiguity { cold.celsius < 50 AND hot.celsius >= 50 AND hot[i].celsius > hot[i-1].celsius }
    WITHIN 10 minutes
    RETURN cold.site AS site, cold AS before, hot.celsius AS degrees, max(hot.celsius) AS peak
"""

CASCADES = """
    PARTITION BY site
    PATTERN SEQ(first, next)
    WHERE next.machine = first.machine + 1 AND next.match_start <= first.match_end
    WITHIN 15 minutes
    RETURN first.machine AS origin, first.degrees AS degrees, first.before AS before,
           next.match_start - first.match_start AS delay, next.peak - first.peak AS rise
"""

READINGS = {
    1: (21.0, 54.0, 60.5, 61.0, 48.0, 47.0, 45.0, 46.0),
    2: (20.0, 22.0, 23.0, 58.0, 63.0, 70.0, 49.0, 30.0),
    3: (24.0, 23.0, 22.0, 21.0, 25.0, 52.0, 55.0, 57.0),
    5: (19.0, 71.0, 72.0, 30.0, 29.0, 28.0, 51.0, 52.0),
}


def readings() -> pa.Table:
    """Return a temperature every two minutes from each of four machines."""
    rows = [
        {"ts": datetime(2026, 3, 1, 8) + timedelta(minutes=2 * step), "site": "north", "machine": machine, "celsius": celsius}
        for machine, series in READINGS.items()
        for step, celsius in enumerate(series)
    ]
    return pa.Table.from_pylist(rows)


def heatings(match: Callable[..., Any], events: Any) -> Any:
    """Return the runs of rising temperature among `events`, found by gpu_cep.match or gpu_cep.gpu_match."""
    return match(events, HEATINGS, after_match="skip_past_last")


def cascades(match: Callable[..., Any], events: Any) -> Any:
    """Return the heatings that spread to the next machine."""
    return match(heatings(match, events), CASCADES, timestamp="match_start", order_by="machine")


def main() -> None:
    for found in cascades(cep.match, readings()).to_pylist():
        origin, before = found["origin"], found["before"]["celsius"]
        print(f"{found['match_start']:%H:%M}  machine {origin} ({before} °C before) rises to {found['degrees']}")
        print(f"       its neighbour follows {found['delay'].seconds // 60} minutes later, peaks {found['rise']:+} °C")


if __name__ == "__main__":
    main()
