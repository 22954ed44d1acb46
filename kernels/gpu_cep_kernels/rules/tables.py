"""The tables through which patterns reach generic kernels: arrays only.

v is a variable, c a condition, g one variable's part in a condition.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.rules.cut import KEEP_ALL, Cut, new_cut

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
# Variables by number; unsigned, so that as an index they need no test for their sign.
Variables = npt.NDArray[np.uint16]

# No variable and no event, of the types of others, so that what takes them is compiled once.
NO_VARIABLE, NO_EVENT = cast(int, np.uint16(2**16 - 1)), cast(int, np.int64(-1))


class PatternTable(NamedTuple):
    """Hold a pattern: a strict partial order on variables, and their quantifiers.

    ``precedes[u, v]`` says whether u precedes v. ``direct[direct_first[v]:direct_first[v + 1]]``
    are the variables that precede v immediately; `following` likewise those
    that it precedes immediately. ``order`` lists the variables topologically.
    ``maximum[v]`` may be ``rules.UNBOUNDED``.
    """

    order: Ints
    precedes: Flags
    direct_first: Ints
    direct: Variables
    following_first: Ints
    following: Variables
    minimum: Ints
    maximum: Ints


class ColumnBank(NamedTuple):
    """Columns as two matrices [column, row] with a word of NULL bits per row for each; the words may be empty: no NULLs.

    `vectors` [column, row, position] are lists of one length, or filled up with zeros; a NULL is all zeros.
    """

    ints: Ints
    floats: Floats
    int_nulls: Words
    float_nulls: Words
    vectors: Floats


class ProgramTable(NamedTuple):
    """Instructions of all programs, their constants, and lookup tables of string predicates."""

    code: Ints
    int_constants: Ints
    float_constants: Floats
    lookups: Bytes
    registers: int


# How the events of one variable are combined with those of the others.
ONCE, SINGLY, CONSECUTIVELY, PAIRWISE = range(4)
# How a condition is computed.
BY_PROGRAM, BY_INTS, BY_FLOATS = range(3)


class ConditionTable(NamedTuple):
    """Conditions between bindings.

    ``listed[first[v]:first[v + 1]]`` are the conditions to check when variable
    v binds an event: those that read it and, of those that read a binding as
    a whole, the ones that an event of v may decide. Condition c waits until
    the variables ``closing[closing_first[c]:closing_first[c + 1]]`` bind no
    more; `final` are those that only the end of a match decides. ``alone[v]``
    says whether the first event of a match, bound to v, decides any.

    Condition c has the parts ``part_first[c]`` to ``part_first[c + 1]``, one
    for each variable that it reads. Part g reads variable
    ``variable[g]``: the current event at role ``each[g]``, the one bound
    before at ``previous[g]``, the first and the last of the binding at
    ``start[g]`` and ``end[g]`` (−1: not read), over the events that
    ``spread[g]`` says. ``means[c]`` says how the
    condition is computed: by its program (instructions ``code_first[c]`` to
    ``code_last[c]``, result in ``result[c]``) or as one comparison of two
    columns at two roles. Where that compares the events of two single
    variables they are ``left_variable[c]`` and ``right_variable[c]``, else −1.
    """

    first: Ints
    listed: Ints
    alone: Flags
    closing_first: Ints
    closing: Ints
    final: Ints
    part_first: Ints
    variable: Ints
    each: Ints
    previous: Ints
    start: Ints
    end: Ints
    spread: Ints
    means: Ints
    comparison: Ints
    left_column: Ints
    left_role: Ints
    right_column: Ints
    right_role: Ints
    left_variable: Ints
    right_variable: Ints
    code_first: Ints
    code_last: Ints
    result: Ints
    roles: int


class AggregateTable(NamedTuple):
    """List the aggregates that are kept while bindings grow.

    ``first[v]`` to ``first[v + 1]`` are those of variable v; ``step[k]`` (see
    :mod:`gpu_cep_kernels.rules.running`) is what an event does to value k by the
    bank's column ``column[k]``, and ``missing[k]`` the integer that stands for it where there is none.
    """

    first: Ints
    step: Ints
    column: Ints
    missing: Ints


class Conditions(NamedTuple):
    """Hold all that conditions are judged by: their table, the aggregates and programs that it names, and the columns that these read.

    Event e of the batch stands in row ``base + e`` of the bank.
    """

    table: ConditionTable
    aggregates: AggregateTable
    programs: ProgramTable
    bank: ColumnBank
    base: int


class NegationTable(NamedTuple):
    """List the negations: events that must not happen beside a match.

    Negation n is about variable ``variable[n]``: no event of those at the
    ascending places ``places[place_first[n]:place_first[n + 1]]`` (numbers of
    all ordered events, as everywhere here) that is later than the events of
    the variables ``after[after_first[n]:after_first[n + 1]]``, and earlier
    than those of `before`, may satisfy the conditions listed for it. A side
    without variables is bounded by the window, which is `length` long on the
    `clock`. Stream s begins at ``streams[s]``, with one entry more for the
    end; `times` are empty where an event is before another by its place.
    """

    variable: Variables
    place_first: Ints
    places: Ints
    after_first: Ints
    after: Ints
    before_first: Ints
    before: Ints
    streams: Ints
    times: npt.NDArray[np.generic]
    clock: npt.NDArray[np.generic]
    length: np.generic


class Criteria(NamedTuple):
    """Hold what makes bound events a match: the pattern, the conditions and the negations."""

    pattern: PatternTable
    conditions: Conditions
    negations: NegationTable


class EventTable(NamedTuple):
    """Look up which event follows each event of a batch.

    ``after[e]`` is the first event that e is before, ``successor[e]`` the event
    that follows e in its partition; each is empty where that is always the
    next. ``occurrence[v, e]`` is the first event from e on that satisfies the
    properties of variable v.
    """

    after: Places
    occurrence: Places
    successor: Ints


class MatchTable(NamedTuple):
    """Take the matches that an enumeration writes.

    Match m starts at candidate ``starts[m]`` and binds ``counts[m, v]`` events
    to variable v; `events` are those of all matches, variable after variable,
    each in stream order. Where matches are only counted, ``totals[w]`` is
    raised by those of candidate w, and nothing else is written.
    """

    starts: Ints
    counts: Places
    events: Ints
    totals: Ints


class AggregateValues(NamedTuple):
    """Value k of the aggregates once the event at place d of the path is bound: ``ints[k, d]`` or ``floats[k, d]``.

    It counts ``counts[k, d]`` events; −1: it overflowed.
    """

    counts: Ints
    ints: Ints
    floats: Floats


class Registers(NamedTuple):
    """Hold what a program works on: each role's row of the bank and place on the path, and the registers with their NULL flags."""

    rows: Ints
    places: Ints
    ints: Ints
    floats: Floats
    nulls: Flags


