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
"""

from __future__ import annotations

from gpu_cep_kernels.automaton.chain_judgements import Chain, all_hold, is_sifted_out, next_sifted
from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.automaton.lookahead import SHORT
from gpu_cep_kernels.automaton.single_runs import Walk
from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.cut import CutState, begin_cut, cuts_searches, is_ruled_out_by
from gpu_cep_kernels.rules.running import accumulate
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, EventTable, Ints, MatchTable, PathState, Status, Strategy
from gpu_cep_kernels.rules.ties import first_behind

# What stands for the variable that binds an event if none does, and if two might.
_NONE, _SEVERAL = -1, -2
# Steps that a robust walk takes in one window at most. Beyond, it pays to keep dead ends.
ROBUST_STEPS = 512


@rule
def _find_event(
    v: int, own: int, following: int, until: int, events: EventTable, conditions: Conditions, chain: Chain, slots: Ints, path: EventPath
) -> tuple[int, int, int]:  # fmt: skip
    """Return the run's next event, the variable that binds it, and how many events are passed over before.

    Variable v may bind `own` next, the variable behind it `following`. No event from `until` on is looked at.
    """
    occurrence, current, base, further, first = events.occurrence, slots.size - 1, conditions.base, 2 * v + 1, 2 * v + 2
    bank, sieve = conditions.bank, chain.sieve
    event, found, passed = min(own, following), _NONE, 0
    while event < until and found == _NONE:
        row = base + event
        slots[current] = row
        # the sieve and its flag are read here, so that most events take no call
        fits = event == own and not is_sifted_out(further, row, bank, sieve, slots)
        if fits and (sieve.alone[further] or all_hold(further, conditions, chain, slots, path)):
            found = v
        follows = event == following and not is_sifted_out(first, row, bank, sieve, slots)
        if follows:
            slots[first] = slots[first + 1] = row
        if follows and (sieve.alone[first] or all_hold(first, conditions, chain, slots, path)):
            found = v + 1 if found == _NONE else _SEVERAL
        if found == _NONE:
            passed += 1
            if own < until:
                following = int(occurrence[v + 1, event + 1]) if event == following else following
                own = int(occurrence[v, event + 1]) if event == own else own
            else:
                following, sifted = next_sifted(v + 1, event + 1, until, events, conditions, sieve, slots)
                passed += sifted
            event = min(own, following)
    return event, found, passed


@rule
def _may_start(start: int, conditions: Conditions, chain: Chain, slots: Ints, path: EventPath) -> bool:
    """Whether event `start` may be the first one of variable 0; write its row to the slots."""
    slots[0] = slots[1] = slots[slots.size - 1] = conditions.base + start
    return chain.sieve.alone[0] or all_hold(0, conditions, chain, slots, path)


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
    kept, occurrence, variables, base = conditions.aggregates.first, events.occurrence, pattern.minimum.size, conditions.base
    room = path.event.size if counting else min(path.event.size, matches.events.size - place)
    v, bound, depth, steps, rejected = 0, 0, 0, 0, 0
    event, found, status, complete = start, _NONE, Status.FINISHED, False
    if occurrence[0, start] == start and _may_start(start, conditions, chain, slots, path):
        found = 0
    else:
        rejected = 1
    while found >= 0 and status == Status.FINISHED:
        if depth >= room:
            status = Status.PATH_FULL if depth >= path.event.size else Status.OUTPUT_FULL
        else:
            row = base + event
            if found != v:
                if not counting:
                    matches.counts[m, v] = bound
                v, bound = found, 0
                slots[2 * v] = row
            slots[2 * v + 1] = row
            if kept[v + 1] > kept[v]:
                accumulate(v, v if bound > 0 else -1, v, row, conditions.aggregates, conditions.bank, path.aggregates)
            if not counting:
                matches.events[place + depth] = event
            bound += 1
            depth += 1
            behind = bound >= pattern.minimum[v]
            complete = behind and v + 1 == variables
            steps += 0 if complete and bound == pattern.maximum[v] else 1
            own = int(occurrence[v, event + 1]) if bound < pattern.maximum[v] else end
            following = int(occurrence[v + 1, first_behind(events.after, event)]) if behind and not complete else end
            until = cut_last + 1 if cut_last < end and not complete else end
            event, found, passed = _find_event(v, own, following, until, events, conditions, chain, slots, path)
            steps += passed
            rejected += passed
            if found == _SEVERAL:
                status = Status.CHOICE
            elif found >= 0 and is_ruled_out_by(start, event, cut_first, cut_last):
                found, complete = _NONE, False
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
    kept = conditions.aggregates.first
    v, event, until, steps, rejected = 0, int(events.occurrence[0, start]), start + 1, 0, 0
    status = Status.FINISHED
    if variables > path.event.size:
        status = Status.PATH_FULL
    elif not counting and place + variables > matches.events.size:
        status = Status.OUTPUT_FULL
    while 0 <= v < variables and status == Status.FINISHED:
        if v > 0:
            event, passed = next_sifted(v, event, until, events, conditions, chain.sieve, slots)
            steps += passed + 1
            rejected += passed
        if event < until:
            row = conditions.base + event
            slots[2 * v] = slots[2 * v + 1] = slots[current] = row
            sifted = v > 0 and chain.sieve.alone[2 * v]
            if sifted or all_hold(2 * v, conditions, chain, slots, path):
                if kept[v + 1] > kept[v]:
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
