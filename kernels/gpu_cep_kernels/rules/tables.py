"""Define the tables of arrays through which generic kernels get patterns, conditions and events.

In indexes v is a variable, c a condition, g one variable's part in a condition.
A pair of fields ``x`` and ``x_first`` holds lists: list i is ``x[x_first[i]:x_first[i + 1]]``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.rules.cut import Cut

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
# Variables by number; unsigned, so that as an index they need no test for their sign.
Variables = npt.NDArray[np.uint16]

# They stand for no variable and no event; typed like others, so that a function that takes them is compiled once.
NO_VARIABLE, NO_EVENT = cast(int, np.uint16(2**16 - 1)), cast(int, np.int64(-1))


class PatternTable(NamedTuple):
    """Hold a pattern: a strict partial order on variables, and their quantifiers.

    - order: the variables in a topological order.
    - precedes[u, v]: whether u precedes v.
    - direct, direct_first: for each variable those that precede it immediately.
    - following, following_first: for each variable those that it precedes immediately.
    - minimum[v], maximum[v]: how many events v binds; the maximum may be UNBOUNDED.
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
    """Hold columns of values, one row per event or match.

    - ints, floats [column, row]: the int64 and the float64 columns.
    - int_nulls, float_nulls [row]: bit k is set where column k is NULL; empty if nothing is.
    - vectors [column, row, position]: lists of one length, shorter ones padded with zeros; a NULL is all zeros.
    """

    ints: Ints
    floats: Floats
    int_nulls: Words
    float_nulls: Words
    vectors: Floats


class ProgramTable(NamedTuple):
    """Hold the programs of expressions (:mod:`gpu_cep_kernels.rules.interpreter`).

    - code [instruction, 4]: the instructions of all programs: opcode, target, first, second.
    - int_constants, float_constants: the constants that instructions name.
    - lookups: tables of string predicates, one entry per string: 0 false, 1 true, 2 NULL.
    - registers: how many registers of each kind the programs need.
    """

    code: Ints
    int_constants: Ints
    float_constants: Floats
    lookups: Bytes
    registers: int


# Over what a condition must hold: a binding as a whole, each event of it, each event with the one before, each with every other.
ONCE, SINGLY, CONSECUTIVELY, PAIRWISE = range(4)
# How a condition is computed: by its program, or by comparing two int64 or two float64 columns.
BY_PROGRAM, BY_INTS, BY_FLOATS = range(3)


class ComparisonTable(Protocol):
    """Say of which columns condition c is one comparison, as the fields of the same names of ConditionTable."""

    @property
    def means(self) -> Ints: ...
    @property
    def comparison(self) -> Ints: ...
    @property
    def left_column(self) -> Ints: ...
    @property
    def right_column(self) -> Ints: ...


