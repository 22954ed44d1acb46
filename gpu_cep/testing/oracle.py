"""The judge of all engines: matches found by trying everything, straight from the definitions.

Two definitions live here, independent of each other. Γ, the set of all matches,
enumerates substitutions and asks of each whether it is a match (SPEC section 2,
thesis Def. 3.2). The strategies walk the stream event by event with ext(g, e)
(SPEC section 3, thesis Def. 6.1). Nothing is optimised, so short streams only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeVar

import pyarrow as pa

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.testing.expressions import Row
from gpu_cep.testing.patterns import Condition, Pattern, Quantity, pattern_of
from gpu_cep.testing.streams import Stream, schema_of, streams, tick

Substitution = Mapping[str, tuple[int, ...]]  # variable -> stream positions, ascending
Match = dict[str, tuple[int, ...]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """One stream to match and what to match in it.

    `is_within` says whether events at two positions, the earlier first, fit
    in the window; `is_before` whether one precedes the other (SPEC section 1).
    """

    pattern: Pattern
    stream: Stream
    is_within: Callable[[int, int], bool]
    is_before: Callable[[int, int], bool]

    @property
    def positions(self) -> range:
        return range(len(self.stream.rows))

    def holds(self, condition: Condition, substitution: Substitution) -> bool:
        rows = self.stream.rows
        events: dict[str, tuple[Row, ...]] = {variable: tuple(rows[i] for i in bound) for variable, bound in substitution.items()}
        return condition.holds(events)


def matches(
    query: ast.Query,
    events: pa.Table,
    *,
    timestamp: str = "ts",
    partition_by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    type_column: str = "type",
    strategy: str | None = None,
    ties: str = "strict",
    time_unit: str | None = None,
    limit: int = 200_000,
) -> list[Match]:
    """All matches of `query` in `events`, in the order of SPEC section 3.

    Parameters
    ----------
    query
        SEQ and AND of single and repeated variables.
    events, timestamp, partition_by, order_by, type_column, strategy, ties, time_unit
        As in :func:`gpu_cep.match`.
    limit
        How many substitutions (for skip_till_next_match: partial matches)
        may be tried per stream; a stream with more is an UnsupportedError.

    Returns
    -------
    list of dict
        For each match, variable → row numbers of the input in stream order.
    """
    name = _agreed("strategy", query.strategy, strategy) or "skip_till_next_match"
    if name not in STRATEGIES:
        raise UnsupportedError(f"the oracle does not know {name}; it knows {', '.join(STRATEGIES)}")
    keys = _agreed("partition_by", query.partition_by, _names(partition_by)) or ()
    found = []
    for problem in problems(query, events, timestamp, keys, _names(order_by), type_column, ties, time_unit):
        ordered = sorted(STRATEGIES[name](problem, limit), key=lambda match: _rank(problem.pattern, match))
        found += [_rows(problem, match) for match in ordered]
    return found


def problems(
    query: ast.Query,
    events: pa.Table,
    timestamp: str,
    partition_by: Sequence[str],
    order_by: Sequence[str],
    type_column: str,
    ties: str,
    time_unit: str | None,
) -> list[Problem]:
    """One problem per stream of `events`, ordered by stream key."""
    pattern = pattern_of(query, schema_of(events), type_column)
    parts = streams(events, timestamp, partition_by, order_by)
    length = _window_length(query.within, events.schema.field(timestamp).type, time_unit)
    return [Problem(pattern, stream, _within(query.within, length, stream), _before(ties, stream)) for stream in parts]


# All matches: SPEC section 2 ---------------------------------------------------


def all_matches(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Γ: every substitution that is a match (thesis Def. 3.2)."""
    size = number_of_substitutions(problem)
    if size > limit:
        raise UnsupportedError(f"brute force tries {limit} substitutions per stream; one of {len(problem.positions)} events has {size}")
    return (substitution for substitution in substitutions(problem) if is_match(problem, substitution))


def substitutions(problem: Problem) -> Iterator[Substitution]:
    """Every way to give the events of a window to variables.

    The first event of the substitution opens the window. An event goes only to
    a variable whose properties it has; everything else is left to :func:`is_match`.
    """
    fitting = _fitting(problem)
    for first in problem.positions:
        window = _window(problem, first)
        choices = [fitting[first], *([*fitting[position], None] for position in window[1:])]
        for assigned in product(*choices):
            yield {name: tuple(i for i, v in zip(window, assigned, strict=True) if v == name) for name in problem.pattern.variables}


