"""Walk through the windows of a chain that have a single run each.

In a *chain* each variable precedes the next one, and binds an event at least.
So two variables at most may bind the next event of a run: the one that binds
the last event, and the one behind it. Which conditions that decides is known
beforehand. A run binds its events in the order in which a match is written, so
they are written at once. The next run writes over what is no match.

Where an event leaves a choice, the walk stops, as
:mod:`gpu_cep_kernels.automaton.single_runs` does, which walks for all patterns.

Under robust skip-till-next-match a chain of variables that bind one event each has
a single match per window, too. The walk steps back from an event that leads to
none. It keeps no dead ends, so it stops where a window takes many steps.

A *slot* holds a row of the bank: slot 2 v that of variable v's first event, slot
2 v + 1 that of its last one. The last slot holds that of the current event, which
is about to be bound. If it is to be v's first one, v's slots hold it, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.automaton.lookahead import SHORT
from gpu_cep_kernels.automaton.single_runs import Walk
from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.conditions import comparison_holds
from gpu_cep_kernels.rules.cut import CutState, begin_cut, cuts_searches, is_ruled_out_by
from gpu_cep_kernels.rules.interpreter import holds, run_program
from gpu_cep_kernels.rules.running import accumulate, is_null
from gpu_cep_kernels.rules.scalars import compare
from gpu_cep_kernels.rules.tables import (
    BY_FLOATS,
    BY_INTS,
    BY_PROGRAM,
    Conditions,
    Criteria,
    EventPath,
    EventTable,
    Ints,
    MatchTable,
    PathState,
    Places,
    Status,
    Strategy,
    Words,
)
from gpu_cep_kernels.rules.ties import first_behind

# What stands for the variable that binds an event if none does, and if two might.
_NONE, _SEVERAL = -1, -2
# Steps that a robust walk takes in one window at most. Beyond, it pays to keep dead ends.
ROBUST_STEPS = 512


class Sieve(NamedTuple):
    """Hold a comparison for each variable v that its first event must satisfy; it is decided before that event is found.

    - means[v]: what is compared, two int64 or two float64 columns (BY_INTS, BY_FLOATS); BY_PROGRAM if there is no comparison.
    - comparison[v], column[v]: how, and which column of the event is compared.
    - bound_column[v], bound_slot[v]: with which column of an event that is bound already, and the slot of that one.
    """

    means: Ints
    comparison: Ints
    column: Ints
    bound_column: Ints
    bound_slot: Ints


class Chain(NamedTuple):
    """List what is judged when a variable of a chain binds an event; j is a judgement.

    - first: where the judgements of each group begin, and where the last one's end. Group 2 v has
      those of variable v's first event, group 2 v + 1 those of its further events.
    - condition[j]: the condition that is judged.
    - left[j], right[j]: the slots that a comparison of two columns reads.
    - slot, slot_first: for each judgement the slot of each role of its program.
    - sieve: what rules events out quickly.
    """

    first: Ints
    condition: Ints
    left: Ints
    right: Ints
    slot_first: Ints
    slot: Ints
    sieve: Sieve


@rule
def _program_holds(j: int, conditions: Conditions, chain: Chain, slots: Ints, path: EventPath) -> bool:
    """Whether the program of judgement j's condition says TRUE; the aggregates of variable v stand at place v."""
    c, table, registers = chain.condition[j], conditions.table, path.registers
    begin = chain.slot_first[j]
    for role in range(chain.slot_first[j + 1] - begin):
        slot = chain.slot[begin + role]
        registers.rows[role] = slots[slot]
        registers.places[role] = slot >> 1
    first, last, stand_ins = table.code_first[c], table.code_last[c], conditions.aggregates.missing
    error = run_program(first, last, conditions.programs, conditions.bank, stand_ins, path.aggregates, registers)
    if error != 0:
        path.state[PathState.ERROR_CONDITION] = c + 1
    return holds(table.result[c], registers)


@rule
def _all_hold(begin: int, end: int, conditions: Conditions, chain: Chain, slots: Ints, path: EventPath) -> bool:
    """Whether the judgements from `begin` to before `end` say TRUE."""
    true, j = True, begin
    while true and j < end:
        c = chain.condition[j]
        if conditions.table.means[c] == BY_PROGRAM:
            true = _program_holds(j, conditions, chain, slots, path)
        else:
            true = comparison_holds(c, slots[chain.left[j]], slots[chain.right[j]], conditions.table, conditions.bank)
        j += 1
    return true


@rule
def _may_bind(group: int, conditions: Conditions, chain: Chain, slots: Ints, path: EventPath) -> bool:
    """Whether all judgements of a group say TRUE; there may be none, which takes no call."""
    begin, end = chain.first[group], chain.first[group + 1]
    return begin == end or _all_hold(begin, end, conditions, chain, slots, path)


