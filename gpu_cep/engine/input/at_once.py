"""Call a function that waits for files for several items at a time, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Footers that are read at a time: most of that is waiting, if files are far away.
_MOST_FOOTERS = 16


def each_at_once(does: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return ``does(item)`` for each item, in their order."""
    if len(items) < 2:
        return list(map(does, items))
    with ThreadPoolExecutor(min(_MOST_FOOTERS, len(items))) as pool:
        return list(pool.map(does, items))
