"""A picture of an aggressive driver: TPStream's Listing 1 over the reports of two cars, one each second.

The first car accelerates sharply, drives fast, and brakes hard; the second
does nothing of that. ``python examples/timeline.py PATH`` draws what was found.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from itertools import accumulate

import pyarrow as pa

import gpu_cep as cep

# Accelerations are in m/s², speeds in miles an hour.
AGGRESSIVE_DRIVERS = """
    FROM CarSensors CS PARTITION BY CS.car_id
    DEFINE A AS CS.accel > 8 AT LEAST 5 s, B AS CS.speed > 70 BETWEEN 4 s AND 30 s, C AS CS.accel < -9 AT LEAST 3 s
    PATTERN A meets B; A overlaps B; A starts B; A during B
        AND C during B; B finishes C; B overlaps C; B meets C
        AND A before C
    WITHIN 5 minutes
    RETURN first(B.car_id) AS id, avg(B.speed) AS avg_speed
"""

MPH = 3600 / 1609.344  # in a metre per second

ACCELERATIONS = {
    7: [0.3, 0.5, 0.2, 0.4, 8.6, 9.1, 8.9, 9.2, 8.4, 0.6, -0.5, 0.3, 0.1, -0.4, 0.5, -0.2, -9.8, -10.4, -10.2, -9.6, -0.9, 0.4, 0.8, 0.6],
    12: [0.8, 1.4, 1.9, 1.6, 1.2, 0.9, 0.4, 0.1, -0.2, 0.3, 0.0, -0.3, 0.2, 0.1, -0.8, -1.5, -2.2, -1.7, -0.6, 0.2, 0.5, 0.9, 0.7, 0.3],
}


def reports() -> pa.Table:
    """Return a report of each car each second; its acceleration holds until the next."""
    rows = [
        {"ts": datetime(2026, 3, 1, 8) + timedelta(seconds=second), "car_id": car, "speed": speed * MPH, "accel": accel}
        for car, accelerations in ACCELERATIONS.items()
        for second, (accel, speed) in enumerate(zip(accelerations, accumulate(accelerations, initial=3.0), strict=False))
    ]
    return pa.Table.from_pylist(rows)


def picture(detect: str = "early") -> cep.Timeline:
    """Return the picture of the first aggressive driver."""
    return cep.plot(reports(), AGGRESSIVE_DRIVERS, detect=detect)


def main(path: str) -> None:
    for found in cep.match(reports(), AGGRESSIVE_DRIVERS, detect="early").to_pylist():
        print(f"car {found['id']} at {found['detected_at']:%H:%M:%S}, {found['avg_speed']:.0f} mph on average: {path}")
    picture().save(path)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["timeline.svg"])
