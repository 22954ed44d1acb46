"""Walk through the windows of a chain that have a single run each.

In a *chain* each variable precedes the next one, and binds an event at least.
So two variables at most may bind the next event of a run: the one that binds
the last event, and the one behind it. Which conditions that decides is known
beforehand. A run binds its events in the order in which a match is written, so
they are written at once. The next run writes over what is no match.

Where an event leaves a choice, the walk stops, as
:mod:`gpu_cep_kernels.automaton.single_runs` does, which walks for all patterns.

A chain of variables that bind one event each leaves no choice, and is walked in
a simpler way. Under robust skip-till-next-match it has a single match per window,
too. The walk then steps back from an event that leads to none. It keeps no dead
ends, so it stops where a window takes many steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.automaton.chain_growth import grow, grows_unjudged
from gpu_cep_kernels.automaton.chain_judgements import Chain, all_hold, is_sifted_out, next_sifted
from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.automaton.lookahead import SHORT
from gpu_cep_kernels.automaton.single_runs import Walk
from gpu_cep_kernels.compile.jit import inline_rule, rule, sequential
from gpu_cep_kernels.rules.cut import CutState, begin_cut, cuts_searches, is_ruled_out_by
from gpu_cep_kernels.rules.running import accumulate
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import BY_PROGRAM, Criteria, EventPath, EventTable, Ints, MatchTable, PathState, Status, Strategy
from gpu_cep_kernels.rules.ties import first_behind
from gpu_cep_kernels.rules.walked import JudgedConditions, JudgingPath, WalkedCriteria, WalkedEvents, WrittenMatches

# What stands for the variable that binds an event if none does, and if two might.
_NONE, _SEVERAL = -1, -2
# Steps that a robust walk takes in one window at most. Beyond, it pays to keep dead ends.
ROBUST_STEPS = 512


class WalkTask(NamedTuple):
    """Bound what a run may do, and say where its match is written.

    - start, end: its window.
    - cut_first, cut_last: the first and the last event of the match that cuts it off.
    - room: how many events it may bind.
    - limit: how many steps it may make before it rests.
    - match, place: the match's number, and where its events begin.
    """

    start: int
    end: int
    cut_first: int
    cut_last: int
    room: int
    limit: int
    match: int
    place: int


@rule
def _find_follower(
    v: int, own: int, following: int, stop: int, room: int, last: int, place: int, counting: bool, events: WalkedEvents,
    conditions: JudgedConditions, chain: Chain, slots: Ints, path: JudgingPath | None, bound_events: Any,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Let variable v bind events up to the first one that the variable behind it may bind; return how far the run comes.

    Variable v may bind `own` next, `room` events at most, the variable behind it `following`. No event from `stop` on is looked
    at. The run's last event is `last`; further ones are written from `place` on. Return the event to look at next, the variable
    behind v if it may bind that one, the run's last event, how many v binds, and how many looks took none.
    """
    occurrence, after, first, base, kept = events.occurrence, events.after, 2 * v + 2, conditions.base, conditions.aggregates.first
    found, grown, passed, going = _NONE, 0, 0, True
    # before a run has begun, no variable binds further events
    unjudged = v >= 0 and grows_unjudged(v, conditions, chain.sieve, path)
    while going and min(own, following) < stop:
        # the group of judgements of `event` that are made next; none where it is −1
        group, event = 2 * v + 1, own
        if found == _NONE and own < following:
            if grown >= room:
                group, going = -1, False
            elif unjudged:
                own, last, bound, looks = grow(
                    v, own, min(following, stop), room - grown, last, place + grown, counting, events, conditions, chain.sieve, slots,
                    path, bound_events,
                )  # fmt: skip
                grown += bound
                passed += looks - bound
                group = -1
                if after.size and bound > 0 and following < stop:
                    following = int(occurrence[v + 1, max(following, first_behind(after, last))])
        elif found == _NONE:
            group = first
            if chain.sieve.means[first] != BY_PROGRAM:
                following, looks = next_sifted(v + 1, following, min(stop, own + 1), events, conditions, chain.sieve, slots)
                passed += looks
            event = following
            if following < stop and following <= own:
                slots[first] = slots[first + 1] = base + following
            else:
                group = -1
        if group >= 0:
            row = base + event
            slots[slots.size - 1] = row
            true = group == first or not is_sifted_out(group, row, conditions.bank, chain.sieve, slots)
            true = true and (chain.sieve.alone[group] or all_hold(group, conditions, chain, slots, path))
            if found != _NONE:
                found, going = _SEVERAL if true else found, False
            elif group == first and true:
                # v may bind the event, too: that is judged next
                found, going = v + 1, own == following
            elif group == first:
                following = int(occurrence[v + 1, following + 1])
                passed += 1
            elif true:
                slots[group] = row
                if path is not None and kept[v + 1] > kept[v]:
                    accumulate(v, v, v, row, conditions.aggregates, conditions.bank, path.aggregates)
                if not counting:
                    bound_events[place + grown] = own
                last = own
                grown += 1
                own = int(occurrence[v, own + 1])
                if after.size and following < stop:
                    following = int(occurrence[v + 1, max(following, first_behind(after, last))])
            else:
                own = int(occurrence[v, own + 1])
                passed += 1
    return min(own, following), found, last, grown, passed


