"""Say which events of files a query needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pyarrow import dataset

Judged = TypeVar("Judged")


class Near(NamedTuple):
    """Where events matter: at most `length` ticks of the column `timestamp` from an event of each variable of some branch.

    `conditions` has for some variables, by their numbers, what their events satisfy; `branches` has for each branch the numbers of those
    that it binds. All wanted events satisfy one of the conditions if they are `complete`.
    """

    timestamp: str
    length: int | float
    conditions: Mapping[int, dataset.Expression]
    branches: tuple[tuple[int, ...], ...]
    complete: bool = False

    def judge_each(self, judge: Callable[[dataset.Expression], Judged]) -> dict[int, Judged]:
        """Return what `judge` finds by the condition of each variable; it is called once for conditions that are equal."""
        found: dict[int, Judged] = {}
        for number, condition in self.conditions.items():
            same = next((known for known in found if self.conditions[known].equals(condition)), None)
            found[number] = judge(condition) if same is None else found[same]
        return found


class Wanted(NamedTuple):
    """The events that must be read: those for which `condition` is true.

    If the column `timed` is NULL or NaN somewhere, all events must be read (None: no matter).
    If not, those that are not `near` need not be read, either (None: all must be).
    `texts` has, for some text columns, a condition that reads nothing else and is true for all events that `condition` is true for.
    """

    condition: dataset.Expression
    timed: str | None
    texts: Mapping[str, dataset.Expression]
    near: Near | None = None
