"""The tables through which patterns reach generic kernels: arrays only.

v is a variable, c a condition, g one variable's part in a condition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


class PatternTable(NamedTuple):
    """A strict partial order on variables with their quantifiers.

    ``before[v]`` and ``behind[v]`` are label masks of the variables that
    precede v and that v precedes. ``direct[direct_first[v]:direct_first[v + 1]]``
    are those that precede it immediately; `following` likewise those that it
    precedes immediately. ``order`` lists the variables topologically.
    ``maximum[v]`` may be ``rules.UNBOUNDED``; `everyone` has the bits of all.
    """

    order: Ints
    before: Words
    behind: Words
    direct_first: Ints
    direct: Ints
    following_first: Ints
    following: Ints
    minimum: Ints
    maximum: Ints
    everyone: np.uint64


class ColumnBank(NamedTuple):
    """Columns as two matrices [column, row] with a word of NULL bits per row for each; the words may be empty: no NULLs."""

    ints: Ints
    floats: Floats
    int_nulls: Words
    float_nulls: Words


class ProgramTable(NamedTuple):
    """Instructions of all programs, their constants, and lookup tables of string predicates."""

    code: Ints
    int_constants: Ints
    float_constants: Floats
    lookups: Bytes
    registers: int


# How the events of one variable are combined with those of the others.
SINGLY, CONSECUTIVELY, PAIRWISE = range(3)
# How a condition is computed.
BY_PROGRAM, BY_INTS, BY_FLOATS = range(3)


class ConditionTable(NamedTuple):
    """Conditions between bindings.

    ``listed[first[v]:first[v + 1]]`` are the conditions that read variable v.
    Condition c needs the variables ``needs[c]``; its parts are
    ``part_first[c]`` to ``part_first[c + 1]``. Part g reads variable
    ``variable[g]``: the current event at role ``each[g]``, the one bound
    before at ``previous[g]`` (−1: not read), over all events, consecutive
    events or earlier events as ``spread[g]`` says. ``means[c]`` says how the
    condition is computed: by its program (instructions ``code_first[c]`` to
    ``code_last[c]``, result in ``result[c]``) or as one comparison of two
    columns at two roles. Where that compares the events of two single
    variables they are ``left_variable[c]`` and ``right_variable[c]``, else −1.
    """

    first: Ints
    listed: Ints
    needs: Words
    part_first: Ints
    variable: Ints
    each: Ints
    previous: Ints
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


class Run(NamedTuple):
    """The state of one depth-first enumeration; a path of bound events and, for each place on it, the choices that are left.

    ``event[d]``, ``bound_to[d]``, ``earlier[d]`` (the place of the event bound
    before to the same variable, or −1) describe the path; ``choice_event[d]``
    and ``choices[d]`` (label mask) what may be bound at place d. ``last[v]``
    is the place of v's latest event or −1, ``bound[v]`` their number.
    ``state`` and ``masks`` are indexed by the constants below.
    """

    event: Ints
    bound_to: Ints
    earlier: Ints
    choice_event: Ints
    choices: Words
    last: Ints
    bound: Ints
    state: Ints
    masks: Words
    earliest: Ints
    cursor: Ints
    rows: Ints
    int_registers: Ints
    float_registers: Floats
    null_registers: npt.NDArray[np.bool_]


CANDIDATE, DEPTH, PHASE, MATCHES, EVENTS, STEPS, ERROR_CONDITION = range(7)
STATE_SIZE = 7

# Why an enumeration stopped.
FINISHED, OUTPUT_FULL, PATH_FULL, STEPS_SPENT, OVERFLOWED = range(5)
# Label masks: the variables that bind an event, and those that bind their minimum.
BOUND, SATISFIED = range(2)


def new_run(depth: int, variables: int, conditions: ConditionTable, programs: ProgramTable) -> Run:
    """Scratch for one thread, with room for a path of `depth` events."""
    registers = max(1, programs.registers)
    return Run(
        event=np.zeros(depth, np.int64),
        bound_to=np.zeros(depth, np.int64),
        earlier=np.zeros(depth, np.int64),
        choice_event=np.zeros(depth + 1, np.int64),
        choices=np.zeros(depth + 1, np.uint64),
        last=np.full(variables, -1, np.int64),
        bound=np.zeros(variables, np.int64),
        state=np.zeros(STATE_SIZE, np.int64),
        masks=np.zeros(2, np.uint64),
        earliest=np.zeros(variables, np.int64),
        cursor=np.zeros(max(1, variables), np.int64),
        rows=np.zeros(max(1, conditions.roles), np.int64),
        int_registers=np.zeros(registers, np.int64),
        float_registers=np.zeros(registers, np.float64),
        null_registers=np.zeros(registers, np.bool_),
    )


def deepened(run: Run) -> Run:
    """`run` with room for a path twice as long."""
    grown = {
        name: np.concatenate([getattr(run, name), np.zeros_like(getattr(run, name))])
        for name in ("event", "bound_to", "earlier", "choice_event", "choices")
    }
    return run._replace(**grown)
