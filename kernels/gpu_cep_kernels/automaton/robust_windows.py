"""Walk robustly through the windows of a chain of single variables side by side, some steps at a time.

A run steps back from an event that leads to no match (:func:`gpu_cep_kernels.automaton.chain_runs.follow_singles`),
also where a negation rules out the match that it ends in.
It rests and is walked twice as the runs of :mod:`gpu_cep_kernels.automaton.chain_windows`.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.automaton.chain_judgements import Chain
from gpu_cep_kernels.automaton.chain_negations import ChainNegations, rule_out
from gpu_cep_kernels.automaton.chain_runs import follow_singles
from gpu_cep_kernels.automaton.chain_windows import (
    ChainCriteria,
    ChainMatches,
    ChainPath,
    ChainRuns,
    ChainScratch,
    ChainWalk,
    RunNumber,
    window_path,
)
from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.tables import Ints, PathState, Status


@rule
def _follow(
    v: int, event: int, start: int, end: int, limit: int, events: NextEvents, criteria: ChainCriteria, chain: Chain,
    negations: ChainNegations | None, slots: Ints, path: ChainPath | None,
) -> tuple[int, int, int]:  # fmt: skip
    """Follow a run to the first match that no negation rules out, or for `limit` steps.

    Return what :func:`gpu_cep_kernels.automaton.chain_runs.follow_singles` does, but for the steps that rejected an event. An event
    that a negation looks at is a step. `negations` is None where there are none. The code for them is then not compiled.
    """
    variables, base, made, going = criteria.pattern.minimum.size, criteria.conditions.base, 0, True
    while going:
        v, event, more, _ = follow_singles(v, event, start, end, True, limit - made, events, criteria, chain, slots, path)
        made += more
        going = False
        if negations is not None and path is not None and v == variables and path.state[PathState.ERROR_CONDITION] == 0:
            going, looks = rule_out(criteria.conditions, chain, negations, slots, path)
            made += looks
            if going:
                v, event = variables - 1, slots[slots.size - 2] - base + 1
    return v, event, made


@rule
def _walk_run(
    w: int, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain, negations: ChainNegations | None,
    walk: ChainWalk, path: ChainPath | None, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Let the run of window w go on; there is no path where all conditions are comparisons of columns, and no event is ruled out."""
    numbers, variables, base = runs.numbers, criteria.pattern.minimum.size, criteria.conditions.base
    slots, start = runs.slots[w], int(windows.starts[w])
    v, event = int(numbers[RunNumber.DEPTH, w]), int(numbers[RunNumber.EVENT, w])
    if v == 0:
        event = int(events.occurrence[0, start])
    v, event, made = _follow(v, event, start, int(windows.ends[w]), walk.step_limit, events, criteria, chain, negations, slots, path)
    status = Status.FINISHED
    fault = 0 if path is None else path.state[PathState.ERROR_CONDITION]
    if fault != 0:
        status = Status.OVERFLOWED
    elif 0 <= v < variables:
        status = Status.STEPS_SPENT
    elif v == variables and not walk.counting:
        for u in range(variables):
            matches.events[matches.place[w] + u] = slots[2 * u] - base
            matches.counts[matches.match[w], u] = 1
    numbers[RunNumber.DEPTH, w] = max(v, 0)
    numbers[RunNumber.EVENT, w] = event
    numbers[RunNumber.STEPS, w] += made
    numbers[RunNumber.STATUS, w] = status
    numbers[RunNumber.FAULT, w] = fault


@kernel(writes=("runs", "matches.counts", "matches.events"), scratch=("scratch",))
def walk_robust_windows(
    low: int, high: int, slot: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain,
    walk: ChainWalk, scratch: ChainScratch, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Let the runs of the windows ``going[low:high]`` go on; write the matches that they end in.

    A run has STEPS_SPENT if it rests, and binds events then. Else it is FINISHED or OVERFLOWED.
    """
    for i in range(low, high):
        path = window_path(going[i], slot, scratch, runs)
        _walk_run(going[i], windows, events, criteria, chain, None, walk, path, runs, matches)


@kernel(writes=("runs", "matches.counts", "matches.events"), scratch=("scratch",))
def walk_negated_robust_windows(
    low: int, high: int, slot: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain,
    negations: ChainNegations, walk: ChainWalk, scratch: ChainScratch, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Do as :func:`walk_robust_windows`, with negations, from whose matches runs step back."""
    for i in range(low, high):
        path = window_path(going[i], slot, scratch, runs)
        _walk_run(going[i], windows, events, criteria, chain, negations, walk, path, runs, matches)


@kernel(writes=("runs.numbers", "runs.slots", "matches.counts", "matches.events"))
def walk_robust_compared_windows(
    low: int, high: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain,
    walk: ChainWalk, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Do as :func:`walk_robust_windows`, but only where all conditions are comparisons of columns, which never overflow."""
    for i in range(low, high):
        _walk_run(going[i], windows, events, criteria, chain, None, walk, None, runs, matches)
