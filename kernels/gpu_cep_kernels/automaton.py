"""The SES automaton (thesis Alg. 2) as a resumable depth-first enumeration, one run per candidate window.

A state is the set of variables bound so far, computed and never tabulated.
From each state the run jumps to the next event that some variable can bind,
through the next-occurrence arrays, so irrelevant events cost nothing. The
instances of Alg. 2 that branch from one event are the choices at one place of
the path (erratum: the branching instance itself does not live on).

skip_till_next_match binds the first event that can be bound and reports a
match where no further event can; skip_till_any_match also passes it over and
reports every complete state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.conditions import conditions_hold
from gpu_cep_kernels.jit import kernel, rule
from gpu_cep_kernels.rules import bit, following
from gpu_cep_kernels.tables import CANDIDATE, DEPTH, ERROR_CONDITION, EVENTS, MATCHES, PHASE, STEPS

FINISHED, OUTPUT_FULL, PATH_FULL, STEPS_SPENT, OVERFLOWED = range(5)
TAKE, REPORT, SEARCH = range(3)


@rule
def _earliest_place(v: int, position: int, has_ties: bool, after: Any, pattern: Any, run: Any) -> int:
    """The first event that may be bound to v: behind `position`, and later than all events of the variables before v."""
    begin = position + 1
    if has_ties:
        for u in range(pattern.before.size):
            if pattern.before[v] & bit(u):
                begin = max(begin, following(after, run.event[run.last[u]]))
    return begin


@rule
def _can_complete(position: int, end: int, bound: Any, after: Any, occurrence: Any, pattern: Any, run: Any) -> bool:
    """Whether the variables still unbound can follow in the window, judged by labels alone (the chained condition from this state on)."""
    true = True
    for place in range(pattern.order.size):
        v = pattern.order[place]
        if bound & bit(v):
            run.earliest[v] = run.event[run.last[v]]
        elif true:
            begin = position + 1
            for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
                begin = max(begin, following(after, run.earliest[pattern.direct[k]]))
            run.earliest[v] = occurrence[v, begin]
            true = run.earliest[v] < end
    return true


@kernel
def enumerate_matches(
    candidates: Any,
    ends: Any,
    labels: Any,
    after: Any,
    occurrence: Any,
    pattern: Any,
    conditions: Any,
    programs: Any,
    bank: Any,
    base: int,
    passes_over: bool,
    counting: bool,
    step_limit: int,
    run: Any,
    match_starts: Any,
    match_counts: Any,
    match_events: Any,
    totals: Any,
) -> int:
    """Enumerate the matches of all `candidates` from where ``run.state`` stands; returns why it stopped.

    Candidate w starts at event ``candidates[w]`` and its window is
    ``[candidates[w], ends[w])``; event e stands in row ``base + e``
    of the bank. Match m is written as
    ``match_starts[m]`` (its candidate), ``match_counts[m, v]`` and its events in
    ``match_events``, variable after variable, each in stream order. With
    `counting` only ``totals[w]`` is raised. On OUTPUT_FULL, PATH_FULL or
    STEPS_SPENT the caller makes room and calls again.
    """
    variables = pattern.before.size
    state = run.state
    has_ties = after.size > 0
    steps = 0
    status = FINISHED
    depth = state[DEPTH]
    phase = state[PHASE]
    w = state[CANDIDATE]
    fresh = depth == 0
    while w < candidates.size and status == FINISHED:
        start = candidates[w]
        end = ends[w]
        bound = np.uint64(0)
        satisfied = np.uint64(0)
        for v in range(variables):
            if run.bound[v] > 0:
                bound |= bit(v)
            if run.bound[v] >= pattern.minimum[v]:
                satisfied |= bit(v)
        if fresh:
            run.choice_event[0] = start
            run.choices[0] = np.uint64(0)
            for v in range(variables):
                if pattern.before[v] == 0 and labels[start] & bit(v):
                    run.choices[0] |= bit(v)
            phase = TAKE
            fresh = False
        active = True
        while active and status == FINISHED:
            if phase == TAKE:
                left = run.choices[depth]
                if left != 0 and depth >= run.event.size:
                    status = PATH_FULL
                elif left != 0:
                    v = 0
                    while left & bit(v) == 0:
                        v += 1
                    run.choices[depth] = left & ~bit(v)
                    run.event[depth] = run.choice_event[depth]
                    run.bound_to[depth] = v
                    run.earlier[depth] = run.last[v]
                    run.last[v] = depth
                    run.bound[v] += 1
                    bound |= bit(v)
                    if run.bound[v] >= pattern.minimum[v]:
                        satisfied |= bit(v)
                    depth += 1
                    run.choice_event[depth] = run.event[depth - 1]
                    run.choices[depth] = np.uint64(0)
                    complete = True
                    for u in range(variables):
                        complete = complete and satisfied & bit(u) != 0
                    phase = REPORT if passes_over and complete else SEARCH
                elif passes_over and depth > 0 and run.choice_event[depth] < end:
                    phase = SEARCH
                elif depth > 0:
                    depth -= 1
                    v = run.bound_to[depth]
                    run.last[v] = run.earlier[depth]
                    run.bound[v] -= 1
                    if run.bound[v] == 0:
                        bound &= ~bit(v)
                    if run.bound[v] < pattern.minimum[v]:
                        satisfied &= ~bit(v)
                else:
                    active = False
            elif phase == SEARCH:
                available = np.uint64(0)
                nearest = end
                position = run.choice_event[depth]
                complete = True
                for v in range(variables):
                    complete = complete and satisfied & bit(v) != 0
                    if pattern.before[v] & ~satisfied == 0 and pattern.behind[v] & bound == 0 and run.bound[v] < pattern.maximum[v]:
                        available |= bit(v)
                viable = available != 0
                if passes_over and not complete:
                    viable = viable and _can_complete(position, end, bound, after, occurrence, pattern, run)
                found = np.uint64(0)
                while viable and found == 0:
                    steps += 1
                    nearest = end
                    for v in range(variables):
                        if available & bit(v):
                            begin = _earliest_place(v, position, has_ties, after, pattern, run)
                            nearest = min(nearest, occurrence[v, begin])
                    if nearest < end:
                        for v in range(variables):
                            if (
                                available & bit(v)
                                and labels[nearest] & bit(v)
                                and _earliest_place(v, position, has_ties, after, pattern, run) <= nearest
                                and conditions_hold(v, nearest, bound, base, conditions, programs, bank, run)
                            ):
                                found |= bit(v)
                        position = nearest
                    else:
                        viable = False
                run.choices[depth] = found
                run.choice_event[depth] = nearest if found != 0 else end
                phase = TAKE
                if found == 0 and complete and not passes_over:
                    phase = REPORT
                if state[ERROR_CONDITION] != 0:
                    status = OVERFLOWED
                elif steps > step_limit:
                    status = STEPS_SPENT
            elif counting:
                totals[w] += 1
                phase = SEARCH if passes_over else TAKE
            else:
                m, place = state[MATCHES], state[EVENTS]
                if m >= match_starts.size or place + depth > match_events.size:
                    status = OUTPUT_FULL
                else:
                    match_starts[m] = w
                    for v in range(variables):
                        match_counts[m, v] = run.bound[v]
                        place += run.bound[v]
                        cursor = run.last[v]
                        back = place
                        while cursor >= 0:
                            back -= 1
                            match_events[back] = run.event[cursor]
                            cursor = run.earlier[cursor]
                    state[MATCHES] = m + 1
                    state[EVENTS] = place
                    phase = SEARCH if passes_over else TAKE
        if status == FINISHED:
            w += 1
            fresh = True
    state[CANDIDATE] = w
    state[DEPTH] = depth
    state[PHASE] = phase
    state[STEPS] += steps
    return status
