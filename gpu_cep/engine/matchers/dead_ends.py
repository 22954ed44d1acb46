"""Say what identifies a state of a branch's automaton, so that dead ends can be remembered.

A dead end is a state that led to no match (:mod:`gpu_cep_kernels.automaton.dead_ends`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import prod

import numpy as np

from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.lowering.scopes import scope_bounds
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
    StateKeys,
    new_dead_ends,
)
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Ints, Places

# The most dead ends that one enumeration remembers. They are looked up after so many failed searches in a row.
MOST_DEAD_ENDS, PATIENCE = 1 << 18, 4

# The instructions that load aggregates.
_AGGREGATE_LOADS = ("load_count", "load_aggregate")

# What is read of a binding (a constant of gpu_cep_kernels.automaton.dead_ends), and the variable.
Read = tuple[int, int]


def allocate_dead_ends(states: StateKeys | None, starts: Ints, ends: Places) -> DeadEnds:
    """Return room for the dead ends in the windows [starts, ends); no room if `states` is None."""
    if states is None:
        return _no_dead_ends()
    return new_dead_ends(states, min(MOST_DEAD_ENDS, 1 << int(4 * (ends - starts).max()).bit_length()), PATIENCE)


@cache
def _no_dead_ends() -> DeadEnds:
    """Return no room for dead ends, into which nothing is ever written."""
    nothing = np.empty(0, np.int64)
    return new_dead_ends(StateKeys(nothing, nothing, nothing, nothing, np.empty(0, np.uint64), nothing), 0, 0)


def state_keys(tables: MatcherTables) -> StateKeys | None:
    """Return what identifies a state of a branch's automaton, or None if states cannot be identified.

    They cannot if there are too many variables or counts. Nor can they if a
    bound event may lie in the scope of a negation, which does not count it.
    """
    branch, pattern = tables.branch, tables.pattern
    positives = range(len(branch.before))
    enough = [int(least if most == UNBOUNDED else most) for least, most in zip(pattern.minimum, pattern.maximum, strict=True)]
    may_hold_bound = any(not {*negation.after, *negation.before}.issuperset(positives) for negation in branch.negations)
    if may_hold_bound or len(positives) > AT_THE_END or prod(each + 1 for each in enough) > np.iinfo(np.int64).max:
        return None
    readers: dict[Read, int] = {}
    for (read, v), bits in (*_condition_reads(tables), *_negation_reads(branch)):
        later = bits & ~_closed_variables(v, tables)
        if later:
            readers[read, v] = readers.get((read, v), 0) | later
    return StateKeys(
        enough=np.array(enough, np.int64),
        weight=np.array([prod(each + 1 for each in enough[:v]) for v in positives], np.int64),
        read=np.array([read for read, _ in readers], np.int64),
        variable=np.array([variable for _, variable in readers], np.int64),
        readers=np.array([*readers.values()], np.uint64),
        lone=np.array([_last_event_scope(v, readers, tables) if enough[v] == 1 else NEVER for v in positives], np.int64),
    )


def _closed_variables(v: int, tables: MatcherTables) -> int:
    """Return the bits of the variables that bind no further event once v has bound one."""
    return tables.branch.before[v] | int(tables.pattern.maximum[v] == 1) << v


def _last_event_scope(v: int, readers: Mapping[Read, int], tables: MatcherTables) -> int:
    """Return whether v is lone: what follows depends on v's last event alone.

    It is ALWAYS, IN_A_START (among the runs of one start) or NEVER. All other
    variables must precede or follow v. Later conditions may read only v's last
    event and variables behind v. If they also read the event that begins the
    match, the answer is IN_A_START. If v's last event is not read, it is
    NEVER: the key of the state then says as much.
    """
    before, single, closed = tables.branch.before, tables.pattern.maximum == 1, _closed_variables(v, tables)
    size = len(before)
    if not all(u == v or before[u] >> v & 1 or before[v] >> u & 1 for u in range(size)):
        return NEVER
    matters = {(read, u) for (read, u), bits in readers.items() if bits & ~closed and read != MATCH_END and not before[u] >> v & 1}
    own = {(LAST_EVENT, v)} | ({(FIRST_EVENT, v)} if single[v] else set())
    roots = [u for u in range(size) if single[u] and all(w == u or before[w] >> u & 1 for w in range(size))]
    if not matters & own or matters - own - {(MATCH_START, 0), *((LAST_EVENT, u) for u in roots)}:
        return NEVER
    return IN_A_START if matters - own else ALWAYS


def _condition_reads(tables: MatcherTables) -> Iterator[tuple[Read, int]]:
    """Yield each read of a condition, with the bits of the variables whose events decide it."""
    branch, single = tables.branch, tables.pattern.maximum == 1
    positives = len(branch.before)
    for condition, deciding in zip(branch.conditions, _deciding_variables(tables), strict=True):
        for part in condition.parts:
            v = part.variable
            if v < positives and deciding & ~(1 << v):
                reads = {LAST_EVENT} if single[v] else _reads_by_others(part, condition, branch)
                yield from (((read, v), deciding & ~(1 << v)) for read in reads)
            if v < positives and deciding >> v & 1:
                yield from (((read, v), 1 << v) for read in _reads_by_itself(part, condition, branch))


def _deciding_variables(tables: MatcherTables) -> list[int]:
    """Return, for each condition, the bits of the variables whose events decide it.

    The bit AT_THE_END stands for the end of a match. It is set for conditions
    that the end decides, and for those on negated variables.
    """
    table, positives = tables.conditions, len(tables.branch.before)
    bits = [0] * len(tables.branch.conditions)
    for v, (low, high) in enumerate(zip(table.first[:-1].tolist(), table.first[1:].tolist(), strict=True)):
        for c in table.listed[low:high].tolist():
            bits[c] |= 1 << (v if v < positives else AT_THE_END)
    for c in table.final.tolist():
        bits[c] |= 1 << AT_THE_END
    return bits


def _reads_by_others(part: Part, condition: PlannedCondition, branch: PlannedBranch) -> set[int]:
    """Return what a condition reads of a quantified variable when another variable's event decides it."""
    return _program_reads(part, condition, branch) if part.spread is Spread.ONCE else {ALL_EVENTS}


