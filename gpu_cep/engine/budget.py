"""Bounds on output and work: exceeding one is an error, never a truncation."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

# Share of the memory free at the start that matches may take before they are built into a table.
_MEMORY_SHARE = 0.4


class BudgetExceeded(Exception):
    """Raised with the event at which a match window starts; the caller knows how to name it."""

    def __init__(self, start: int, reason: str) -> None:
        super().__init__(reason)
        self.start = start
        self.reason = reason


def _free_memory() -> int:
    """Bytes that can be had without swapping: what caches hold can be had, too."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        return next(int(line.split()[1]) * 1024 for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:"))
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Budget:
    """What one run may still produce; shared by its threads."""

    max_matches: int | None
    max_steps: int | None
    memory: int = field(default_factory=lambda: int(_free_memory() * _MEMORY_SHARE))
    matches: int = 0
    bytes: int = 0
    steps: int = 0
    closed: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False)

    def close(self) -> None:
        """End the run: threads that are still at work stop the next time they account for it."""
        self.closed = True

    def spend(self, start: int, matches: int, size: int, steps: int) -> None:
        """Account for matches found (their bytes) and steps made in the window that starts at event `start`.

        Raises
        ------
        BudgetExceeded
        """
        if self.closed:
            raise BudgetExceeded(start, "the run has ended")
        with self._lock:
            self.matches += matches
            self.bytes += size
            self.steps += steps
            if self.max_matches is not None and self.matches > self.max_matches:
                raise BudgetExceeded(start, f"more than max_matches={self.max_matches:,} matches")
            if self.bytes > self.memory:
                memory = f"{self.memory / 2**30:.1f} GiB"
                raise BudgetExceeded(start, f"{self.matches:,} matches take more than {memory}; use output='count' or a narrower pattern")
            if self.max_steps is not None and self.steps > self.max_steps:
                raise BudgetExceeded(start, f"more than max_steps={self.max_steps:,} automaton steps")