@rule
def follow_run(
    v: int, bound: int, depth: int, event: int, task: WalkTask, counting: bool, events: WalkedEvents, criteria: WalkedCriteria,
    chain: Chain, slots: Ints, path: JudgingPath | None, matches: WrittenMatches,
) -> tuple[int, int, int, int, int, int, bool, Status]:  # fmt: skip
    """Follow a run, and write its events, and the counts of variables that bind no more.

    Variable v binds the last of its `depth` events, and `bound` of them. `event` is looked at next. In a run without
    events v is −1, and variable 0 binds that event, if it may. Return these four for where the run stands then, its
    steps, how many of them rejected an event, whether a match ends it, and why it stopped.

    It is not FINISHED where an event leaves a choice, where it may bind more events than there is room for,
    and after `task.limit` steps, of which the first binds an event. It can go on from there.
    """
    pattern, conditions, end = criteria.pattern, criteria.conditions, task.end
    kept, occurrence, variables, base = conditions.aggregates.first, events.occurrence, pattern.minimum.size, conditions.base
    last, steps, rejected = slots[2 * v + 1] - base if v >= 0 else event, 0, 0
    # nothing else is judged of most first events, and no follower need be looked for
    found, status, complete, going = 0 if v < 0 and chain.sieve.alone[0] else _NONE, Status.FINISHED, False, True
    if found >= 0 and depth >= task.room:
        status, going = Status.OUTPUT_FULL, False
    while going:
        if found >= 0:
            if found != v:
                if not counting and v >= 0:
                    matches.counts[task.match, v] = bound
                v, bound = found, 0
            row = base + event
            slots[2 * v] = slots[2 * v + 1] = row
            if path is not None and kept[v + 1] > kept[v]:
                accumulate(v, -1, v, row, conditions.aggregates, conditions.bank, path.aggregates)
            if not counting:
                matches.events[task.place + depth] = event
            bound += 1
            depth += 1
            last = event
            event += 1
        begun = v >= 0
        low, high = (pattern.minimum[v], pattern.maximum[v]) if begun else (0, 0)
        behind = bound >= low
        complete = behind and v + 1 == variables
        going = not complete or bound < high
        if going:
            steps += 1 if found >= 0 else 0
            own = int(occurrence[v, event]) if bound < high else end
            # nothing is looked at behind an event that is to be the first
            following = event if not begun else end
            if begun and behind and not complete:
                following = int(occurrence[v + 1, max(event, first_behind(events.after, last))])
            until = task.cut_last + 1 if task.cut_last < end and not complete else end
            until = until if begun else event + 1
            nearest, spare = min(own, following), max(task.limit - steps, 1)
            stop = until if until - nearest <= spare else nearest + spare
            room = min((high if behind else low) - bound, task.room - depth)
            if complete and task.cut_last < end:
                # one event behind the cut is enough to rule the match out
                stop, room = (min(stop, task.cut_last + 1), room) if nearest <= task.cut_last else (stop, min(room, 1))
            event, found, last, grown, passed = _find_follower(
                v, own, following, stop, room, last, task.place + depth, counting, events, conditions, chain, slots, path, matches.events
            )
            bound += grown
            depth += grown
            steps += grown + passed if begun else 0
            rejected += passed
            # v has enough from here on: the run may be complete, or the variable behind it may bind the next event
            enough = not behind and bound == low
            event = last + 1 if enough else event
            if found == _SEVERAL:
                status = Status.CHOICE
            elif begun and is_ruled_out_by(task.start, last, task.cut_first, task.cut_last):
                complete, enough, event = False, False, until
            elif event < until and depth >= task.room:
                status = Status.OUTPUT_FULL
            elif event < until and steps >= task.limit:
                status = Status.STEPS_SPENT
            going = (event < until or enough) and status == Status.FINISHED
    return v, bound, depth, event, steps, rejected, complete, status


