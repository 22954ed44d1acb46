"""Walk through the windows of a chain side by side, each by itself, some steps at a time.

The runs are those of :mod:`gpu_cep_kernels.automaton.chain_runs`. Here each window has its own state, so that a
run that rests goes on in a later call. The caller leaves out windows whose runs have ended. A first walk counts
the events of matches; a second one writes them where the counts say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.automaton.chain_judgements import Chain
from gpu_cep_kernels.automaton.chain_runs import WalkTask, follow_run
from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import (
    AggregateTable,
    AggregateValues,
    ColumnBank,
    Conditions,
    Ints,
    PathState,
    PatternTable,
    Places,
    ProgramTable,
    Registers,
    Status,
)


class ChainPattern(NamedTuple):
    """Hold how many events each variable binds, as the fields of the same names of PatternTable."""

    minimum: Ints
    maximum: Ints


class ChainConditionTable(NamedTuple):
    """Hold how conditions are computed, as the fields of the same names of ConditionTable."""

    means: Ints
    comparison: Ints
    left_column: Ints
    right_column: Ints
    code_first: Ints
    code_last: Ints
    result: Ints


class ChainConditions(NamedTuple):
    """Hold conditions with what they name and read, as the fields of the same names of Conditions."""

    table: ChainConditionTable
    aggregates: AggregateTable
    programs: ProgramTable
    bank: ColumnBank
    base: int


class ChainCriteria(NamedTuple):
    """Hold what makes events a run: only what chains need, since a launch hands over every array."""

    pattern: ChainPattern
    conditions: ChainConditions


class _RunNumber(NamedTuple):
    """Name the numbers that are kept of a window's run."""

    VARIABLE: int = 0  # the variable that binds the last event,
    BOUND: int = 1  # and how many events it binds
    DEPTH: int = 2  # how many events the run binds; of a run that has ended, 0 if it is no match
    EVENT: int = 3  # the event that is looked at next
    STEPS: int = 4  # how many steps were made
    STATUS: int = 5  # why the walk stopped
    FAULT: int = 6  # 0, or 1 plus the condition that overflowed


RunNumber = _RunNumber()


class ChainRuns(NamedTuple):
    """Hold how far the run of each window w has come.

    - numbers[n, w]: what RunNumber names.
    - slots[w]: the rows of the first and the last event of each variable, and of the current event.
    - aggregates [w, aggregate, variable]: the values of the aggregates.
    """

    numbers: Places
    slots: Ints
    aggregates: AggregateValues


class ChainScratch(NamedTuple):
    """Hold where conditions are judged, one row for each slot: numbers that PathState names, and registers."""

    state: Ints
    registers: Registers


class ChainPath(NamedTuple):
    """Hold where the conditions of one window are judged, as the fields of the same names of EventPath."""

    state: Ints
    aggregates: AggregateValues
    registers: Registers


class ChainMatches(NamedTuple):
    """Receive matches; they are written where it is known how many there are.

    - match[w]: the number of window w's match, and place[w]: where its events begin.
    - counts[m, v]: how many events match m binds to variable v.
    - events: the events of all matches, variable after variable.
    """

    match: Ints
    place: Ints
    counts: Places
    events: Places


class ChainWalk(NamedTuple):
    """Say how to walk: whether matches are only counted, and how many steps each run may make before it rests."""

    counting: bool
    step_limit: int


def chain_criteria(pattern: PatternTable, conditions: Conditions) -> ChainCriteria:
    """Return what chains need of a pattern and its conditions."""
    table = ChainConditionTable(*(getattr(conditions.table, name) for name in ChainConditionTable._fields))
    own = ChainConditions(table, conditions.aggregates, conditions.programs, conditions.bank, conditions.base)
    return ChainCriteria(ChainPattern(pattern.minimum, pattern.maximum), own)


def new_runs(xp: Any, size: int, variables: int, aggregates: int) -> ChainRuns:
    """Return the runs of `size` windows before their first events, as arrays of the module `xp`."""
    shape = size, aggregates, variables
    values = AggregateValues(*(xp.empty(shape, kind) for kind in (xp.int64, xp.int64, xp.float64)))
    return ChainRuns(xp.zeros((len(RunNumber), size), xp.int32), xp.empty((size, 2 * variables + 1), xp.int64), values)


