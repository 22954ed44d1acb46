"""Walk through windows that have a single run each: where no event leaves a choice, nothing is searched.

Under skip-till-next-match and contiguity an event that can be bound must be
bound. If only one variable can bind it, the run goes on in one way. This walk
follows that way. Where an event does leave a choice, the walk stops, and
:mod:`gpu_cep_kernels.automaton.enumeration` goes on from that window. Both keep
their path in the same tables.

Conditions are judged by *judgements*: one for each variable that may decide a
condition. It says beforehand where each event that the condition reads is found:
a *slot* is the current event, or the first or last event of a variable. A search
that has passed over two events skips others by the bounds of conditions
(:mod:`gpu_cep_kernels.automaton.jumps`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.automaton.jumps import Jumps, is_within_bounds, jump, set_bounds
from gpu_cep_kernels.automaton.lookahead import SHORT
from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.conditions import comparison_holds, program_holds
from gpu_cep_kernels.rules.cut import begin_cut, is_cut_off, search_end
from gpu_cep_kernels.rules.path import append, earliest_place, is_match, write_if_taken, write_match
from gpu_cep_kernels.rules.scalars import UNBOUNDED, bit
from gpu_cep_kernels.rules.tables import (
    BY_PROGRAM,
    Criteria,
    EventPath,
    EventTable,
    Ints,
    MatchTable,
    PathState,
    PatternTable,
    Status,
    Strategy,
    Words,
)
from gpu_cep_kernels.rules.walked import JudgedConditions, SearchingPath

# The slot of the event that is about to be bound. Slot v is the first event of variable v, slot V + v its last one.
CURRENT = -1
# For which events of its variable a judgement is made: all, the first one, all but the first one.
ALWAYS, FIRST_ONLY, FURTHER_ONLY = range(3)
# From so many events that a search has passed over, the bounds of conditions are computed: for fewer they cost more than they save.
BOUNDED = 2
# Whether a kernel has a part of a body that several share: numba decides `is not None` as it compiles, and leaves out what is ABSENT.
PartOfBody: TypeAlias = bool | None
PRESENT, ABSENT = True, None


class Judgements(NamedTuple):
    """List what is judged when a variable binds an event; j is a judgement.

    - before[v], behind[v]: bit masks of the variables before and behind v.
    - everyone[0]: the mask of all variables.
    - first[v]: the first judgement of v; the last entry is the end.
    - condition[j]: the condition that is judged.
    - needed[j]: the mask of the other variables that it reads; they must be bound.
    - when[j]: for which events of v (ALWAYS, FIRST_ONLY, FURTHER_ONLY).
    - waits[j]: the mask of variables, none of them before v, that must bind no more: one behind each of them is bound.
    - left[j], right[j]: the slots that a comparison of two columns reads.
    - slot, slot_first: for each judgement the slot of each role of its program.
    """

    before: Words
    behind: Words
    everyone: Words
    first: Ints
    condition: Ints
    needed: Words
    when: Ints
    waits: Words
    left: Ints
    right: Ints
    slot_first: Ints
    slot: Ints


class Walk(NamedTuple):
    """Say how to walk: by which value of Strategy, whether matches are only counted, and how many steps one call may make."""

    strategy: int
    counting: bool
    step_limit: int


@rule
def _place_of(slot: int, variables: int, path: SearchingPath) -> int:
    """Return the place on the path that a slot stands for; −1 for the current event, which is also the first of its variable."""
    place = -1
    if slot >= variables:
        place = path.last[slot - variables]
    elif slot >= 0 and path.bound[slot] > 0:
        place = path.first[slot]
    return place


@rule
def _row_of(slot: int, event: int, variables: int, base: int, path: SearchingPath) -> int:
    """Return the row of the bank that a slot stands for."""
    place = _place_of(slot, variables, path)
    return base + (path.event[place] if place >= 0 else event)


@rule
def _judgement_holds(j: int, event: int, variables: int, conditions: JudgedConditions, judgements: Judgements, path: SearchingPath) -> bool:
    """Return whether the program of judgement j's condition says TRUE."""
    registers = path.registers
    begin = judgements.slot_first[j]
    for role in range(judgements.slot_first[j + 1] - begin):
        slot = judgements.slot[begin + role]
        registers.rows[role] = _row_of(slot, event, variables, conditions.base, path)
        registers.places[role] = _place_of(slot, variables, path)
    return program_holds(judgements.condition[j], conditions, path)


@rule
def _is_due(j: int, v: int, bound: Any, judgements: Judgements, path: SearchingPath) -> bool:
    """Return whether judgement j is made now: the variables that it reads are bound, and those that it waits for bind no more."""
    when, waits = judgements.when[j], judgements.waits[j]
    due = (judgements.needed[j] & ~bound) == 0
    due = due and (when == ALWAYS or (when == FIRST_ONLY) == (path.bound[v] == 0))
    if due and waits != 0:
        for u in range(judgements.before.size):
            due = due and ((waits & bit(u)) == 0 or (judgements.behind[u] & bound) != 0)
    return due


