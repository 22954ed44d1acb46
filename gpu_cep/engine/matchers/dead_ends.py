"""What tells the states of a branch's automaton apart, so that it remembers those that led to no match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.matchers.negations import scope_bounds
from gpu_cep.plan.event_plan import Part, PlannedBranch, PlannedCondition, Spread
from gpu_cep_kernels.automaton.dead_ends import (
    ALL_EVENTS,
    ALWAYS,
    AT_THE_END,
    FIRST_EVENT,
    IN_A_START,
    LAST_EVENT,
    MATCH_END,
    MATCH_START,
    NEVER,
    NUMBER,
    DeadEnds,
    StateTable,
    new_dead_ends,
)
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Ints, Places

# Dead ends that one enumeration keeps at most, and searches of a start that go without.
PLACES, PATIENCE = 1 << 18, 4

# What is read of a variable's binding.
Read = tuple[int, int]


def dead_ends(states: StateTable | None, starts: Ints, ends: Places) -> DeadEnds:
    """Room for the dead ends of an enumeration of the windows [starts, ends), one or more; none where nothing tells states apart."""
    if states is None:
        nothing = np.empty(0, np.int64)
        return new_dead_ends(StateTable(nothing, nothing, nothing, nothing, np.empty(0, np.uint64), nothing), 0, 0)
    return new_dead_ends(states, min(PLACES, 1 << int(4 * (ends - starts).max()).bit_length()), PATIENCE)


def state_table(tables: MatcherTables) -> StateTable | None:
    """What tells the states of a branch apart.

    None if nothing does: there are too many variables or counts, or an event
    that is bound may lie in the scope of a negation, which then spares it.
    """
    branch, pattern = tables.branch, tables.pattern
    positives = range(len(branch.before))
    enough = [int(least if most == UNBOUNDED else most) for least, most in zip(pattern.minimum, pattern.maximum, strict=True)]
    spared = any(not {*negation.after, *negation.before}.issuperset(positives) for negation in branch.negations)
    if spared or len(positives) > AT_THE_END or prod(each + 1 for each in enough) > np.iinfo(np.int64).max:
        return None
    readers: dict[Read, int] = {}
    for (read, v), bits in (*_read_by_conditions(tables), *_read_by_negations(branch)):
        later = bits & ~_closed(v, tables)
        if later:
            readers[read, v] = readers.get((read, v), 0) | later
    return StateTable(
        enough=np.array(enough, np.int64),
        weight=np.array([prod(each + 1 for each in enough[:v]) for v in positives], np.int64),
        read=np.array([read for read, _ in readers], np.int64),
        variable=np.array([variable for _, variable in readers], np.int64),
        readers=np.array([*readers.values()], np.uint64),
        lone=np.array([_loneliness(v, readers, tables) if enough[v] == 1 else NEVER for v in positives], np.int64),
    )


def _closed(v: int, tables: MatcherTables) -> int:
    """The bits of the variables that bind no more once v binds."""
    return tables.branch.before[v] | int(tables.pattern.maximum[v] == 1) << v


def _loneliness(v: int, readers: Mapping[Read, int], tables: MatcherTables) -> int:
    """Among which runs nothing that is bound matters once v binds, but v's last event.

    All other variables precede or follow v, and none but v and those that follow is read any more, or the one that binds the start alone.
    Where v's last event is not read either, a key of the state serves all of them.
    """
    before, single, closed = tables.branch.before, tables.pattern.maximum == 1, _closed(v, tables)
    size = len(before)
    if not all(u == v or before[u] >> v & 1 or before[v] >> u & 1 for u in range(size)):
        return NEVER
    matters = {(read, u) for (read, u), bits in readers.items() if bits & ~closed and read != MATCH_END and not before[u] >> v & 1}
    own = {(LAST_EVENT, v)} | ({(FIRST_EVENT, v)} if single[v] else set())
    roots = [u for u in range(size) if single[u] and all(w == u or before[w] >> u & 1 for w in range(size))]
    if not matters & own or matters - own - {(MATCH_START, 0), *((LAST_EVENT, u) for u in roots)}:
        return NEVER
    return IN_A_START if matters - own else ALWAYS


def _read_by_conditions(tables: MatcherTables) -> Iterator[tuple[Read, int]]:
    """What conditions read of positive variables, with the bits of those whose events decide them."""
    branch, single = tables.branch, tables.pattern.maximum == 1
    positives = len(branch.before)
    for condition, deciding in zip(branch.conditions, _deciding(tables), strict=True):
        for part in condition.parts:
            v = part.variable
            if v < positives and deciding & ~(1 << v):
                reads = {LAST_EVENT} if single[v] else _read_by_others(part, condition, branch)
                yield from (((read, v), deciding & ~(1 << v)) for read in reads)
            if v < positives and deciding >> v & 1:
                yield from (((read, v), 1 << v) for read in _read_by_itself(part, condition, branch))


def _deciding(tables: MatcherTables) -> list[int]:
    """The bits of the variables whose events decide each condition; those of negated variables are looked at when a match is complete."""
    table, positives = tables.conditions, len(tables.branch.before)
    bits = [0] * len(tables.branch.conditions)
    for v, (low, high) in enumerate(zip(table.first[:-1].tolist(), table.first[1:].tolist(), strict=True)):
        for c in table.listed[low:high].tolist():
            bits[c] |= 1 << (v if v < positives else AT_THE_END)
    for c in table.final.tolist():
        bits[c] |= 1 << AT_THE_END
    return bits


def _read_by_others(part: Part, condition: PlannedCondition, branch: PlannedBranch) -> set[int]:
    """What a condition reads of a quantified variable once an event of another one decides it."""
    return _read_at(part, condition, branch) if part.spread is Spread.ONCE else {ALL_EVENTS}


def _read_by_itself(part: Part, condition: PlannedCondition, branch: PlannedBranch) -> set[int]:
    """What a condition reads of the events that a variable binds already, once a further one decides it."""
    if part.spread is Spread.ONCE:
        return set()
    return {ALL_EVENTS} if part.spread is Spread.PAIRWISE else _read_at(part, condition, branch)


def _read_at(part: Part, condition: PlannedCondition, branch: PlannedBranch) -> set[int]:
    """What a condition reads of one variable but the current event: the first and the last event, and what is kept of all of them."""
    loads = [(name, first, second) for name, _, first, second in condition.program.code if name.startswith("load")]
    loaded = {role for name, _, role in loads if not name.startswith(_KEPT)}
    kept = {k for name, k, role in loads if name.startswith(_KEPT) and role in (part.previous, part.last)}
    reads = {FIRST_EVENT} if part.first in loaded else set()
    reads |= {LAST_EVENT} if loaded & {part.previous, part.last} else set()
    return reads | {NUMBER if branch.aggregates[k].step == "count_events" else ALL_EVENTS for k in kept}


# The instructions that load aggregates.
_KEPT = ("load_count", "load_aggregate")


def _read_by_negations(branch: PlannedBranch) -> Iterator[tuple[Read, int]]:
    """What bounds the scopes of negations."""
    for negation in branch.negations:
        after, before = scope_bounds(branch, negation)
        bounds = [*((LAST_EVENT, v) for v in after), *((FIRST_EVENT, v) for v in before)]
        bounds += [] if after else [(MATCH_END, 0)]
        bounds += [] if before else [(MATCH_START, 0)]
        yield from ((bound, 1 << AT_THE_END) for bound in bounds)