class ProgramResults(NamedTuple):
    """Take a program's result for each row: a value in the array of its type, whether it is NULL, and whether the program failed."""

    ints: Ints
    floats: Floats
    nulls: Flags
    failed: Flags


class EventPath(NamedTuple):
    """Hold the state of one depth-first enumeration: a path of bound events, and the choices that are left at each place of it.

    ``event[d]``, ``bound_to[d]``, ``earlier[d]`` (the place of the event bound
    before to the same variable, or −1) describe the path; ``choice_event[d]``
    may be bound at place d to the variables ``choices[d, :left[d]]``, and
    ``led[d]`` says whether one of the choices led to a match. ``last[v]`` is the place of
    v's latest event or −1, ``first[v]`` that of its first, ``bound[v]`` their
    number. ``blockers[v]`` counts the variables that keep v from binding: those
    before it that bind less than their minimum, and those behind it that are
    bound. ``available`` lists variables and ``next_place`` their next events
    while one is sought. ``state`` is indexed by the constants below.
    `aggregates` are the values of the aggregates at each place, `registers`
    where the programs of conditions work, `cut` what matches found so far spare.
    """

    event: Ints
    bound_to: Variables
    earlier: Ints
    choice_event: Ints
    choices: Variables
    left: Ints
    led: Flags
    last: Ints
    first: Ints
    bound: Ints
    blockers: Ints
    available: Variables
    next_place: Ints
    state: Ints
    earliest: Ints
    cursor: Ints
    aggregates: AggregateValues
    registers: Registers
    cut: Cut