@rule
def _walk_window(
    start: int, end: int, counting: bool, limit: int, events: EventTable, criteria: Criteria, chain: Chain, slots: Ints, path: EventPath,
    judging: EventPath | None, matches: MatchTable,
) -> tuple[int, Status]:  # fmt: skip
    """Follow the only run of a window, and write its events and counts; return how many events it binds, and why it stops.

    It binds 0 if no match ends the run. It is not FINISHED where an event leaves a choice, or no room is left.
    """
    state, cut = path.state, path.cut.state
    m, place, size = state[PathState.MATCHES], state[PathState.EVENTS], path.event.size
    room = size if counting else min(size, matches.events.size - place)
    depth, steps, rejected, status, complete = 0, 0, 1, Status.FINISHED, False
    if events.occurrence[0, start] == start:
        task = WalkTask(start, end, cut[CutState.FIRST], cut[CutState.LAST], room, limit, m, place)
        v, bound, depth, _, steps, rejected, complete, status = follow_run(
            -1, 0, 0, start, task, counting, events, criteria, chain, slots, judging, matches
        )
        if complete and not counting:
            matches.counts[m, v] = bound
        status = Status.PATH_FULL if status == Status.OUTPUT_FULL and depth >= size else status
    state[PathState.STEPS] += steps
    state[PathState.REJECTED] += rejected
    state[PathState.WASTED] += 0 if complete else max(depth + 1 - SHORT, 0)
    return depth if complete else 0, status


