"""Watch machines live, behind asyncio: readings come one by one, and alarms go out as soon as they are certain.

``python examples/live_asyncio.py`` plays a few seconds of readings, a hundred times faster.

The stream runs nothing by itself. Its task collects what has come, pushes it as one table, and passes on what comes out. When
nothing comes for a while, it moves time on by the clock of the wall, so that alarms which wait for the end of their window go out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa

import gpu_cep as cep

Reading = dict[str, Any]

SCHEMA = pa.schema({"ts": pa.int64(), "machine": pa.string(), "celsius": pa.float64()})
# a machine that heats up and does not cool down again within a minute
OVERHEATING = """
PATTERN SEQ(warm, hot, NOT(cool))
WHERE [machine] AND warm.celsius BETWEEN 60 AND 80 AND hot.celsius > 80 AND cool.celsius < 60
WITHIN 60 seconds
RETURN hot.machine AS machine, hot.celsius AS celsius
"""
# When the readings come, in seconds.
READINGS: tuple[Reading, ...] = (
    {"ts": 0, "machine": "press", "celsius": 65.0},
    {"ts": 4, "machine": "drill", "celsius": 70.0},
    {"ts": 9, "machine": "press", "celsius": 91.0},
    {"ts": 8, "machine": "drill", "celsius": 84.0},  # a second late, which `lateness` allows
    {"ts": 30, "machine": "drill", "celsius": 41.0},  # it has cooled down
)
# Readings that are collected before they are pushed, and how long to wait for another one.
TOGETHER = 1_000


async def alarms(readings: asyncio.Queue[Reading | None], patience: float, seconds_per_tick: float) -> AsyncIterator[Reading]:
    """Give the alarms in what a queue brings, until it brings None.

    After `patience` seconds without a reading, the stream is told how late it is.
    """
    live = cep.stream(OVERHEATING, SCHEMA, lateness=2, time_unit="s")
    latest, silent = 0, 0.0
    while True:
        collected, ended = await collect(readings, patience)
        if collected:
            latest, silent = max(latest, *(reading["ts"] for reading in collected)), 0.0
            # a push of many readings may take milliseconds: other tasks go on meanwhile
            found = await asyncio.to_thread(live.push, pa.Table.from_pylist(collected, SCHEMA))
        elif ended:
            found = live.finish()
        else:
            silent += patience
            found = live.advance(latest + int(silent / seconds_per_tick))
        for alarm in found.to_pylist():
            yield alarm
        if ended and not collected:
            return


async def collect(readings: asyncio.Queue[Reading | None], patience: float) -> tuple[list[Reading], bool]:
    """Return the readings that have come, after waiting for the first one, and whether no more come."""
    collected: list[Reading] = []
    try:
        following = await asyncio.wait_for(readings.get(), patience)
    except TimeoutError:
        return collected, False
    while following is not None:
        collected.append(following)
        if len(collected) == TOGETHER or readings.empty():
            return collected, False
        following = readings.get_nowait()
    if collected:
        # the end is seen again, when there is nothing before it
        readings.put_nowait(None)
    return collected, not collected


async def play(readings: asyncio.Queue[Reading | None], speed: float, silence: float) -> None:
    """Put the readings into a queue at their times, and the end behind a silence."""
    now = 0
    for reading in READINGS:
        await asyncio.sleep(max(0, reading["ts"] - now) / speed)
        now = max(now, reading["ts"])
        readings.put_nowait(reading)
    await asyncio.sleep(silence / speed)
    readings.put_nowait(None)


async def watch(speed: float = 100.0) -> list[Reading]:
    """Print the alarms of what is played, and return them."""
    readings: asyncio.Queue[Reading | None] = asyncio.Queue()
    playing = asyncio.create_task(play(readings, speed, silence=100))
    found = []
    # longer than readings are ever apart, so that time does not run away from those that still come
    async for alarm in alarms(readings, patience=30 / speed, seconds_per_tick=1 / speed):
        print(f"{alarm['machine']} is at {alarm['celsius']} °C since {alarm['match_end']} s, and has not cooled down")
        found.append(alarm)
    await playing
    return found


if __name__ == "__main__":
    asyncio.run(watch())
