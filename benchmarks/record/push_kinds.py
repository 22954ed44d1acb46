"""The record of kinds of questions that streams are asked, by the size of a push, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.record import pages

# A share below it has one digit more.
_SMALL = 0.1


@dataclass(frozen=True, slots=True)
class PushedKind:
    """What all events of one kind take, pushed so many at a time.

    `keys`: how many there are; 0 without.
    `seconds`, `whole`: processor time of all pushes, and of `match` over the same events.
    """

    kind: str
    asked: str
    query: str
    keys: int
    push: int
    pushes: int
    events: int
    matches: int
    seconds: float
    whole: float

    @property
    def share(self) -> float:
        """Return the rate of the pushes as a share of that of `match`."""
        return self.whole / self.seconds


def table(found: Sequence[PushedKind]) -> str:
    """Return a line for each question, the least share first: the rate of `match`, and what pushes take by keys and size."""
    few = min((each.keys for each in found if each.keys), default=0)
    by_column = {(each.kind, max(each.keys, few), each.push): each for each in found}
    columns = sorted({(keys, push) for _, keys, push in by_column})
    first = {each.kind: each for each in reversed(found)}
    worst_first = sorted(first, key=lambda kind: min(each.share for each in found if each.kind == kind))
    lines = [
        [
            first[kind].asked,
            f"{first[kind].events / first[kind].whole / 1e6:.1f}",
            *(_cell(by_column.get((kind, keys, push))) for keys, push in columns),
        ]
        for kind in worst_first
    ]
    head = ["question", "`match`, M events/s", *(f"{push:,}{'' if keys == few else f', {keys:,} keys'}" for keys, push in columns)]
    return pages.table([head, *lines], figures=len(head) - 1)


def _cell(each: PushedKind | None) -> str:
    """Return the share, and the milliseconds of a push."""
    if each is None:
        return "—"
    return f"{each.share:.{3 if each.share < _SMALL else 2}f} / {1e3 * each.seconds / each.pushes:.1f}"
