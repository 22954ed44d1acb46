"""Say what a stream keeps of the rows before a match, and refuse what it can never know for certain."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.analysis.bound_expressions import Field
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.analysis.row_patterns.rules import navigations_of
from gpu_cep.analysis.types import Kind
from gpu_cep.lang.row_patterns.ast import Navigation
from gpu_cep.lang.row_patterns.names import anchors_of
from gpu_cep.plan.programs import leaves
from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.row_plan import RowPlan

_TIMES = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.TIMESTAMP})


def rows_before(plan: RowPlan) -> int:
    """Return how many rows of a partition before a match bear on it.

    One at least tells that the partition has begun and how many matches it had, if that is asked or an error may name it.
    """
    begins = plan.automaton.starts_first != plan.automaton.starts_later
    told = begins or plan.bound.skip is not None or numbers_matches(plan)
    return max(0, int(told), *(-distance for distance in _distances(plan)))


def numbers_matches(plan: RowPlan) -> bool:
    """Return whether MEASURES read the number of the match."""
    read = (leaf.column for each in plan.measures for leaf in leaves(each.expression) if isinstance(leaf, Field))
    return plan.columns.match_number in read


def leads_behind(plan: RowPlan) -> bool:
    """Return whether rows behind the last row of a match may be read."""
    return any(distance > 0 for distance in _distances(plan))


def refuse_uncertain(plan: RowPlan, asked: str, text: str | None) -> None:
    """Raise UnsupportedError if a stream of the row pattern would wait, or keep rows, without a bound.

    The error names all reasons. `asked` says what is asked for, `text` is what errors quote.
    """
    faults, bound = Faults(), plan.bound
    _refuse_order(bound, asked, faults)
    _refuse_window(bound, asked, faults)
    for anchor in anchors_of(bound.query.pattern):
        if anchor.sign == "$":
            faults.refuse(f"{asked} with $", "only the end of the stream ends a partition: bound the match by WITHIN alone", anchor.span)
    if leads_behind(plan):
        span = next((each.span for each in _navigations(bound) if each.function == "NEXT"), None)
        hint = "the row behind a match may never come: add a variable for it at the end of PATTERN, and AFTER MATCH SKIP TO it"
        faults.refuse(f"{asked} with NEXT(…), which leads behind the match,", hint, span)
    faults.raise_any(text)


def _refuse_order(bound: BoundRowPattern, asked: str, faults: Faults) -> None:
    """Record an error unless rows are ordered by an ascending column of times first."""
    if not bound.order_by:
        faults.refuse(f"{asked} of MATCH_RECOGNIZE without ORDER BY", "ORDER BY the column of times first")
        return
    first, written = bound.order_by[0], bound.query.order_by[0]
    attribute = bound.schema.attributes[first.column]
    if first.descending or attribute.type.kind not in _TIMES:
        how = "in descending order" if first.descending else f"of type {attribute.type}"
        hint = "ORDER BY a column of times, ascending, first: a number, a date or a timestamp"
        faults.refuse(f"{asked} of MATCH_RECOGNIZE with ORDER BY {attribute.name} {how} first", hint, written.span)


def _refuse_window(bound: BoundRowPattern, asked: str, faults: Faults) -> None:
    """Record that rows would be kept without a bound."""
    if bound.window is None:
        hint = "add WITHIN and a length of time behind PATTERN, such as WITHIN INTERVAL '5' MINUTE"
        faults.refuse(f"{asked} of MATCH_RECOGNIZE without WITHIN, in which rows of a match that does not end would be kept,", hint)
    elif isinstance(bound.window, CountWindow) and bound.partition_by:
        hint = "give WITHIN a length of time, or make a stream for each partition"
        faults.refuse(f"{asked} of MATCH_RECOGNIZE with PARTITION BY and WITHIN a number of rows, of which all keys would be kept,", hint)


def _distances(plan: RowPlan) -> Iterator[int]:
    """Yield how far rows that are read may lie behind the last row of a match, or, if negative, before the first."""
    search = () if plan.search is None else plan.search.places
    yield from (place.distance for place in (*plan.places, *search))
    before = _rows_before_states(plan.automaton)
    for each in plan.neighbours:
        fewest = min((rows for q, rows in before.items() if plan.automaton.variable[q] == each.variable), default=0)
        yield from (min(0, distance + fewest) if distance < 0 else distance for distance in each.distances)


def _rows_before_states(automaton: RowAutomaton) -> dict[int, int]:
    """Return how many rows of a match come at least before the row of each state."""
    reached = [q for q in (*automaton.starts_first, *automaton.starts_later) if q != ACCEPT]
    found = dict.fromkeys(reached, 0)
    for q in reached:
        for move in automaton.moves[q]:
            if move != ACCEPT and move not in found:
                found[move] = found[q] + 1
                reached.append(move)
    return found


def _navigations(bound: BoundRowPattern) -> Iterator[Navigation]:
    query = bound.query
    for expression in (*(each.expression for each in query.measures), *(each.condition for each in query.definitions)):
        yield from navigations_of(expression)