@rule
def _next_fitting(
    comparison: int, column: int, bound: Any, event: int, until: int, base: int, values: Any, nulls: Words, occurrence: Places
) -> tuple[int, int]:  # fmt: skip
    """Return the first event from `event` on whose value compares with the bound, and how many do not before it.

    If there is none before `until`, return one that is not before it.
    `occurrence` is the variable's row, `values` the column's.
    """
    passed = 0
    while event < until and (not compare(comparison, values[base + event], bound) or is_null(nulls, column, base + event)):
        event = int(occurrence[event + 1])
        passed += 1
    return event, passed


@rule
def _next_sifted(v: int, begin: int, until: int, events: EventTable, conditions: Conditions, sieve: Sieve, slots: Ints) -> tuple[int, int]:
    """Return v's next event from `begin` on that its sieve does not rule out, and how many are ruled out before it.

    If there is none before `until`, return one that is not before it.
    """
    occurrence, bank, base = events.occurrence[v], conditions.bank, conditions.base
    comparison, column, bound_column = sieve.comparison[v], sieve.column[v], sieve.bound_column[v]
    event, passed, null = int(occurrence[begin]), 0, False
    if sieve.means[v] == BY_FLOATS:
        row = slots[sieve.bound_slot[v]]
        null = is_null(bank.float_nulls, bound_column, row)
        bound, values = bank.floats[bound_column, row], bank.floats[column]
        event, passed = _next_fitting(comparison, column, bound, event, until, base, values, bank.float_nulls, occurrence)
    elif sieve.means[v] == BY_INTS:
        row = slots[sieve.bound_slot[v]]
        null = is_null(bank.int_nulls, bound_column, row)
        number, numbers = bank.ints[bound_column, row], bank.ints[column]
        event, passed = _next_fitting(comparison, column, number, event, until, base, numbers, bank.int_nulls, occurrence)
    return until if null else event, passed


@rule
def _find_event(
    v: int, own: int, following: int, until: int, events: EventTable, conditions: Conditions, chain: Chain, slots: Ints, path: EventPath
) -> tuple[int, int, int]:  # fmt: skip
    """Return the run's next event, the variable that binds it, and how many events are passed over before.

    Variable v may bind `own` next, the variable behind it `following`. No event from `until` on is looked at.
    """
    occurrence, current = events.occurrence, slots.size - 1
    event, found, passed = min(own, following), _NONE, 0
    while event < until and found == _NONE:
        slots[current] = conditions.base + event
        if event == own and _may_bind(2 * v + 1, conditions, chain, slots, path):
            found = v
        if event == following:
            slots[2 * v + 2] = slots[2 * v + 3] = conditions.base + event
            if _may_bind(2 * v + 2, conditions, chain, slots, path):
                found = v + 1 if found == _NONE else _SEVERAL
        if found == _NONE:
            passed += 1
            if own < until:
                following = int(occurrence[v + 1, event + 1]) if event == following else following
                own = int(occurrence[v, event + 1]) if event == own else own
            elif v >= 0:
                following, sifted = _next_sifted(v + 1, event + 1, until, events, conditions, chain.sieve, slots)
                passed += sifted
            else:
                following = until
            event = min(own, following)
    return event, found, passed


@rule
def _walk_window(
    start: int, end: int, counting: bool, events: EventTable, criteria: Criteria, chain: Chain, slots: Ints, path: EventPath,
    matches: MatchTable,
) -> tuple[int, Status]:  # fmt: skip
    """Follow the only run of a window, and write its events and counts; return how many events it binds, and why it stops.

    It binds 0 if no match ends the run. It is not FINISHED where an event leaves a choice, or no room is left.
    """
    pattern, conditions, state, cut = criteria.pattern, criteria.conditions, path.state, path.cut.state
    m, place, cut_first, cut_last = state[PathState.MATCHES], state[PathState.EVENTS], cut[CutState.FIRST], cut[CutState.LAST]
    aggregating, variables = conditions.aggregates.step.size > 0, pattern.minimum.size
    v, bound, depth, steps, rejected = -1, 0, 0, 0, 0
    own, following, until = end, int(events.occurrence[0, start]), start + 1
    status, complete, going = Status.FINISHED, False, True
    while going:
        event, found, passed = _find_event(v, own, following, until, events, conditions, chain, slots, path)
        rejected += passed
        steps += passed if depth > 0 else 0
        if found == _SEVERAL:
            status = Status.CHOICE
        elif found >= 0 and depth > 0 and is_ruled_out_by(start, event, cut_first, cut_last):
            found, complete = _NONE, False
        elif found >= 0 and depth >= path.event.size:
            status = Status.PATH_FULL
        elif found >= 0 and not counting and place + depth >= matches.events.size:
            status = Status.OUTPUT_FULL
        going = found >= 0 and status == Status.FINISHED
        if going:
            row = conditions.base + event
            if found != v:
                if v >= 0 and not counting:
                    matches.counts[m, v] = bound
                v, bound = found, 0
                slots[2 * v] = row
            slots[2 * v + 1] = row
            if aggregating:
                accumulate(v, v if bound > 0 else -1, v, row, conditions.aggregates, conditions.bank, path.aggregates)
            if not counting:
                matches.events[place + depth] = event
            bound += 1
            depth += 1
            behind = bound >= pattern.minimum[v]
            complete = behind and v + 1 == variables
            own = int(events.occurrence[v, event + 1]) if bound < pattern.maximum[v] else end
            following = int(events.occurrence[v + 1, first_behind(events.after, event)]) if behind and not complete else end
            until = cut_last + 1 if cut_last < end and not complete else end
            going = own < end or following < end
            steps += 0 if complete and bound == pattern.maximum[v] else 1
    if complete and not counting:
        matches.counts[m, v] = bound
    state[PathState.STEPS] += steps
    state[PathState.REJECTED] += rejected
    state[PathState.WASTED] += 0 if complete else max(depth + 1 - SHORT, 0)
    return depth if complete else 0, status