def new_scratch(xp: Any, slots: int, roles: int, registers: int) -> ChainScratch:
    """Return scratch for `slots` threads, as arrays of the module `xp`."""
    rows, places = (xp.empty((slots, max(1, roles)), xp.int64) for _ in range(2))
    ints, floats, nulls = (xp.empty((slots, max(1, registers)), kind) for kind in (xp.int64, xp.float64, xp.bool_))
    return ChainScratch(xp.empty((slots, len(PathState)), xp.int64), Registers(rows, places, ints, floats, nulls))


@rule
def window_path(w: int, slot: int, scratch: ChainScratch, runs: ChainRuns) -> ChainPath:
    """Return where a thread judges the conditions of window w; no condition has overflowed yet."""
    own, values, state = scratch.registers, runs.aggregates, scratch.state[slot]
    registers = Registers(own.rows[slot], own.places[slot], own.ints[slot], own.floats[slot], own.nulls[slot])
    state[PathState.ERROR_CONDITION] = 0
    return ChainPath(state, AggregateValues(values.counts[w], values.ints[w], values.floats[w]), registers)


@rule
def _walk_run(
    i: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain, walk: ChainWalk,
    path: ChainPath | None, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Let the run of window ``going[i]`` go on; there is no path where all conditions are comparisons of columns."""
    numbers, w = runs.numbers, going[i]
    slots = runs.slots[w]
    v, bound, depth, event, made, complete, status = -1, 0, int(numbers[RunNumber.DEPTH, w]), 0, 0, False, Status.FINISHED
    start = int(windows.starts[w])
    if depth > 0:
        v, bound, event = int(numbers[RunNumber.VARIABLE, w]), int(numbers[RunNumber.BOUND, w]), int(numbers[RunNumber.EVENT, w])
    else:
        event = start
    if depth > 0 or events.occurrence[0, start] == start:
        m, place = (0, 0) if walk.counting else (int(matches.match[w]), int(matches.place[w]))
        task = WalkTask(start, int(windows.ends[w]), start, UNBOUNDED, UNBOUNDED, walk.step_limit, m, place)
        v, bound, depth, event, made, _, complete, status = follow_run(
            v, bound, depth, event, task, walk.counting, events, criteria, chain, slots, path, matches
        )
        if complete and status == Status.FINISHED and not walk.counting:
            matches.counts[m, v] = bound
    # read again, and so are the steps: on a card each number that is kept during the walk takes registers
    w = going[i]
    if path is not None:
        fault = path.state[PathState.ERROR_CONDITION]
        status = Status.OVERFLOWED if fault != 0 else status
        numbers[RunNumber.FAULT, w] = fault
    numbers[RunNumber.VARIABLE, w] = v
    numbers[RunNumber.BOUND, w] = bound
    numbers[RunNumber.DEPTH, w] = depth if complete or status == Status.STEPS_SPENT else 0
    numbers[RunNumber.EVENT, w] = event
    numbers[RunNumber.STEPS, w] += made
    numbers[RunNumber.STATUS, w] = status


@kernel(writes=("runs", "matches.counts", "matches.events"), scratch=("scratch",))
def walk_chain_windows(
    low: int, high: int, slot: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain,
    walk: ChainWalk, scratch: ChainScratch, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Let the runs of the windows ``going[low:high]`` go on; write the matches that they end in.

    A run that was not begun has no events. A run has STEPS_SPENT if it
    rests, and else is FINISHED, OVERFLOWED, or leaves a CHOICE.
    """
    for i in range(low, high):
        path = window_path(going[i], slot, scratch, runs)
        _walk_run(i, going, windows, events, criteria, chain, walk, path, runs, matches)


@kernel(writes=("runs.numbers", "runs.slots", "matches.counts", "matches.events"))
def walk_compared_windows(
    low: int, high: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain,
    walk: ChainWalk, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Do as :func:`walk_chain_windows`, but only where all conditions are comparisons of columns, which never overflow."""
    for i in range(low, high):
        _walk_run(i, going, windows, events, criteria, chain, walk, None, runs, matches)