@rule
def follow_singles(
    v: int, event: int, start: int, stop: int, robust: bool, limit: int, events: WalkedEvents, criteria: WalkedCriteria, chain: Chain,
    slots: Ints, path: JudgingPath | None,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Bind an event to variable v and to each behind it; `event` is looked at next, none from `stop` on.

    Return the variable that is to be bound next, the event that is looked at next, the steps, and
    how many of them rejected an event. The variable is the number of variables where a match ends
    the run, and negative where none does: −1 minus the one for which no event was found, or −1 in a `robust` run.
    Else more than `limit` steps were made, and the run can go on.
    """
    conditions, variables, current = criteria.conditions, criteria.pattern.minimum.size, slots.size - 1
    kept, steps, rejected = conditions.aggregates.first, 0, 0
    while 0 <= v < variables and (v == 0 or steps <= limit):
        until = stop if v > 0 else start + 1
        if v > 0:
            event, passed = next_sifted(v, event, until, events, conditions, chain.sieve, slots)
            steps += passed + 1
            rejected += passed
        if event < until:
            row = conditions.base + event
            slots[2 * v] = slots[2 * v + 1] = slots[current] = row
            if chain.sieve.alone[2 * v] or all_hold(2 * v, conditions, chain, slots, path):
                if path is not None and kept[v + 1] > kept[v]:
                    accumulate(v, -1, v, row, conditions.aggregates, conditions.bank, path.aggregates)
                event, v = first_behind(events.after, event), v + 1
            else:
                event, rejected = event + 1, rejected + 1
        elif robust:
            v -= 1
            event = slots[2 * v] - conditions.base + 1 if v >= 0 else stop
        else:
            v = -1 - v
    return v, event, steps, rejected


@rule
def _walk_singles(
    start: int, end: int, robust: bool, counting: bool, events: EventTable, criteria: Criteria, chain: Chain, slots: Ints,
    path: EventPath, judging: EventPath | None, matches: MatchTable,
) -> tuple[int, Status]:  # fmt: skip
    """Find the first match of a window, and write its events and counts; return how many events it binds, and why it stops.

    Each variable binds one event: the first one that it may, or, under the `robust` strategy, the first one from which a match
    follows. It binds 0 if there is no match. It is not FINISHED after many robust steps, or where no room is left.
    """
    conditions, state = criteria.conditions, path.state
    # a match that binds a later event is ruled out; but an earlier one that a robust search would then find is none
    stop = end if robust else min(end - 1, path.cut.state[CutState.LAST]) + 1
    m, place, variables = state[PathState.MATCHES], state[PathState.EVENTS], criteria.pattern.minimum.size
    v, steps, rejected, status = 0, 0, 0, Status.FINISHED
    if variables > path.event.size:
        status = Status.PATH_FULL
    elif not counting and place + variables > matches.events.size:
        status = Status.OUTPUT_FULL
    else:
        event, limit = int(events.occurrence[0, start]), ROBUST_STEPS if robust else UNBOUNDED
        v, _, steps, rejected = follow_singles(v, event, start, stop, robust, limit, events, criteria, chain, slots, judging)
        status = Status.CHOICE if robust and steps > ROBUST_STEPS else status
    depth = variables if v == variables and status == Status.FINISHED else 0
    if not counting:
        for u in range(depth):
            matches.events[place + u] = slots[2 * u] - conditions.base
            matches.counts[m, u] = 1
    state[PathState.STEPS] += steps
    state[PathState.REJECTED] += rejected
    state[PathState.WASTED] += 0 if robust else max(-v - SHORT, 0)
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


@rule
def _are_singles(maximum: Ints) -> bool:
    """Return whether no variable may bind several events."""
    singles = True
    for v in range(maximum.size):
        singles = singles and maximum[v] == 1
    return singles


@inline_rule
def _walk(
    windows: CandidateWindows, events: EventTable, criteria: Criteria, chain: Chain, walk: Walk, slots: Ints, path: EventPath,
    judging: EventPath | None, matches: MatchTable,
) -> Status:  # fmt: skip
    """Do what :func:`walk_chains` says; conditions are judged in `judging`, which is None where all are comparisons of columns."""
    candidates, ends = windows
    state, counting = path.state, walk.counting
    limit = state[PathState.STEPS] + walk.step_limit
    robust = walk.strategy == Strategy.ROBUST
    singles = _are_singles(criteria.pattern.maximum)
    status = Status.FINISHED
    w = state[PathState.CANDIDATE]
    while w < candidates.size and status == Status.FINISHED:
        begin_cut(candidates[w], path.cut)
        depth = 0
        start, end = int(candidates[w]), int(ends[w])
        if not counting and state[PathState.MATCHES] >= matches.starts.size:
            status = Status.OUTPUT_FULL
        elif singles:
            depth, status = _walk_singles(start, end, robust, counting, events, criteria, chain, slots, path, judging, matches)
        else:
            depth, status = _walk_window(start, end, counting, UNBOUNDED, events, criteria, chain, slots, path, judging, matches)
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
    return _walk(windows, events, criteria, chain, walk, slots, path, path, matches)


@sequential(writes=("path", "matches"), scratch=("slots",))
def walk_compared_chains(
    windows: CandidateWindows, events: EventTable, criteria: Criteria, chain: Chain, walk: Walk, slots: Ints, path: EventPath,
    matches: MatchTable,
) -> Status:  # fmt: skip
    """Do as :func:`walk_chains`, but only where all conditions are comparisons of columns, which never overflow."""
    return _walk(windows, events, criteria, chain, walk, slots, path, None, matches)