@rule
def _walk_robust_window(
    start: int, end: int, counting: bool, events: EventTable, criteria: Criteria, chain: Chain, slots: Ints, path: EventPath,
    matches: MatchTable,
) -> tuple[int, Status]:  # fmt: skip
    """Find the first match of a window, and write its events and counts; return how many events it binds, and why it stops.

    Each variable binds one event: the first one from which a match follows. It
    binds 0 if there is no match. It is not FINISHED after many steps, or where no
    room is left.
    """
    conditions, state = criteria.conditions, path.state
    m, place, variables, current = state[PathState.MATCHES], state[PathState.EVENTS], criteria.pattern.minimum.size, slots.size - 1
    aggregating = conditions.aggregates.step.size > 0
    v, event, until, steps, rejected = 0, int(events.occurrence[0, start]), start + 1, 0, 0
    status = Status.FINISHED
    if variables > path.event.size:
        status = Status.PATH_FULL
    elif not counting and place + variables > matches.events.size:
        status = Status.OUTPUT_FULL
    while 0 <= v < variables and status == Status.FINISHED:
        if v > 0:
            event, passed = _next_sifted(v, event, until, events, conditions, chain.sieve, slots)
            steps += passed + 1
            rejected += passed
        if event < until:
            row = conditions.base + event
            slots[2 * v] = slots[2 * v + 1] = slots[current] = row
            if _may_bind(2 * v, conditions, chain, slots, path):
                if aggregating:
                    accumulate(v, -1, v, row, conditions.aggregates, conditions.bank, path.aggregates)
                event, v = first_behind(events.after, event), v + 1
            else:
                event, rejected = event + 1, rejected + 1
        else:
            v -= 1
            event = slots[2 * v] - conditions.base + 1 if v >= 0 else end
        until = end if v > 0 else start + 1
        status = Status.CHOICE if steps > ROBUST_STEPS else status
    depth = variables if v == variables and status == Status.FINISHED else 0
    if not counting:
        for u in range(depth):
            matches.events[place + u] = slots[2 * u] - conditions.base
            matches.counts[m, u] = 1
    state[PathState.STEPS] += steps
    state[PathState.REJECTED] += rejected
    return depth, status


@rule
def _take_match(w: int, depth: int, last: int, counting: bool, windows: CandidateWindows, path: EventPath, matches: MatchTable) -> None:
    """Count the match that a walk has written, or keep it unless a match found before rules it out; let it cut others off."""
    state, cut = path.state, path.cut.state
    if counting:
        matches.totals[w] += 1
    elif last <= cut[CutState.LAST]:
        matches.starts[state[PathState.MATCHES]] = w
        state[PathState.MATCHES] += 1
        state[PathState.EVENTS] += depth
        if cuts_searches(path):
            cut[CutState.FIRST] = windows.starts[w]
            cut[CutState.LAST] = last


@sequential(writes=("path", "matches"), scratch=("slots",))
def walk_chains(
    windows: CandidateWindows,
    events: EventTable,
    criteria: Criteria,
    chain: Chain,
    walk: Walk,
    slots: Ints,
    path: EventPath,
    matches: MatchTable,
) -> Status:
    """Follow the only run of each window from where ``path.state`` stands, and write its match; return why it stopped.

    On OUTPUT_FULL, PATH_FULL, STEPS_SPENT and CHOICE the current window is still
    to be walked or searched from its start. The path stays empty.
    """
    candidates, ends = windows
    state, counting = path.state, walk.counting
    limit = state[PathState.STEPS] + walk.step_limit
    status = Status.FINISHED
    w = state[PathState.CANDIDATE]
    while w < candidates.size and status == Status.FINISHED:
        begin_cut(candidates[w], path.cut)
        depth = 0
        start, end = int(candidates[w]), int(ends[w])
        if not counting and state[PathState.MATCHES] >= matches.starts.size:
            status = Status.OUTPUT_FULL
        elif walk.strategy == Strategy.ROBUST:
            depth, status = _walk_robust_window(start, end, counting, events, criteria, chain, slots, path, matches)
        else:
            depth, status = _walk_window(start, end, counting, events, criteria, chain, slots, path, matches)
        if state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
        elif status == Status.FINISHED:
            if depth > 0:
                _take_match(w, depth, slots[slots.size - 2] - criteria.conditions.base, counting, windows, path, matches)
            w += 1
            if state[PathState.STEPS] > limit and w < candidates.size:
                status = Status.STEPS_SPENT
    state[PathState.CANDIDATE] = w
    return status