def number_of_substitutions(problem: Problem) -> int:
    """How many :func:`substitutions` there are."""
    fitting = _fitting(problem)
    windows = [_window(problem, first) for first in problem.positions]
    return sum(len(fitting[window[0]]) * math.prod(1 + len(fitting[position]) for position in window[1:]) for window in windows)


def _window(problem: Problem, first: int) -> list[int]:
    """The positions from `first` to the end of its window."""
    return [position for position in problem.positions if position >= first and problem.is_within(first, position)]


def _fitting(problem: Problem) -> list[list[str | None]]:
    """For each event the variables all of whose properties it has."""
    return [[name for name in problem.pattern.variables if _has_properties(problem, name, position)] for position in problem.positions]


def _has_properties(problem: Problem, name: str, position: int) -> bool:
    properties = [condition for condition in problem.pattern.conditions if condition.variables == (name,)]
    return all(problem.holds(condition, {name: (position,)}) for condition in properties)


def is_match(problem: Problem, substitution: Substitution) -> bool:
    """Whether `substitution` is a match of the whole pattern (SPEC section 2)."""
    return (
        _fills(problem.pattern.variables, substitution)
        and _is_in_order(problem, substitution)
        and _is_in_window(problem, substitution)
        and all(problem.holds(condition, substitution) for condition in problem.pattern.conditions)
    )


def _fills(variables: Mapping[str, Quantity], substitution: Substitution) -> bool:
    events = [position for bound in substitution.values() for position in bound]
    return len(events) == len(set(events)) and all(_is_filled(quantity, substitution.get(name, ())) for name, quantity in variables.items())


def _is_filled(quantity: Quantity, bound: Sequence[int]) -> bool:
    return len(bound) >= quantity.minimum and not _is_over(quantity, bound)


def _is_over(quantity: Quantity, bound: Sequence[int]) -> bool:
    return quantity.maximum is not None and len(bound) > quantity.maximum


def _is_in_order(problem: Problem, substitution: Substitution) -> bool:
    return all(
        problem.is_before(earlier, later)
        for first, second in problem.pattern.before
        for earlier in substitution.get(first, ())
        for later in substitution.get(second, ())
    )


def _is_in_window(problem: Problem, substitution: Substitution) -> bool:
    events = sorted(position for bound in substitution.values() for position in bound)
    return problem.is_within(events[0], events[-1])


# The strategies: SPEC section 3 -------------------------------------------------


def extensions(problem: Problem, partial: Substitution, position: int) -> list[str]:
    """ext(g, e): the variables that may bind the event at `position`, which follows all events of `partial`."""
    return [name for name in problem.pattern.variables if _may_bind(problem, partial, name, position)]


def _may_bind(problem: Problem, partial: Substitution, name: str, position: int) -> bool:
    pattern = problem.pattern
    predecessors = [first for first, second in pattern.before if second == name]
    successors = [second for first, second in pattern.before if first == name]
    extended = _bind(partial, name, position)
    return (
        all(_is_filled(pattern.variables[other], partial.get(other, ())) for other in predecessors)
        and all(problem.is_before(event, position) for other in predecessors for event in partial.get(other, ()))
        and not any(other in partial for other in successors)
        and not _is_over(pattern.variables[name], extended[name])
        and _is_in_window(problem, extended)
        and all(problem.holds(condition, extended) for condition in _decided(pattern, extended))
    )


def _bind(partial: Substitution, name: str, position: int) -> Substitution:
    return {**partial, name: (*partial.get(name, ()), position)}


def _decided(pattern: Pattern, partial: Substitution) -> list[Condition]:
    """The incremental conditions whose variables are bound; the equality closure is one of them for every two events."""
    return [condition for condition in (*pattern.conditions, *pattern.closure) if all(name in partial for name in condition.variables)]


Rule = Callable[[Problem, Substitution], tuple[list[Substitution], bool]]


def skip_till_next_match(problem: Problem, limit: int) -> Iterator[Substitution]:
    """The first event that extends a partial match must be taken (thesis Def. 6.1), up to a maximal match."""
    return _explored(problem, _greedy, limit)


