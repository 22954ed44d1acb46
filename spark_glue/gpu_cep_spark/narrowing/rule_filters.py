"""Unite the filters of many rules to one, which Spark applies before events are sent."""

from __future__ import annotations

from collections.abc import Sequence
from operator import or_

from pyspark.sql import Column

# Up to so many filters are united.
MOST_FILTERS = 256


def any_filter(filters: Sequence[Column | None]) -> Column | None:
    """Return a filter that holds where one of the given ones does; None if one is not known, or if they are too many."""
    known = [each for each in filters if each is not None]
    return _balanced(known) if len(known) == len(filters) <= MOST_FILTERS else None


def _balanced(conditions: Sequence[Column]) -> Column:
    """Return the disjunction of some conditions as a tree that is not deep."""
    half = len(conditions) // 2
    return conditions[0] if not half else or_(_balanced(conditions[:half]), _balanced(conditions[half:]))