@rule
def may_bind(v: int, event: int, bound: Any, conditions: JudgedConditions, judgements: Judgements, path: SearchingPath) -> bool:
    """Return whether all conditions hold that are decided if v binds `event`; `bound` is the mask of the bound variables."""
    table, bank, variables = conditions.table, conditions.bank, judgements.before.size
    true = True
    for j in range(judgements.first[v], judgements.first[v + 1]):
        if true and _is_due(j, v, bound, judgements, path):
            c = judgements.condition[j]
            if table.means[c] == BY_PROGRAM:
                true = _judgement_holds(j, event, variables, conditions, judgements, path)
            else:
                left = _row_of(judgements.left[j], event, variables, conditions.base, path)
                right = _row_of(judgements.right[j], event, variables, conditions.base, path)
                true = comparison_holds(c, left, right, table, bank)
    return true


@rule
def _clear(path: EventPath) -> None:
    """Unbind all variables."""
    for v in range(path.bound.size):
        path.bound[v] = 0
        path.last[v] = -1


@rule
def _list_available(bound: Any, satisfied: Any, pattern: PatternTable, judgements: Judgements, path: EventPath) -> int:
    """Write to ``path.available`` the variables that may bind a further event; return how many.

    `satisfied` is the mask of the variables that bind their minimum.
    """
    count = 0
    for v in range(judgements.before.size):
        open_before = (judgements.before[v] & ~satisfied) == 0
        if open_before and (judgements.behind[v] & bound) == 0 and path.bound[v] < pattern.maximum[v]:
            path.available[count] = v
            count += 1
    return count


@rule
def _find_places(available: int, position: int, contiguous: bool, events: EventTable, pattern: PatternTable, path: EventPath) -> int:
    """Write to ``path.next_place`` the next event that labels let each available variable bind; return the event to look at.

    That is the first of them. Under contiguity it is the event that follows
    `position`, whether or not a variable may bind it.
    """
    follower = position + 1
    if contiguous and events.successor.size:
        follower = int(events.successor[position])
    for k in range(available):
        v = path.available[k]
        begin = earliest_place(v, position, events.after, pattern, path)
        path.next_place[k] = events.occurrence[v, max(begin, follower) if contiguous else begin]
    return follower if contiguous else _nearest(available, path)


@rule
def _nearest(available: int, path: EventPath) -> int:
    """Return the first of the next places of the available variables, of which there is one at least."""
    nearest = path.next_place[0]
    for k in range(1, available):
        nearest = min(nearest, path.next_place[k])
    return nearest


@rule
def _pass_over(
    event: int, available: int, until: int, passed: int, events: EventTable, criteria: Criteria, jumps: Jumps, path: EventPath
) -> int:  # fmt: skip
    """Set the next places of the variables that may bind `event`, which is passed over; return how many events were looked at.

    `passed` is how many a search has passed over with this one. From the second one
    on, the bounds of conditions rule events out.
    """
    looked = 0
    for k in range(available):
        v = path.available[k]
        if passed == BOUNDED:
            set_bounds(v, event, False, criteria.pattern, criteria.conditions, jumps, path)
        if path.next_place[k] == event or passed == BOUNDED:
            place = max(int(path.next_place[k]), event + 1)
            if passed >= BOUNDED and jumps.patience < UNBOUNDED:
                place = jump(v, place, until, events, criteria.conditions, jumps)
                looked += 1
            else:
                place = int(events.occurrence[v, place])
                looked += 1
                while passed >= BOUNDED and place < until and not is_within_bounds(v, place, criteria.conditions, jumps):
                    place = int(events.occurrence[v, place + 1])
                    looked += 1
            path.next_place[k] = place
    return looked