def skip_till_any_match(problem: Problem, limit: int) -> Iterator[Substitution]:
    """The process that may take or pass over any event; it finds Γ."""
    return _explored(problem, _free, limit)


def _explored(problem: Problem, rule: Rule, limit: int) -> Iterator[Substitution]:
    """The complete matches among all partial matches that `rule` leads to and lets end."""
    waiting = [_bind({}, name, position) for position in problem.positions for name in extensions(problem, {}, position)]
    tried = 0
    while waiting:
        tried += 1
        if tried > limit:
            raise UnsupportedError(f"brute force tries {limit} partial matches per stream; one of {len(problem.positions)} events has more")
        partial = waiting.pop()
        extended, may_end = rule(problem, partial)
        waiting += extended
        if may_end and _fills(problem.pattern.variables, partial):
            yield partial


def _greedy(problem: Problem, partial: Substitution) -> tuple[list[Substitution], bool]:
    """What becomes of `partial`: one extension per variable that may bind the first event that any may, or it ends."""
    for position in _later(problem, partial):
        if names := extensions(problem, partial, position):
            return [_bind(partial, name, position) for name in names], False
    return [], True


def _free(problem: Problem, partial: Substitution) -> tuple[list[Substitution], bool]:
    """What becomes of `partial`: every extension, and it ends as well."""
    later = [(name, position) for position in _later(problem, partial) for name in extensions(problem, partial, position)]
    return [_bind(partial, name, position) for name, position in later], True


def _later(problem: Problem, partial: Substitution) -> list[int]:
    """The positions of the window after the last event of `partial`."""
    events = [position for bound in partial.values() for position in bound]
    return [position for position in _window(problem, min(events)) if position > max(events)]


STRATEGIES: Mapping[str, Callable[[Problem, int], Iterator[Substitution]]] = {
    "skip_till_next_match": skip_till_next_match,
    "skip_till_any_match": all_matches,
}


# Window, order, results ---------------------------------------------------------


def _window_length(window: ast.Window | None, timestamp: pa.DataType, time_unit: str | None) -> Fraction | None:
    """The window in ticks of the timestamp column."""
    if window is None or window.unit == "events":
        return None
    amount = Fraction(window.amount)
    if window.unit is None:
        return amount
    ticks = tick(timestamp) or _unit_length(time_unit)
    return amount * ast.UNITS[window.unit] / ticks


def _unit_length(time_unit: str | None) -> int:
    if time_unit is None:
        raise PatternError("a window with a unit over a number column needs time_unit=")
    lengths = {**ast.UNITS, "s": ast.UNITS["seconds"]}
    if time_unit not in lengths:
        raise PatternError(f"unknown time_unit {time_unit!r}")
    return lengths[time_unit]


def _within(window: ast.Window | None, length: Fraction | None, stream: Stream) -> Callable[[int, int], bool]:
    if window is None:
        return lambda first, last: True
    if length is None:
        return lambda first, last: last - first < window.amount
    times = stream.times
    if any(isinstance(time, float) for time in times):
        # infinity is no time after infinity
        return lambda first, last: times[last] == times[first] or times[last] - times[first] <= float(length)
    return lambda first, last: times[last] - times[first] <= length


def _before(ties: str, stream: Stream) -> Callable[[int, int], bool]:
    if ties == "strict":
        return lambda earlier, later: stream.times[earlier] < stream.times[later]
    if ties == "position":
        return lambda earlier, later: earlier < later
    raise PatternError(f"ties is 'strict' or 'position', not {ties!r}")


def _rank(pattern: Pattern, match: Substitution) -> tuple[object, ...]:
    """First event, last event, then bindings variable by variable."""
    events = [position for bound in match.values() for position in bound]
    return (min(events), max(events), *(match[name] for name in pattern.variables))


def _rows(problem: Problem, match: Substitution) -> Match:
    return {name: tuple(problem.stream.numbers[position] for position in match[name]) for name in problem.pattern.variables}


def _names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def _agreed(clause: str, written: T | None, given: T | None) -> T | None:
    """What the text and the keyword say; they must not contradict."""
    if written and given and written != given:
        raise PatternError(f"the query says {clause} {written!r}, the call {given!r}")
    return written or given
