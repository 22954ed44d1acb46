"""Reports of cars in the shape of TPStream's Linear Road data (section 6.1): the same parameters give the same table.

The paper states one report of every car each second with its number, place, speed and acceleration, and thresholds at percentiles
(section 6.2.1); its data is not at hand, and everything else is chosen. A drive is a cycle of four phases: accelerating, cruising,
braking, and standing or rolling slowly. Accelerating and braking are aggressive independently of one another, so that most of the
situations of Listing 1 stand alone. All drives are cut from one long drive: a car begins in the middle of a phase.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SEED = 2026
CARS = 1_000  # at a time, in the paper
AGGRESSIVE = 0.05

MPH = 3600 / 1609.344  # in a metre per second
EXPRESSWAY = 160_934  # metres: Linear Road's hundred miles

# Bounds of what is drawn: speeds in m/s, changes of speed in m/s², lengths of phases in seconds.
SLOW, FAST, FASTEST = (0.0, 8.0), (10.0, 36.0), (44.0, 54.0)
STANDING = 0.5  # so many cycles end at a stop
GENTLE_ACCELERATION, SHARP_ACCELERATION = (0.8, 3.5), (9.2, 10.5)
GENTLE_BRAKING, HARD_BRAKING = (1.0, 5.0), (10.5, 12.0)
CRUISE, PAUSE = (2, 40), (2, 40)
JITTER = 0.003  # of the speed, up or down

_PHASES = 4
_SHORTEST_CYCLE = CRUISE[0] + PAUSE[0] + 2


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Beyond which a car accelerates and brakes (m/s²), and speeds (mph)."""

    acceleration: float
    speed: float
    braking: float


PRINTED = Thresholds(acceleration=8, speed=70, braking=-9)


def car_reports(events: int, cars: int = CARS, aggressive: float = AGGRESSIVE, seed: int = SEED) -> pa.Table:
    """Return the first `events` reports of `cars` cars, in time order, the cars in one order in each second.

    The acceleration holds until the car's next report; the speed in between changes evenly.
    """
    rng = np.random.default_rng(seed)
    seconds = -(-events // cars)
    speeds = np.ascontiguousarray(_speeds(rng, cars * (seconds + 1), aggressive).reshape(cars, seconds + 1).T)  # a row for each second
    positions = np.cumsum(np.concatenate([rng.uniform(0, EXPRESSWAY, (1, cars)), (speeds[:-2] + speeds[1:-1]) / 2]), axis=0)
    columns: dict[str, np.ndarray] = {
        "ts": np.repeat(np.arange(seconds), cars),
        "car_id": np.tile(rng.permutation(cars).astype(np.int32), seconds),
        "position": positions.reshape(-1),
        "speed": speeds[:-1].reshape(-1) * MPH,
        "accel": np.diff(speeds, axis=0).reshape(-1),
    }
    return pa.table({name: column[:events] for name, column in columns.items()})


def percentiles(reports: pa.Table) -> Thresholds:
    """Return the paper's thresholds: the 99th percentile of the speeds, the 90th of the accelerations and of the decelerations."""
    accel = reports["accel"].to_numpy()
    return Thresholds(
        acceleration=float(np.percentile(accel[accel > 0], 90)),
        speed=float(np.percentile(reports["speed"].to_numpy(), 99)),
        braking=float(np.percentile(accel[accel < 0], 10)),
    )


def _speeds(rng: np.random.Generator, seconds: int, aggressive: float) -> np.ndarray:
    """Return the speed at each second of one long drive, in m/s."""
    cycles = seconds // _SHORTEST_CYCLE + 1
    sharp, hard = rng.random((2, cycles)) < aggressive
    low = np.where(rng.random(cycles) < STANDING, 0.0, rng.uniform(*SLOW, cycles))
    following = np.roll(low, -1)
    high = np.where(sharp, rng.uniform(*FASTEST, cycles), rng.uniform(*FAST, cycles))
    acceleration = np.where(sharp, rng.uniform(*SHARP_ACCELERATION, cycles), rng.uniform(*GENTLE_ACCELERATION, cycles))
    braking = np.where(hard, rng.uniform(*HARD_BRAKING, cycles), rng.uniform(*GENTLE_BRAKING, cycles))
    lengths = np.empty((cycles, _PHASES))
    lengths[:, 0] = np.ceil((high - low) / acceleration)
    lengths[:, 1] = rng.integers(*CRUISE, cycles)
    lengths[:, 2] = np.ceil((high - following) / braking)
    lengths[:, 3] = rng.integers(*PAUSE, cycles)
    ends = np.cumsum(lengths)
    reached = np.stack([high, high, following, following], axis=1).reshape(-1)
    even: np.ndarray = np.interp(np.arange(seconds), np.concatenate([[0.0], ends]), np.concatenate([low[:1], reached]))
    return even * (1 + rng.uniform(-JITTER, JITTER, seconds))
