"""Read objects of Spark's JVM, as Py4J hands them over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def items(sequence: Any) -> Iterator[Any]:
    """Yield the items of a sequence of Scala, which Python cannot iterate over."""
    return (sequence.apply(place) for place in range(sequence.size()))
