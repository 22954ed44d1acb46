"""Decide Allen's relations between two situations, as the tables of TPStream print them.

A situation may still be open when it is looked at. Its end is then unknown, but later than all that
was seen. For a run that goes on after all events of a timestamp ends at a later one, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Time = int | float  # ticks of the timestamp column
Point = tuple[bool, Time]  # (whether it is unknown, the time if it is known)


class Interval(NamedTuple):
    """The start and the end of a situation; an unknown end compares as later than any known point."""

    start: Point
    end: Point


IsTrue = Callable[[Interval, Interval], bool]


def interval(start: Time, end: Time | None) -> Interval:
    """Return the interval of a situation from `start` to `end`; `end` is None while it is open."""
    return Interval((False, start), (True, 0) if end is None else (False, end))


def _is_known(point: Point) -> bool:
    return not point[0]


# Table 1: the relations and their definitions.
_LEFT_TO_RIGHT: dict[str, IsTrue] = {
    "before": lambda a, b: a.start < a.end < b.start < b.end,
    "starts": lambda a, b: a.start == b.start < a.end < b.end,
    "meets": lambda a, b: a.start < a.end == b.start < b.end,
    "overlaps": lambda a, b: a.start < b.start < a.end < b.end,
    "during": lambda a, b: b.start < a.start < a.end < b.end,
    "finishes": lambda a, b: a.start < b.start < a.end == b.end,
    "equals": lambda a, b: a.start == b.start < a.end == b.end,
}

# Table 1: the name of each relation with its sides exchanged.
_EQUIVALENT = {
    "before": "after",
    "starts": "started-by",
    "meets": "met-by",
    "overlaps": "overlapped-by",
    "during": "contains",
    "finishes": "finished-by",
}

# Table 2: whether the third point in the order of the definition is known, which decides the relation.
_IS_DECIDABLE: dict[str, IsTrue] = {
    "before": lambda a, b: _is_known(b.start),
    "starts": lambda a, b: _is_known(a.end),
    "meets": lambda a, b: _is_known(b.start),
    "overlaps": lambda a, b: _is_known(a.end),
    "during": lambda a, b: _is_known(a.end),
    "finishes": lambda a, b: _is_known(a.end) and _is_known(b.end),
    "equals": lambda a, b: _is_known(a.end) and _is_known(b.end),
}


@dataclass(frozen=True, slots=True)
class PrefixGroup:
    """Relations whose definitions begin alike.

    `prefix`: that beginning. Where it holds, a constraint with all `relations` is decided.
    """

    relations: frozenset[str]
    prefix: IsTrue


# Table 2: the prefix groups that begin with A.ts. In the last one A is open at B.ts, or it would be before B or meet it.
_GROUPS = (
    PrefixGroup(frozenset({"before", "meets"}), lambda a, b: a.start < a.end <= b.start),
    PrefixGroup(frozenset({"starts", "equals", "started-by"}), lambda a, b: a.start == b.start),
    PrefixGroup(frozenset({"overlaps", "finishes", "contains"}), lambda a, b: a.start < b.start < a.end),
)


def _exchange(is_true: IsTrue) -> IsTrue:
    return lambda a, b: is_true(b, a)


def _of_both_sides(table: Mapping[str, IsTrue]) -> dict[str, IsTrue]:
    return {**table, **{equivalent: _exchange(table[name]) for name, equivalent in _EQUIVALENT.items()}}


INVERSE = {**_EQUIVALENT, **{equivalent: name for name, equivalent in _EQUIVALENT.items()}, "equals": "equals"}
DEFINITIONS = _of_both_sides(_LEFT_TO_RIGHT)
IS_DECIDABLE = _of_both_sides(_IS_DECIDABLE)
PREFIX_GROUPS = _GROUPS + tuple(
    PrefixGroup(frozenset(INVERSE[relation] for relation in group.relations), _exchange(group.prefix)) for group in _GROUPS
)


def holds(relations: Collection[str], left: Interval, right: Interval) -> bool:
    """Return whether two situations that have ended satisfy one of `relations` (Definition 10)."""
    return any(DEFINITIONS[relation](left, right) for relation in relations)


def is_decided(relations: Collection[str], left: Interval, right: Interval) -> bool:
    """Return whether two situations are already known to satisfy one of `relations` (Table 2).

    Both must have started.
    """
    by_relation = any(IS_DECIDABLE[relation](left, right) and DEFINITIONS[relation](left, right) for relation in relations)
    by_prefix = any(group.relations <= set(relations) and group.prefix(left, right) for group in PREFIX_GROUPS)
    return by_relation or by_prefix