def _reads_by_itself(part: Part, condition: PlannedCondition, branch: PlannedBranch) -> set[int]:
    """Return what a condition reads of a variable's earlier events when a further one decides it."""
    if part.spread is Spread.ONCE:
        return set()
    return {ALL_EVENTS} if part.spread is Spread.PAIRWISE else _program_reads(part, condition, branch)


def _program_reads(part: Part, condition: PlannedCondition, branch: PlannedBranch) -> set[int]:
    """Return what a condition's program reads of one variable's binding, the current event aside.

    An aggregate other than the number of events stands for all events.
    """
    loads = [(name, first, second) for name, _, first, second in condition.program.code if name.startswith("load")]
    loaded = {role for name, _, role in loads if not name.startswith(_AGGREGATE_LOADS)}
    aggregates = {k for name, k, role in loads if name.startswith(_AGGREGATE_LOADS) and role in (part.previous, part.last)}
    reads = {FIRST_EVENT} if part.first in loaded else set()
    reads |= {LAST_EVENT} if loaded & {part.previous, part.last} else set()
    return reads | {NUMBER if branch.aggregates[k].step == "count_events" else ALL_EVENTS for k in aggregates}


def _negation_reads(branch: PlannedBranch) -> Iterator[tuple[Read, int]]:
    """Yield what bounds each negation's scope, with the bit AT_THE_END.

    Negations are judged when a match is complete.
    """
    for negation in branch.negations:
        after, before = scope_bounds(branch, negation)
        bounds = [*((LAST_EVENT, v) for v in after), *((FIRST_EVENT, v) for v in before)]
        bounds += [] if after else [(MATCH_END, 0)]
        bounds += [] if before else [(MATCH_START, 0)]
        yield from ((bound, 1 << AT_THE_END) for bound in bounds)