# What the places of a path's state hold:
# UNSATISFIED the number of variables that bind less than their minimum,
# REJECTED the events that searches looked at and did not bind,
# SEARCHES the searches since the start, or since its last match,
# LOOK the number of the next search that looks ahead,
# WASTED the searches of long runs that led to no match.
CANDIDATE, DEPTH, PHASE, MATCHES, EVENTS, STEPS, ERROR_CONDITION, UNSATISFIED, REJECTED, SEARCHES, LOOK, WASTED = range(12)
STATE_SIZE = 12

# Which events a run may pass over, and which matches it reports (SPEC section 3).
NEXT, ANY, CONTIGUOUS, ROBUST = range(4)

# Why an enumeration stopped.
FINISHED, OUTPUT_FULL, PATH_FULL, STEPS_SPENT, OVERFLOWED = range(5)


def new_path(depth: int, pattern: PatternTable, conditions: Conditions, kept: int = KEEP_ALL) -> EventPath:
    """Return an empty path with room for `depth` events, for one thread; `kept` says which matches are asked for."""
    roles, registers = max(1, conditions.table.roles), max(1, conditions.programs.registers)
    variables, values = len(pattern.order), len(conditions.aggregates.step)
    # negated variables never bind, but conditions read them
    named = len(conditions.table.first) - 1
    state = np.zeros(STATE_SIZE, np.int64)
    state[UNSATISFIED] = variables
    return EventPath(
        event=np.zeros(depth, np.int64),
        bound_to=np.zeros(depth, np.uint16),
        earlier=np.zeros(depth, np.int64),
        choice_event=np.zeros(depth + 1, np.int64),
        choices=np.zeros((depth + 1, variables), np.uint16),
        left=np.zeros(depth + 1, np.int64),
        led=np.zeros(depth + 1, np.bool_),
        last=np.full(named, -1, np.int64),
        first=np.full(named, -1, np.int64),
        bound=np.zeros(variables, np.int64),
        blockers=pattern.precedes.sum(axis=0),
        available=np.zeros(variables, np.uint16),
        next_place=np.zeros(variables, np.int64),
        state=state,
        earliest=np.zeros(variables, np.int64),
        cursor=np.zeros(max(1, named), np.int64),
        aggregates=new_values(values, depth),
        registers=Registers(
            rows=np.zeros(roles, np.int64),
            places=np.zeros(roles, np.int64),
            ints=np.zeros(registers, np.int64),
            floats=np.zeros(registers, np.float64),
            nulls=np.zeros(registers, np.bool_),
        ),
        cut=new_cut(kept, variables, depth),
    )


def new_values(values: int, depth: int) -> AggregateValues:
    """Return room for so many values at each of `depth` places."""
    shape = values, depth
    return AggregateValues(counts=np.zeros(shape, np.int64), ints=np.zeros(shape, np.int64), floats=np.zeros(shape))


def deepen_path(path: EventPath) -> EventPath:
    """Return `path` with room for twice as many events."""
    by_place = ("event", "bound_to", "earlier", "choice_event", "choices", "left", "led")
    grown: dict[str, Any] = {name: double_rows(getattr(path, name), 0) for name in by_place}
    cut = path.cut._replace(events=double_rows(path.cut.events))
    return path._replace(**grown, aggregates=AggregateValues(*(double_rows(values, 1) for values in path.aggregates)), cut=cut)


def double_rows(array: npt.NDArray[Any], axis: int = 0) -> npt.NDArray[Any]:
    """Return `array` with twice the length along an axis; the new half is zero."""
    grown = np.zeros((*array.shape[:axis], 2 * array.shape[axis], *array.shape[axis + 1 :]), array.dtype)
    # what is new takes no memory until it is written
    grown[(slice(None),) * axis + (slice(array.shape[axis]),)] = array
    return grown
