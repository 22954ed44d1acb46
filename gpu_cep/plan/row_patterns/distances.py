"""Find how far a row that a condition navigates to is from the current one, where the pattern fixes that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.places import RowPlace

UNLIKE, NO_ROW = -2, -1
"""In place of how many rows before the current one a row lies: unlike on different ways or far away, and no such row on any way."""

# Offsets are followed through all states; of patterns with many, far ones are not.
_MOST_WORK = 1 << 16
# How many rows back are told apart where ways are, and of how many states and ways together.
_NEAR, _MOST_WAYS = 8, 512


class _Way(NamedTuple):
    """What is known where a match comes to a state.

    `rows`: how many rows of the set there are, up to those that matter; UNLIKE if that differs.
    `back`: how many rows before the current one the rows lie to which the offsets lead, the last of which is the place's.
    """

    rows: int
    back: tuple[int, ...]


def fixed_distances(automaton: RowAutomaton, place: RowPlace) -> dict[int, int]:
    """Return by variable how many rows behind the current one a place lies, whenever a row is mapped to that variable.

    Rows before the current one have a negative distance. Variables for which it differs from match to match are left out.

    Examples
    --------
    >>> from gpu_cep.lang.parser import parse
    >>> from gpu_cep.plan.row_patterns.automaton import row_automaton
    >>> automaton = row_automaton(parse("MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A B C+ D))").pattern)
    >>> fixed_distances(automaton, RowPlace((1,)))
    {1: 0}
    >>> fixed_distances(automaton, RowPlace((2,), distance=-1))
    {2: -1, 3: -2}
    """
    if place.final or place.inside or place.offset * len(automaton.variable) > _MOST_WORK:
        return {}
    found: dict[int, int] = {}
    for variable, way in zip(automaton.variable, _ways(automaton, place), strict=True):
        back = way.back[-1]
        found[variable] = back if found.get(variable, back) == back else UNLIKE
    return {variable: place.distance - back for variable, back in sorted(found.items()) if back >= 0}


def rows_back(automaton: RowAutomaton, places: Sequence[RowPlace], variable: int) -> set[tuple[int, ...]]:
    """Return how many rows before the current one the rows of some places lie, on each way to a row of a variable.

    A place's own distance is left out. Where there is no row it is NO_ROW, where the row is far away UNLIKE.
    The result is empty if that is not known, or there are too many ways.

    Examples
    --------
    >>> from gpu_cep.lang.parser import parse
    >>> from gpu_cep.plan.row_patterns.automaton import row_automaton
    >>> automaton = row_automaton(parse("MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A B+))").pattern)
    >>> sorted(rows_back(automaton, [RowPlace((1,), offset=1)], 1))
    [(-1,), (1,)]
    """
    if any(place.final or place.inside or place.offset > _NEAR for place in places):
        return set()
    begins = tuple(_begin(place) for place in places)
    waiting = [(q, _step(automaton, q, places, begins)) for q in {*automaton.starts_first, *automaton.starts_later} - {ACCEPT}]
    seen = set(waiting)
    while waiting:
        q, ways = waiting.pop()
        new = {(move, _step(automaton, move, places, ways)) for move in automaton.moves[q] if move != ACCEPT} - seen
        seen |= new
        waiting += new
        if len(seen) > _MOST_WAYS:
            return set()
    return {tuple(way.back[-1] for way in ways) for q, ways in seen if automaton.variable[q] == variable}


def _step(automaton: RowAutomaton, q: int, places: Sequence[RowPlace], ways: tuple[_Way, ...]) -> tuple[_Way, ...]:
    """Return what is known of each place in state q, where it was `ways` in the state before; what lies far back is UNLIKE."""
    met = (_in_state(automaton, q, place, way) for place, way in zip(places, ways, strict=True))
    return tuple(way._replace(back=tuple(back if back <= _NEAR else UNLIKE for back in way.back)) for way in met)


def _begin(place: RowPlace) -> _Way:
    """Return what is known before a match has a row."""
    return _Way(0, (NO_ROW,) * (1 if place.from_first else place.offset + 1))


def _in_state(automaton: RowAutomaton, q: int, place: RowPlace, before: _Way) -> _Way:
    covered = place.members is None or automaton.variable[q] in place.members
    return _from_first(before, covered, place.offset) if place.from_first else _from_last(before, covered, place.offset)


def _ways(automaton: RowAutomaton, place: RowPlace) -> list[_Way]:
    """Return what is known in each state: a fixed point of what comes along each move."""
    states = len(automaton.variable)
    known: list[_Way | None] = [None] * states
    begin = _begin(place)
    waiting = {q for q in (*automaton.starts_first, *automaton.starts_later) if q != ACCEPT}
    given: list[list[_Way]] = [[begin] if q in waiting else [] for q in range(states)]
    before = _sources(automaton)
    while waiting:
        q = waiting.pop()
        behind = [known[source] for source in before[q]]
        way = _in_state(automaton, q, place, _meet([*given[q], *(way for way in behind if way is not None)]))
        if way != known[q]:
            known[q] = way
            waiting.update(move for move in automaton.moves[q] if move != ACCEPT)
    return [begin if way is None else way for way in known]


def _sources(automaton: RowAutomaton) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in automaton.variable]
    for source, moves in enumerate(automaton.moves):
        for move in moves:
            if move != ACCEPT:
                before[move].append(source)
    return before


def _meet(ways: Sequence[_Way]) -> _Way:
    return _Way(_same(way.rows for way in ways), tuple(_same(each) for each in zip(*(way.back for way in ways), strict=True)))


def _same(values: Iterable[int]) -> int:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else UNLIKE


def _further(back: int) -> int:
    return back + 1 if back >= 0 else back


def _from_last(way: _Way, covered: bool, offset: int) -> _Way:
    if not covered:
        return _Way(0, tuple(map(_further, way.back)))
    return _Way(0, (0, *map(_further, way.back[:offset])))


def _from_first(way: _Way, covered: bool, offset: int) -> _Way:
    back, rows = _further(way.back[0]), way.rows
    if covered and rows == UNLIKE and back == NO_ROW:
        back = UNLIKE
    elif covered and rows == offset:
        back = 0
    if covered and 0 <= rows <= offset:
        rows += 1
    return _Way(rows, (back,))
