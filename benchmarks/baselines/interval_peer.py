"""The hand-written C++ loop of ``cpp/intervals.cpp``: Listing 1 of TPStream, called on the reports' own Arrow memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import pyarrow as pa

from benchmarks.baselines.cpp_loops import address, chunk, vector
from benchmarks.baselines.peers import loops
from benchmarks.workloads.drives import PRINTED, Thresholds

LONGEST = 2**63 - 1
WINDOW = 300  # seconds

# Bounds of the durations of accelerating, speeding and braking, in seconds: Listing 1's, and none (figure 5).
PRINTED_DURATIONS = ((5, LONGEST), (4, 30), (3, LONGEST))
ANY_DURATIONS = ((0, LONGEST),) * 3


class _Reports(ctypes.Structure):
    _fields_ = (
        ("ts", ctypes.c_void_p),
        ("car", ctypes.c_void_p),
        ("speed", ctypes.c_void_p),
        ("accel", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("cars", ctypes.c_int64),
    )


class _Listing1(ctypes.Structure):
    _fields_ = (
        ("accelerating", ctypes.c_double),
        ("speeding", ctypes.c_double),
        ("braking", ctypes.c_double),
        ("durations", ctypes.c_int64 * 2 * 3),
        ("window", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class Listing1:
    """The query with its thresholds, the bounds of its durations and its window, in seconds."""

    thresholds: Thresholds = PRINTED
    durations: tuple[tuple[int, int], ...] = PRINTED_DURATIONS
    window: int = WINDOW

    @property
    def text(self) -> str:
        """Return the query; numbers are in the reports' units."""
        bounds = self.thresholds
        conditions = (f"accel > {bounds.acceleration}", f"speed > {bounds.speed}", f"accel < {bounds.braking}")
        defined = (f"{name} AS CS.{what}{_limit(*own)}" for name, what, own in zip("ABC", conditions, self.durations, strict=True))
        return (
            f"FROM CarSensors CS PARTITION BY CS.car_id DEFINE {', '.join(defined)} "
            "PATTERN A meets B; A overlaps B; A starts B; A during B AND C during B; B finishes C; B overlaps C; B meets C AND A before C "
            f"WITHIN {self.window} RETURN first(B.car_id) AS id, avg(B.speed) AS avg_speed"
        )


def aggressive_drivers(reports: pa.Table, cars: int, query: Listing1, *, rows: bool) -> tuple[int, pa.Table | None]:
    """Return the number of matches as the loop finds them on one thread; if asked also RETURN's items with bounds, car by car."""
    library = loops()
    library.aggressive_drivers.restype = ctypes.c_void_p
    library.aggressive_drivers.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool)
    addresses = (address(chunk(reports, name)) for name in ("ts", "car_id", "speed", "accel"))
    bounds = query.thresholds
    durations = _Listing1().durations
    for own, (at_least, at_most) in zip(durations, query.durations, strict=True):
        own[:] = at_least, at_most
    question = _Listing1(bounds.acceleration, bounds.speed, bounds.braking, durations, query.window)
    found = library.aggressive_drivers(ctypes.byref(_Reports(*addresses, reports.num_rows, cars)), ctypes.byref(question), rows)
    if not found:
        raise ValueError("the C++ loops take rows in time order")
    try:
        return library.matches_count(found), _returned(library, found) if rows else None
    finally:
        library.matches_free(found)


def _returned(library: ctypes.CDLL, found: int) -> pa.Table:
    start, end, car, average = (vector(library, found, column) for column in range(library.matches_columns(found)))
    return pa.table({"match_start": start, "match_end": end, "id": car, "avg_speed": average.view(pa.float64())})


def _limit(at_least: int, at_most: int) -> str:
    if at_most < LONGEST:
        return f" BETWEEN {at_least} AND {at_most}"
    return f" AT LEAST {at_least}" if at_least else ""
