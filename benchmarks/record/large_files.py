"""The record of what questions over files larger than memory take, and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.record import pages

AT_ONCE, TABLE, SLICED = "match(path) at once", "match(table)", "match(path) in slices"
OTHERS = (AT_ONCE, TABLE)
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Ran:
    """What a process takes for a question: seconds by the clock and of processors, and bytes at its peak.

    `slices`: the number of slices, the rows that these read, and the rows that there are (None: read at once).
    """

    events: int
    seconds: float
    cpu: float
    peak: int
    rows: int
    slices: tuple[int, int, int] | None

    @property
    def rate(self) -> float:
        """Return events a second by the clock."""
        return self.events / self.seconds


def line(question: str, took: Mapping[str, Ran]) -> str:
    """Return what one question took, in words, beside the other ways."""
    large = took[SLICED]
    others = [f"{_share(large, took[way])} of {way} over {took[way].events:,} (peak {took[way].peak / GIB:.2f} GiB)" for way in OTHERS]
    return (
        f"{question:<7} {large.rate / 1e6:6.1f} M events/s of {large.events:,} ({_slices(large)}, {large.rows:,} rows), "
        f"peak {large.peak / GIB:.2f} GiB; {'; '.join(others)}"
    )


def table(took: Mapping[str, Mapping[str, Ran]]) -> str:
    """Return a line for each question, with the shares of the other ways' rates by the clock and by processor time."""
    head = ["question", "rows", "M events/s", "peak, GiB", "slices", *(f"of {way}" for way in OTHERS)]
    return pages.table([head, *_rows(took)], figures=len(head) - 1)


def _rows(took: Mapping[str, Mapping[str, Ran]]) -> Sequence[Sequence[str]]:
    return [
        [
            question,
            f"{ways[SLICED].rows:,}",
            f"{ways[SLICED].rate / 1e6:.1f}",
            f"{ways[SLICED].peak / GIB:.2f}",
            _slices(ways[SLICED]),
            *(_share(ways[SLICED], ways[way]) for way in OTHERS),
        ]
        for question, ways in took.items()
    ]


def _slices(ran: Ran) -> str:
    return "at once" if ran.slices is None else f"{ran.slices[0]} slices with {ran.slices[1] / ran.slices[2]:.0%} of the rows"


def _share(ran: Ran, other: Ran) -> str:
    return f"{ran.rate / other.rate:.2f} / {ran.events / ran.cpu / (other.events / other.cpu):.2f}"
