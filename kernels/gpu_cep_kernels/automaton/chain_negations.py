"""Judge the negations of matches of chains side by side, each match by itself.

The matches are runs that :mod:`gpu_cep_kernels.automaton.chain_windows` has walked. A variable stands
on either side of a negation, or binds one event. So the ends of bindings, which runs keep, decide:
they bound scopes, and an event of a match that lies in a scope is one of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.automaton.chain_judgements import Chain, all_hold
from gpu_cep_kernels.automaton.chain_windows import ChainConditions, ChainPath, ChainRuns, ChainScratch, RunNumber
from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.rules.negation import first_in_scope, is_too_late, stream_of
from gpu_cep_kernels.rules.tables import AggregateValues, Ints, PathState, Registers
from gpu_cep_kernels.rules.walked import JudgedConditions, JudgingPath


class ChainNegations(NamedTuple):
    """List the negations beside a chain; all else is as the fields of the same names of NegationTable.

    - after[n], before[n]: the variables behind which negation n's scope begins, and before which it ends; −1: the window bounds it.
    """

    place_first: Ints
    places: Ints
    after: Ints
    before: Ints
    streams: Ints
    times: npt.NDArray[np.generic]
    clock: npt.NDArray[np.generic]
    length: np.generic


@rule
def _is_bound(event: int, slots: Ints) -> bool:
    """Return whether an event is an end of one of the match's bindings."""
    k = 0
    while k < slots.size - 1 and slots[k] != event:
        k += 1
    return k < slots.size - 1


@rule
def _is_ruled_out(
    n: int, stream: int, conditions: JudgedConditions, chain: Chain, negations: ChainNegations, slots: Ints, path: JudgingPath
) -> tuple[bool, int]:  # fmt: skip
    """Return whether an event in the scope of negation n, but not of the match, satisfies its conditions, and how many it looked at.

    The slots hold the ends of the match's bindings.
    """
    base, group = conditions.base, slots.size - 1 + n
    first, last, after, before = slots[0] - base, slots[slots.size - 2] - base, negations.after[n], negations.before[n]
    latest = slots[2 * after + 1] - base if after >= 0 else -1
    earliest = slots[2 * before] - base if before >= 0 else -1
    low, high = negations.place_first[n], negations.place_first[n + 1]
    begin = first_in_scope(negations.places, low, high, latest, last, stream, 0, negations)
    k, ruled_out, inside = begin, False, True
    while k < high and inside and not ruled_out:
        place = negations.places[k]
        inside = not is_too_late(place, earliest, first, stream, negations)
        if inside and not _is_bound(base + place, slots):
            slots[slots.size - 1] = base + place
            ruled_out = all_hold(group, conditions, chain, slots, path)
        k += 1
    return ruled_out, k - begin


@rule
def rule_out(
    conditions: JudgedConditions, chain: Chain, negations: ChainNegations, slots: Ints, path: JudgingPath
) -> tuple[bool, int]:  # fmt: skip
    """Return whether a negation rules out the match whose ends of bindings the slots hold, and how many events were looked at."""
    stream = stream_of(slots[0] - conditions.base, 0, negations.streams)
    n, looks, ruled_out = 0, 0, False
    while n < negations.after.size and not ruled_out:
        ruled_out, looked = _is_ruled_out(n, stream, conditions, chain, negations, slots, path)
        looks += looked
        n += 1
    return ruled_out, looks


@kernel(writes=("runs",), scratch=("scratch",))
def rule_out_runs(
    low: int, high: int, slot: int, found: Any, conditions: ChainConditions, chain: Chain, negations: ChainNegations, scratch: ChainScratch,
    runs: ChainRuns,
) -> None:  # fmt: skip
    """Let runs that end in matches end in none if a negation rules that out.

    They are those of the windows ``found[low:high]``. A run whose conditions overflow has a FAULT.
    """
    numbers, values = runs.numbers, runs.aggregates
    state, own = scratch.state[slot], scratch.registers
    registers = Registers(own.rows[slot], own.places[slot], own.ints[slot], own.floats[slot], own.nulls[slot])
    for i in range(low, high):
        w = found[i]
        slots = runs.slots[w]
        path = ChainPath(state, AggregateValues(values.counts[w], values.ints[w], values.floats[w]), registers)
        state[PathState.ERROR_CONDITION] = 0
        ruled_out, _ = rule_out(conditions, chain, negations, slots, path)
        if ruled_out:
            numbers[RunNumber.DEPTH, w] = 0
        numbers[RunNumber.FAULT, w] = state[PathState.ERROR_CONDITION]
