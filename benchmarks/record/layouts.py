"""The record of what layouts of event files take, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.record import pages

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """What a layout takes: bytes on disk, and processor seconds of all, of one day and in slices.

    `day`: the row groups that the question of one day read, and that there are (None: all).
    `slices`: the number of slices, the rows that these hold together, and the rows that there are (None: read at once).
    """

    name: str
    size: int
    whole_cpu: float
    day_cpu: float
    slices_cpu: float
    day: tuple[int, int] | None
    slices: tuple[int, int, int] | None
    matches: int


def table(found: Sequence[Layout]) -> str:
    """Return a line for each layout, in multiples of the first one."""
    first = found[0]
    head = ("layout", "MiB", "all events", "one day", "its row groups", "in slices", "slices", "rows in all slices")
    lines = [
        (
            each.name,
            f"{each.size / MIB:,.0f}",
            f"{each.whole_cpu / first.whole_cpu:.2f}",
            f"{each.day_cpu / first.whole_cpu:.2f}",
            "all" if each.day is None or each.day[0] == each.day[1] else f"{each.day[0]:,} of {each.day[1]:,}",
            f"{each.slices_cpu / first.whole_cpu:.2f}",
            "at once" if each.slices is None else f"{each.slices[0]:,}",
            "" if each.slices is None else f"{each.slices[1] / each.slices[2]:.0%}",
        )
        for each in found
    ]
    return pages.table([head, *lines], figures=len(head) - 1)
