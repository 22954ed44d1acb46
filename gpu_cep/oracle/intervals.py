"""Find the matches of interval patterns by trying every combination of situations, as the definitions say.

Nothing is optimised, so streams must be short. What docs/intervals.md and TPStream leave open is
decided here as follows.

Situations:

* A run that begins with the stream's first event is a situation. No event before it has to fail the condition.
* A run ends at the time of the first event behind it, in stream order, even if its last event has the same time.
* With a float timestamp, durations are computed as floats, and so is the length they are compared with.

``detect="final"``: a match is a combination of one situation for each name, all of which have ended.
Their durations are within the bounds, and they satisfy every constraint. The time from the first
start to the last end is at most the window. The match is detected at its last end.

``detect="early"``: the stream is read timestamp by timestamp. After all events of a timestamp T:

* A situation is known if its first event is.
* It has ended if its end is T or earlier. Otherwise it is open, whether or not it ever ends.
* A run of events of T alone that ends at T is no situation.
* A situation that has ended is available from its end on, if its duration is within the bounds.
* An open one is available if it has no duration constraint. With AT LEAST d alone, it is available
  once T - ts >= d. With an upper bound it is not.
* A combination is detected at the first T at which its situations are available and its constraints
  decided.
* A constraint is decided by a relation whose definition holds, where an open end is later than T.
  The third point in the order of that definition (Table 2) must be T or earlier.
  For equals and finishes, the third and the fourth point are the same: both situations have ended.
* A constraint is also decided by a prefix group whose prefix holds, if it has all relations of the group.
  The prefix of overlaps, finishes and contains is that A starts before B and is open when B starts.
  A prefix decides even if a duration makes one of the two available so late that a relation is decided by then.
* Each constraint is decided by itself, also those on the same pair.
* A situation that a gap ends is seen to have ended at the next event. Its end is the time at which
  the gap had lasted long enough. With a float timestamp this may be the time of its last event, if
  that is so large that the gap is lost: an EventError.
* The window is judged at T alone. If more time passes from the first start to T, the combination is
  no match, now or later. If not, it is a match, however long an open situation goes on.

Both modes report a combination once. A result's `match_end` is the last end. It is NULL if a
situation is open at detection, as are that situation's end and duration. Its events are those up to
detection. Matches are ordered as events' are: stream key, first event, last event, events of
each name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

import pyarrow as pa

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang import ast, ast_intervals
from gpu_cep.lang.durations import with_durations
from gpu_cep.oracle.expressions import Assignment, Row, Schema, meaning
from gpu_cep.oracle.meanings import Kind
from gpu_cep.oracle.options import IntervalOptions, agreed, known, names
from gpu_cep.oracle.relations import INVERSE, Time, holds, is_decided
from gpu_cep.oracle.rewriting import rewritten
from gpu_cep.oracle.situations import (
    Definition,
    Length,
    Situation,
    definition_of,
    elapsed,
    is_boolean,
    length_of,
    refuse_lost_gaps,
    seen_at,
    situations,
)
from gpu_cep.oracle.streams import Stream, kind_of, schema_of, streams, tick
from gpu_cep.oracle.values import Value

Combination = tuple[Situation, ...]  # one for each name, in the order of DEFINE
Detection = tuple[Combination, Time]


@dataclass(frozen=True, slots=True)
class IntervalMatch:
    """A match of situations, with its result.

    `keys`: the values of the stream's keys.
    `match_start`, `match_end`, `detected_at`: as in the result.
    Times and durations are those of :func:`~gpu_cep.oracle.streams.values`.
    `rows`: for each name, the input rows of the situation's events up to detection, in stream order.
    `lasts`: for each name, start and end of the situation in ticks; the end is None while it is open.
    `at`: when the match is detected, in ticks.
    `returned`: the values of RETURN.
    """

    keys: tuple[Value, ...]
    match_start: Value
    match_end: Value
    detected_at: Value
    rows: Mapping[str, tuple[int, ...]]
    lasts: Mapping[str, tuple[Time, Time | None]]
    at: Time
    returned: tuple[Value, ...]


def matches(
    query: ast_intervals.IntervalQuery, events: pa.Table, options: IntervalOptions | None = None, *, limit: int = 200_000
) -> list[IntervalMatch]:  # fmt: skip
    """Return all matches of `query` in `events`.

    Parameters
    ----------
    query
        A query over situations.
    events
        As in :func:`gpu_cep.match`.
    options
        What the caller says beside the text (None: nothing).
    limit
        How many combinations of situations may be tried at a time; a stream
        with more is an UnsupportedError.
    """
    options = options or IntervalOptions()
    find = known("detect", options.detect, DETECTION)
    renamed = known("allen", options.allen, ALLEN)
    keys = agreed("partition_by", query.partition_by, names(options.partition_by)) or ()
    schema = schema_of(events, options.functions)
    query = with_durations(query, partial(is_boolean, query.source, schema))
    parts = streams(events, options.timestamp, keys, names(options.order_by))
    time, time_unit = events.schema.field(options.timestamp).type, options.time_unit
    definitions = tuple(definition_of(situation, query.source, schema, time, time_unit) for situation in query.situations)
    constraints = [_constraint(constraint, definitions, renamed) for constraint in query.constraints]
    window = _window(query.within, time, time_unit)
    returns = _returns(query, schema, kind_of(time))
    matched = []
    for stream in parts:
        problem = Problem(stream, definitions, constraints, length_of(options.gap, time, time_unit), tick(time) or 1, limit)
        found = [(combination, at) for combination, at in find(problem) if _is_within(window, combination, at)]
        found.sort(key=lambda detection: _rank(detection[0]))
        matched += [_result(combination, at, problem, returns, keys) for combination, at in found]
    return matched


def _window(window: ast.Window | None, time: pa.DataType, unit: str | None) -> Length | None:
    if window is not None and window.unit == "events":
        raise UnsupportedError("the window of situations is a length of time")
    return length_of(window, time, unit)


def _is_within(window: Length | None, combination: Combination, at: Time) -> bool:
    return window is None or elapsed(min(situation.start for situation in combination), at) <= window


@dataclass(frozen=True, slots=True)
class Constraint:
    """The relations of which one must hold between the situations number `left` and `right`."""

    left: int
    right: int
    relations: frozenset[str]

    def holds(self, combination: Combination) -> bool:
        """Return whether the situations of a combination satisfy the constraint."""
        return holds(self.relations, combination[self.left].interval, combination[self.right].interval)

    def is_decided(self, combination: Combination) -> bool:
        """Return whether the ends that are not known yet can change nothing of that."""
        return is_decided(self.relations, combination[self.left].interval, combination[self.right].interval)


# Names of relations in queries -> their names in Table 1, where these differ.
ALLEN: Mapping[str, Mapping[str, str]] = {"paper": {}, "1983": {"finishes": "finished-by", "finished-by": "finishes"}}


def _constraint(constraint: ast_intervals.Constraint, definitions: Sequence[Definition], renamed: Mapping[str, str]) -> Constraint:
    numbers = {definition.name: number for number, definition in enumerate(definitions)}
    left, right = constraint.alternatives[0].left, constraint.alternatives[0].right
    relations = set()
    for alternative in constraint.alternatives:
        pair, relation = (alternative.left, alternative.right), renamed.get(alternative.relation, alternative.relation)
        if left == right or set(pair) != {left, right} or not set(pair) <= set(numbers):
            raise PatternError("the alternatives of a constraint relate the same two situations")
        relations.add(relation if pair == (left, right) else INVERSE[relation])
    return Constraint(numbers[left], numbers[right], frozenset(relations))


@dataclass(frozen=True, slots=True)
class Problem:
    """One stream, and the situations and constraints to find in it.

    `gap`: the longest time without events that ends no situation; None: any.
    `tick`: what one tick is in the oracle's values of time.
    `limit`: the most combinations that may be tried at a time.
    """

    stream: Stream
    definitions: Sequence[Definition]
    constraints: Sequence[Constraint]
    gap: Length | None
    tick: int
    limit: int

    def value_of(self, time: Time) -> Value:
        """Return a time in ticks as a value that the oracle computes with."""
        return time * self.tick

    def combinations(self, candidates: Sequence[Sequence[Situation]]) -> Iterator[Combination]:
        """Yield all combinations of one situation of each list."""
        if prod(map(len, candidates)) > self.limit:
            raise UnsupportedError(f"the oracle does not try more than {self.limit} combinations of situations")
        return product(*candidates)


def _final(problem: Problem) -> Iterator[Detection]:
    """Yield the combinations that satisfy the constraints, with their last ends (Definition 11).

    All their situations have ended.
    """
    candidates = [
        [situation for situation in situations(definition, problem.stream, problem.gap) if definition.admits(situation)]
        for definition in problem.definitions
    ]
    for combination in problem.combinations(candidates):
        if all(constraint.holds(combination) for constraint in problem.constraints):
            yield combination, max(situation.end for situation in combination if situation.end is not None)


def _early(problem: Problem) -> Iterator[Detection]:
    """Yield each combination as known at the first time that decides all constraints, with that time.

    This is early detection (section 5.3.1).
    """
    for definition in problem.definitions:
        refuse_lost_gaps(definition, problem.stream, problem.gap)
    detected = set()
    for now in sorted(set(problem.stream.times)):
        candidates = [_available(definition, problem, now) for definition in problem.definitions]
        for combination in problem.combinations(candidates):
            firsts = tuple(situation.first for situation in combination)
            if firsts not in detected and all(constraint.is_decided(combination) for constraint in problem.constraints):
                detected.add(firsts)
                yield combination, now


def _available(definition: Definition, problem: Problem, now: Time) -> list[Situation]:
    """Return the situations that a match at `now` can take, as known then."""
    started = [situation for situation in situations(definition, problem.stream, problem.gap) if situation.start <= now]
    seen = [seen_at(now, situation, problem.stream) for situation in started]
    return [situation for situation in seen if definition.is_available(situation, now)]


DETECTION: Mapping[str, Callable[[Problem], Iterable[Detection]]] = {"final": _final, "early": _early}


def _rank(combination: Combination) -> tuple[object, ...]:
    bindings = [tuple(range(situation.first, situation.last + 1)) for situation in combination]
    return min(map(min, bindings)), max(map(max, bindings)), bindings


# Attributes that the events of a situation are given for RETURN.
START, END, DURATION = "start()", "end()", "duration()"
ENDPOINTS = {"start": START, "end": END, "duration": DURATION}

Returned = Callable[[Assignment], Value]


def _result(combination: Combination, at: Time, problem: Problem, returns: Sequence[Returned], keys: Sequence[str]) -> IntervalMatch:
    stream = problem.stream
    pairs = [(definition.name, situation) for definition, situation in zip(problem.definitions, combination, strict=True)]
    ends = [situation.end for situation in combination]
    bound = {name: _events(situation, problem) for name, situation in pairs}
    return IntervalMatch(
        keys=tuple(stream.rows[0][key] for key in keys),
        match_start=problem.value_of(min(situation.start for situation in combination)),
        match_end=None if None in ends else problem.value_of(max(end for end in ends if end is not None)),
        detected_at=problem.value_of(at),
        rows={name: tuple(stream.numbers[situation.first : situation.last + 1]) for name, situation in pairs},
        lasts={name: (situation.start, situation.end) for name, situation in pairs},
        at=at,
        returned=tuple(value(Assignment(bound, {})) for value in returns),
    )


def _events(situation: Situation, problem: Problem) -> tuple[Row, ...]:
    start, end = problem.value_of(situation.start), None if situation.end is None else problem.value_of(situation.end)
    endpoints = {START: start, END: end, DURATION: None if end is None else elapsed(start, end)}
    return tuple({**row, **endpoints} for row in problem.stream.rows[situation.first : situation.last + 1])


def _returns(query: ast_intervals.IntervalQuery, schema: Schema, time: Kind) -> list[Returned]:
    duration = Kind.DURATION if time in (Kind.TIME, Kind.ZONED_TIME) else time
    kinds = {**schema.kinds, START: time, END: time, DURATION: duration}
    return [_item_value(item.expression, Schema(kinds, schema.functions)) for item in query.returns]


def _item_value(expression: ast.Expression, schema: Schema) -> Returned:
    """Return the function that computes one item of RETURN.

    An attribute of a situation is the list of its events' values.
    """
    if isinstance(expression, ast.Reference) and expression.variable is not None and expression.attribute is not None:
        name, attribute = expression.variable, expression.attribute
        return lambda assignment: [row[attribute] for row in assignment.bound[name]]
    return meaning(rewritten(expression, _endpoint), schema).value


def _endpoint(node: ast.Expression) -> ast.Expression | None:
    """Return ``start(A)`` as a reference to an attribute that all events of A have; None for other nodes."""
    match node:
        case ast.Call(function=function, arguments=(ast.Reference(variable=str(name), attribute=None),)) if function in ENDPOINTS:
            return ast.Aggregate("first", name, ENDPOINTS[function])
    return None
