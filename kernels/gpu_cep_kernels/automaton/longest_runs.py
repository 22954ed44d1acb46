"""Find the longest run of each window without a match: what its strategy bound before the window was over.

Under skip-till-next-match and contiguity a run goes on by its own rule,
whatever becomes of it. So each event at which none goes on ends a run, complete
or not. Of the runs of a window the one that binds the most events is kept. Of
several, it is the one with the fewest variables below their minimum, and of
those the first in the order of matches: by last event, then by bindings. A run
that is a match ends the search through its window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from gpu_cep_kernels.automaton.enumeration import (
    BEGIN,
    DONE,
    REPORT,
    SEARCH,
    TAKE,
    CandidateWindows,
    Mode,
    Shortcuts,
    begin_run,
    bind_next,
    is_complete,
    search_next,
    step_back,
)
from gpu_cep_kernels.automaton.lookahead import begin_searches
from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.cut import begin_cut
from gpu_cep_kernels.rules.path import is_match, write_match
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Criteria, EventPath, EventTable, MatchTable, PathState, Status


class Longest(NamedTuple):
    """Hold the longest run of the current window, which is written behind the others and not yet counted.

    - size[0]: how many events it binds; 0 if there is none yet.
    - unsatisfied[0]: how many variables bind less than their minimum.
    - last[0]: its last event.
    """

    size: npt.NDArray[Any]
    unsatisfied: npt.NDArray[Any]
    last: npt.NDArray[Any]


@rule
def _compare_bindings(runs: MatchTable, path: EventPath) -> int:
    """Return a number below zero if the path comes before the run that is kept, by bindings, and zero if they are the same."""
    m, begin = path.state[PathState.MATCHES], path.state[PathState.EVENTS]
    order, v = 0, 0
    while order == 0 and v < path.bound.size:
        kept, bound = runs.counts[m, v], path.bound[v]
        order = bound - kept
        place = path.last[v]
        for back in range(bound):
            k = bound - 1 - back
            if k < kept and path.event[place] != runs.events[begin + k]:
                order = path.event[place] - runs.events[begin + k]
            place = path.earlier[place]
        begin += kept
        v += 1
    return int(order)


@rule
def _is_kept(depth: int, longest: Longest, runs: MatchTable, path: EventPath) -> bool:
    """Return whether the path takes the place of the run that is kept."""
    order = longest.size[0] - depth
    if order == 0:
        order = path.state[PathState.UNSATISFIED] - longest.unsatisfied[0]
    if order == 0:
        order = path.event[depth - 1] - longest.last[0]
    if order == 0:
        order = _compare_bindings(runs, path)
    return bool(order < 0)


@rule
def _keep(w: int, depth: int, longest: Longest, runs: MatchTable, path: EventPath) -> None:
    """Write the path where the next run belongs, in place of the one that was kept."""
    m, begin = path.state[PathState.MATCHES], path.state[PathState.EVENTS]
    write_match(w, runs, path)
    path.state[PathState.MATCHES] = m
    path.state[PathState.EVENTS] = begin
    longest.size[0] = depth
    longest.unsatisfied[0] = path.state[PathState.UNSATISFIED]
    longest.last[0] = path.event[depth - 1]


@sequential(writes=("shortcuts.jumps.bounds", "path", "longest", "runs"))
def find_longest_runs(
    windows: CandidateWindows,
    events: EventTable,
    criteria: Criteria,
    shortcuts: Shortcuts,
    mode: Mode,
    path: EventPath,
    longest: Longest,
    runs: MatchTable,
) -> Status:
    """Write the longest run of each window without a match from where ``path.state`` stands; return why it stopped.

    ``runs.totals[w]`` becomes 1 if window w has a match. On OUTPUT_FULL, PATH_FULL or
    STEPS_SPENT the caller makes room and calls again. The run that is kept of the
    current window stands behind those that are counted; it must stay there.
    """
    candidates, ends = windows
    pattern, conditions = criteria.pattern, criteria.conditions
    state = path.state
    limit = state[PathState.STEPS] + mode.step_limit
    status = Status.FINISHED
    depth = state[PathState.DEPTH]
    phase = state[PathState.PHASE]
    w = state[PathState.CANDIDATE]
    while w < candidates.size and status == Status.FINISHED:
        taking = phase == TAKE and path.left[depth] > 0 and runs.totals[w] == 0
        if phase == BEGIN:
            begin_cut(candidates[w], path.cut)
            begin_run(candidates[w], events, pattern, conditions, path)
            # a run that can become no match goes on all the same
            begin_searches(UNBOUNDED, path)
            longest.size[0] = 0
            phase = TAKE
        elif taking and depth >= path.event.size:
            status = Status.PATH_FULL
        elif taking:
            bind_next(depth, pattern, conditions, path)
            depth += 1
            phase = SEARCH
        elif phase == TAKE and depth == 0:
            phase = DONE
        elif phase == TAKE:
            depth -= 1
            step_back(depth, pattern, path)
        elif phase == SEARCH:
            if search_next(depth, ends[w], mode.strategy, limit, events, criteria, shortcuts, path):
                phase = REPORT if path.left[depth] == 0 else TAKE
            if state[PathState.STEPS] > limit:
                status = Status.STEPS_SPENT
        elif phase == REPORT:
            phase = TAKE
            if is_complete(path) and is_match(depth, criteria, path):
                runs.totals[w] = 1
            elif not _is_kept(depth, longest, runs, path):
                pass
            elif state[PathState.MATCHES] >= runs.starts.size or state[PathState.EVENTS] + depth > runs.events.size:
                status = Status.OUTPUT_FULL
                phase = REPORT
            else:
                _keep(w, depth, longest, runs, path)
        else:
            if runs.totals[w] == 0 and longest.size[0] > 0:
                state[PathState.MATCHES] += 1
                state[PathState.EVENTS] += longest.size[0]
            w += 1
            phase = BEGIN
        if state[PathState.ERROR_CONDITION] != 0:
            status = Status.OVERFLOWED
    state[PathState.CANDIDATE] = w
    state[PathState.DEPTH] = depth
    state[PathState.PHASE] = phase
    return status
