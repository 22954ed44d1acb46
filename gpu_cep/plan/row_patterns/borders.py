"""Say what PATTERN fixes of the rows of a match: which are its first and its last one, and how many some variables have."""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.places import RowPlace


def at_borders(automaton: RowAutomaton, place: RowPlace, at_end: bool) -> RowPlace:
    """Return the place of the first or the last row of the match where that is the same row, whatever the match; else the place.

    The last row is taken for the one up to the current row only `at_end`, where that is the current row.

    Examples
    --------
    >>> from gpu_cep.lang.parser import parse
    >>> from gpu_cep.plan.row_patterns.automaton import row_automaton
    >>> automaton = row_automaton(parse("MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A B+))").pattern)
    >>> at_borders(automaton, RowPlace((0,)), at_end=False)
    RowPlace(members=None, from_first=True, final=False, offset=0, distance=0, inside=False)
    >>> at_borders(automaton, RowPlace((1,)), at_end=True)
    RowPlace(members=None, from_first=False, final=False, offset=0, distance=0, inside=False)
    """
    if place.members is None or place.offset:
        return place
    covered = {q for q, variable in enumerate(automaton.variable) if variable in place.members}
    starts = {*automaton.starts_first, *automaton.starts_later} - {ACCEPT}
    entered = {move for moves in automaton.moves for move in moves} - {ACCEPT}
    ends = {q for q, moves in enumerate(automaton.moves) if ACCEPT in moves or automaton.ends[q]}
    left = {q for q, moves in enumerate(automaton.moves) if any(move != ACCEPT for move in moves)}
    if starts <= covered and (place.from_first or not covered & entered):
        return replace(place, members=None, from_first=True)
    if (at_end or place.final) and ends <= covered and (not place.from_first or not covered & left):
        return replace(place, members=None, from_first=False)
    return place


def rows_of_others(automaton: RowAutomaton, members: tuple[int, ...]) -> int | None:
    """Return how many rows each match has that are mapped to no variable of a set; None if that differs, or for empty matches.

    Examples
    --------
    >>> from gpu_cep.lang.parser import parse
    >>> from gpu_cep.plan.row_patterns.automaton import row_automaton
    >>> automaton = row_automaton(parse("MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A B+ C))").pattern)
    >>> rows_of_others(automaton, (1,)), rows_of_others(automaton, (0, 2))
    (2, None)
    """
    reached = [(q, 0) for q in {*automaton.starts_first, *automaton.starts_later} - {ACCEPT}]
    known: dict[int, int] = {}
    for q, before in reached:
        rows = before + (automaton.variable[q] not in members)
        if known.get(q, rows) != rows:
            return None
        if q not in known:
            known[q] = rows
            reached += [(move, rows) for move in automaton.moves[q] if move != ACCEPT]
    found = {known[q] for q, moves in enumerate(automaton.moves) if q in known and (ACCEPT in moves or automaton.ends[q])}
    return found.pop() if len(found) == 1 and not automaton.may_be_empty else None
