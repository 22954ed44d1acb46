"""Measure what Spark takes: seconds of the clock, and of the cores of all its processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SparkSeconds:
    """The least seconds of a way by the clock, and of all its processes' cores."""

    clock: float = float("inf")
    cores: float = float("inf")


def least_seconds(way: Callable[[], int], before: SparkSeconds) -> SparkSeconds:
    """Return what one run of a way takes, or what one took `before`, whichever is less."""
    start, busy = time.perf_counter(), own_ticks()
    way()
    return SparkSeconds(min(before.clock, time.perf_counter() - start), min(before.cores, seconds_since(busy)))


def own_ticks() -> dict[int, int]:
    """Return the ticks that cores have spent on this process, and on each below it, by their numbers."""
    return {process: sum(_cpu_ticks(process)[:2]) for process in (os.getpid(), *descendants(os.getpid()))}


def seconds_since(before: Mapping[int, int]) -> float:
    """Return the seconds that cores have spent on these processes since; a worker that waited, and has ended, does not count."""
    return sum(max(0, ticks - before.get(process, 0)) for process, ticks in own_ticks().items()) / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the seconds that cores have spent on this process and those below it."""
    ticks = sum(sum(_cpu_ticks(process)) for process in (os.getpid(), *descendants(os.getpid())))
    return ticks / os.sysconf("SC_CLK_TCK")


def _cpu_ticks(process: int) -> list[int]:
    """Return the ticks of a process, and of the children that it waited for, of users and of the system; none if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return list(map(int, fields[11:15]))


def descendants(parent: int) -> Iterator[int]:
    """Yield the processes below one, at any depth."""
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        try:
            children = listed.read_text().split()
        except OSError:
            # a thread that ended meanwhile has none
            continue
        for child in map(int, children):
            yield child
            yield from descendants(child)