class ConditionTable(NamedTuple):
    """Hold the conditions between bindings.

    When v binds an event:

    - listed, first: for each variable the conditions to check: those that read
      it, and those on a whole binding that an event of v may decide.
    - alone[v]: whether the first event of a match, bound to v, decides any condition.
    - closing, closing_first: for each condition the variables that must bind no more before it is checked.
    - final: the conditions that only the end of a match decides.

    A part g of condition c reads one variable; c has the parts from ``part_first[c]`` to ``part_first[c + 1]``. A
    *role* is a number under which a condition finds a row of the bank; -1 means that it is not read.

    - variable[g]: the variable that part g reads.
    - each[g]: the role of the current event.
    - previous[g]: the role of the event bound before it.
    - start[g], end[g]: the roles of the binding's first and last event.
    - spread[g]: over which events the condition must hold (ONCE to PAIRWISE).

    How condition c is computed:

    - means[c]: by its program, or as one comparison of two columns (BY_PROGRAM, BY_INTS, BY_FLOATS).
    - comparison[c], left_column[c], left_role[c], right_column[c], right_role[c]: that comparison.
    - left_variable[c], right_variable[c]: set if it compares two single variables, else -1.
    - code_first[c], code_last[c]: its program is the instructions from the first to before the last.
    - result[c]: the register that holds the program's result.
    - roles: how many roles there are.
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
    """List the aggregates that are kept while bindings grow; k is an aggregate.

    - first[v]: the first aggregate of variable v; the last entry is the end.
    - step[k]: what an event does to the value (:class:`gpu_cep_kernels.rules.running.Aggregation`).
    - column[k]: the column of the bank that it reads.
    - missing[k]: the integer that stands for the value where there is none.
    """

    first: Ints
    step: Ints
    column: Ints
    missing: Ints


class Conditions(NamedTuple):
    """Hold all that judging conditions needs.

    - table: the conditions.
    - aggregates, programs: what they name.
    - bank: the columns that they read.
    - base: event e of the batch stands in row ``base + e`` of the bank.
    """

    table: ConditionTable
    aggregates: AggregateTable
    programs: ProgramTable
    bank: ColumnBank
    base: int


class NegationKeys(NamedTuple):
    """Hold the events of negations in buckets, of which a match looks into one for each negation.

    Where a condition demands that a negated event has the key of an event of the match, a bucket holds those whose key has one hash.

    - variable[n]: the variable whose event has the key; -1 if negation n has no key, and so one bucket.
    - column[n]: the int64 column of the bank in which that event has it.
    - first[n]: where the buckets of negation n begin in `border`, a power of two of them; the last entry is the end.
    - border: where each bucket begins in `places`; the last entry is the end.
    - places: the events, ascending within a bucket.
    """

    variable: Ints
    column: Ints
    first: Ints
    border: Ints
    places: Ints


class NegationTable(NamedTuple):
    """List the negations: events that must not happen beside a match.

    No event in the scope of negation n may satisfy the conditions that are listed
    for its variable. The scope lies behind the events of some variables and
    before those of others. A side without variables is bounded by the window.
    Events are numbered among all ordered events here.

    - variable[n]: the negated variable.
    - places, place_first: for each negation the events with its variable's properties, ascending.
    - keys: the same events in buckets.
    - after, after_first: for each negation the variables behind whose events its scope begins.
    - before, before_first: for each negation the variables before whose events its scope ends.
    - streams[s]: the first event of stream s; the last entry is the end.
    - times: the times by which ties are judged; empty where the order of places decides.
    - clock: each event's time for windows.
    - length: the window's length on the clock.
    """

    variable: Variables
    place_first: Ints
    places: Ints
    keys: NegationKeys
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
    """Look up which event follows each event e of a batch.

    - after[e]: the first event that e is before; empty where that is always the next one.
    - occurrence[v, e]: the first event from e on with the properties of variable v.
    - successor[e]: the event that follows e in its partition; empty where that is always the next one.
    """

    after: Places
    occurrence: Places
    successor: Ints


class MatchTable(NamedTuple):
    """Receive the matches that an enumeration writes; m is a match.

    - starts[m]: the candidate at which it starts.
    - counts[m, v]: how many events it binds to variable v.
    - events: the events of all matches, variable after variable, each in stream order.
    - totals[w]: the number of matches of candidate w; only this is written where matches are only counted.
    """

    starts: Ints
    counts: Places
    events: Ints
    totals: Ints


class AggregateValues(NamedTuple):
    """Hold the value of each aggregate k once the event at place d of the path is bound.

    - counts[k, d]: how many events it covers; −1 if it overflowed.
    - ints[k, d], floats[k, d]: the value, in the array of its type.
    """

    counts: Ints
    ints: Ints
    floats: Floats


class Registers(NamedTuple):
    """Hold what a program works on.

    - rows: each role's row of the bank.
    - places: each role's place on the path.
    - ints, floats, nulls: each register's value, in the array of its type, and whether it is NULL.
    """

    rows: Ints
    places: Ints
    ints: Ints
    floats: Floats
    nulls: Flags


class ProgramResults(NamedTuple):
    """Receive a program's result for each row.

    - ints, floats: the value, in the array of its type.
    - nulls: whether it is NULL.
    - failed: whether the program failed.
    """

    ints: Ints
    floats: Floats
    nulls: Flags
    failed: Flags


class EventPath(NamedTuple):
    """Hold the state of one depth-first enumeration: a path of bound events, and the choices left at each place d of it.

    - event[d], bound_to[d]: the event at place d and the variable that binds it.
    - earlier[d]: the place of the event bound before to the same variable, or −1.
    - choice_event[d]: the event that may be bound at place d,
    - choices[d, :left[d]]: and the variables that may bind it.
    - led[d]: whether one of the choices led to a match.
    - last[v], first[v]: the places of v's latest and first event; ``last[v]`` is −1 if v is unbound.
    - bound[v]: how many events v binds.
    - blockers[v]: how many variables keep v from binding: those before it that are
      below their minimum, and those behind it that are bound.
    - available, next_place: the variables that a search may bind, and their next events.
    - state: numbers that PathState names.
    - earliest[v]: scratch of looking ahead: the earliest event that v can bind.
    - cursor: scratch of conditions: the current combination of each part.
    - near: where the last scope of negations was found: its stream, then for each negation its first place.
    - aggregates: the values of the aggregates at each place.
    - registers: where the programs of conditions work.
    - cut: the matches that cut the search off.
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
    near: Ints
    aggregates: AggregateValues
    registers: Registers
    cut: Cut


class _PathState(NamedTuple):
    """Name the numbers in the state of a path."""

    CANDIDATE: int = 0  # the current window, row or end
    DEPTH: int = 1  # the length of the path
    PHASE: int = 2  # what the search does next
    MATCHES: int = 3  # how many matches are written,
    EVENTS: int = 4  # and how many events
    STEPS: int = 5  # how many steps were made
    ERROR_CONDITION: int = 6  # 0, or 1 plus the condition that overflowed
    UNSATISFIED: int = 7  # how many variables bind less than their minimum
    REJECTED: int = 8  # how many events searches looked at and did not bind
    SEARCHES: int = 9  # how many searches there were since the start, or since its last match
    LOOK: int = 10  # the number of the next search that looks ahead
    WASTED: int = 11  # how many searches of long runs led to no match


PathState = _PathState()


class Strategy(IntEnum):
    """Name the selection strategies: which events a run may pass over, and which matches it reports (docs/strategies.md)."""

    NEXT = 0
    ANY = 1
    CONTIGUOUS = 2
    ROBUST = 3


class Status(IntEnum):
    """Name why a search stopped; unless it is FINISHED or OVERFLOWED, the caller makes room and calls again."""

    FINISHED = 0
    OUTPUT_FULL = 1
    PATH_FULL = 2
    STEPS_SPENT = 3
    OVERFLOWED = 4  # an integer of a condition did
    CHOICE = 5  # an event leaves a choice, which a walk through single runs does not take
    NO_ROOM = 6  # the match buffer or the runs of NFA^b are full
