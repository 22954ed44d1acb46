"""Walk robustly through the windows of a chain of single variables side by side, some steps at a time.

A run steps back from an event that leads to no match (:func:`gpu_cep_kernels.automaton.chain_runs.follow_singles`).
It rests and is walked twice as the runs of :mod:`gpu_cep_kernels.automaton.chain_windows`.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.automaton.chain_judgements import Chain
from gpu_cep_kernels.automaton.chain_runs import follow_singles
from gpu_cep_kernels.automaton.chain_windows import (
    ChainCriteria,
    ChainMatches,
    ChainPath,
    ChainRuns,
    ChainScratch,
    ChainWalk,
    RunNumber,
)
from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.compile.jit import kernel
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.tables import AggregateValues, PathState, Registers, Status


@kernel(writes=("runs", "matches.counts", "matches.events"), scratch=("scratch",))
def walk_robust_windows(
    low: int, high: int, slot: int, going: Any, windows: CandidateWindows, events: NextEvents, criteria: ChainCriteria, chain: Chain,
    walk: ChainWalk, scratch: ChainScratch, runs: ChainRuns, matches: ChainMatches,
) -> None:  # fmt: skip
    """Let the runs of the windows ``going[low:high]`` go on; write the matches that they end in.

    A run has STEPS_SPENT if it rests, and binds events then. Else it is FINISHED or OVERFLOWED.
    """
    numbers, values, variables, base = runs.numbers, runs.aggregates, criteria.pattern.minimum.size, criteria.conditions.base
    state, own = scratch.state[slot], scratch.registers
    registers = Registers(own.rows[slot], own.places[slot], own.ints[slot], own.floats[slot], own.nulls[slot])
    for i in range(low, high):
        w = going[i]
        slots, start = runs.slots[w], int(windows.starts[w])
        path = ChainPath(state, AggregateValues(values.counts[w], values.ints[w], values.floats[w]), registers)
        state[PathState.ERROR_CONDITION] = 0
        v, event = int(numbers[RunNumber.DEPTH, w]), int(numbers[RunNumber.EVENT, w])
        if v == 0:
            event = int(events.occurrence[0, start])
        v, event, made, _ = follow_singles(
            v, event, start, int(windows.ends[w]), True, walk.step_limit, events, criteria, chain, slots, path
        )  # fmt: skip
        status = Status.FINISHED
        if state[PathState.ERROR_CONDITION] != 0:
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
        numbers[RunNumber.FAULT, w] = state[PathState.ERROR_CONDITION]