@rule
def _walk_window(
    start: int,
    end: int,
    rules_out: PartOfBody,
    contiguous: bool,
    events: EventTable,
    criteria: Criteria,
    judgements: Judgements,
    jumps: Jumps,
    path: EventPath,
) -> int:
    """Follow the only run of a window; return how many events it binds.

    It is 0 if no match ends the run, -1 if an event leaves a choice, and -2 if the path has no more room.
    """
    pattern, conditions = criteria.pattern, criteria.conditions
    everyone = judgements.everyone[0]
    bound, satisfied = np.uint64(0), np.uint64(0)
    depth, position, searches, steps, rejected = 0, start, 0, 0, 0
    going = True
    while going:
        searches += 1
        available = _list_available(bound, satisfied, pattern, judgements, path)
        until = end
        if rules_out is not None and depth > 0 and satisfied != everyone:
            until = search_end(end, path)
        if depth == 0:
            nearest = start
            for k in range(available):
                path.next_place[k] = events.occurrence[path.available[k], start]
        elif available > 0:
            nearest = _find_places(available, position, contiguous, events, pattern, path)
            steps += 1
        else:
            nearest = until
        found, several, passed = -1, False, 0
        while nearest < until and found < 0:
            for k in range(available):
                v = path.available[k]
                if path.next_place[k] == nearest and may_bind(v, nearest, bound, conditions, judgements, path):
                    several = several or found >= 0
                    found = v
            if found < 0:
                passed += 1
                if contiguous or depth == 0:
                    nearest, rejected = until, rejected + 1
                else:
                    looked = _pass_over(nearest, available, until, passed, events, criteria, jumps, path)
                    steps, rejected = steps + looked, rejected + looked
                    nearest = _nearest(available, path)
        if several:
            depth, going = -1, False
        elif found < 0:
            going = False
        elif rules_out is not None and depth > 0 and is_cut_off(nearest, path):
            depth, going = 0, False
        elif depth >= path.event.size:
            depth, going = -2, False
        else:
            append(found, nearest, depth, conditions, path)
            depth += 1
            position = nearest
            bound |= bit(found)
            if path.bound[found] >= pattern.minimum[found]:
                satisfied |= bit(found)
    matched = depth > 0 and satisfied == everyone
    path.state[PathState.STEPS] += steps
    path.state[PathState.REJECTED] += rejected
    path.state[PathState.WASTED] += 0 if matched else max(searches - SHORT, 0)
    return depth if depth < 0 or matched else 0


@rule
def _write(w: int, depth: int, rules_out: PartOfBody, matches: MatchTable, path: EventPath) -> None:
    """Write the path as a match of candidate w, unless a cut rules it out."""
    if rules_out is None:
        write_match(w, matches, path)
    else:
        write_if_taken(w, depth, matches, path)


@rule
def _walk_windows(
    windows: CandidateWindows,
    rules_out: PartOfBody,
    events: EventTable,
    criteria: Criteria,
    judgements: Judgements,
    jumps: Jumps,
    walk: Walk,
    path: EventPath,
    matches: MatchTable,
) -> Status:
    """Run the body of both kernels; return why it stopped.

    `rules_out` is ABSENT where nothing rules out a run that binds all variables.
    """
    candidates, ends = windows
    state = path.state
    limit = state[PathState.STEPS] + walk.step_limit
    contiguous = walk.strategy == Strategy.CONTIGUOUS
    status = Status.FINISHED
    w = state[PathState.CANDIDATE]
    while w < candidates.size and status == Status.FINISHED:
        if rules_out is not None:
            begin_cut(candidates[w], path.cut)
        path.event[0] = candidates[w]
        depth = _walk_window(candidates[w], ends[w], rules_out, contiguous, events, criteria, judgements, jumps, path)
        if (
            depth > 0
            and not walk.counting
            and (state[PathState.MATCHES] >= matches.starts.size or state[PathState.EVENTS] + depth > matches.events.size)
        ):
            status = Status.OUTPUT_FULL
        elif depth > 0 and (rules_out is None or is_match(depth, criteria, path)):
            if walk.counting:
                matches.totals[w] += 1
            else:
                _write(w, depth, rules_out, matches, path)
        elif depth < 0:
            status = Status.CHOICE if depth == -1 else Status.PATH_FULL
        _clear(path)
        if state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
        elif status == Status.FINISHED:
            w += 1
            if state[PathState.STEPS] > limit and w < candidates.size:
                status = Status.STEPS_SPENT
    state[PathState.CANDIDATE] = w
    return status


@sequential(writes=("jumps.bounds", "path", "matches"))
def walk_windows(
    windows: CandidateWindows,
    events: EventTable,
    criteria: Criteria,
    judgements: Judgements,
    jumps: Jumps,
    walk: Walk,
    path: EventPath,
    matches: MatchTable,
) -> Status:
    """Follow the only run of each window from where ``path.state`` stands, and write its match; return why it stopped.

    There are no negations, no conditions that only the end of a match decides, and
    no cut. On OUTPUT_FULL, PATH_FULL, STEPS_SPENT and CHOICE the current window is
    still to be walked or searched from its start. The path is empty then.
    """
    return _walk_windows(windows, ABSENT, events, criteria, judgements, jumps, walk, path, matches)


@sequential(writes=("jumps.bounds", "path", "matches"))
def walk_restricted_windows(
    windows: CandidateWindows,
    events: EventTable,
    criteria: Criteria,
    judgements: Judgements,
    jumps: Jumps,
    walk: Walk,
    path: EventPath,
    matches: MatchTable,
) -> Status:
    """Do as :func:`walk_windows`, with all that rules out runs that bind all variables."""
    return _walk_windows(windows, PRESENT, events, criteria, judgements, jumps, walk, path, matches)
