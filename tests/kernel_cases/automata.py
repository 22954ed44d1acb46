"""Cases of the kernels that find matches run by run: the enumeration of the automaton, and walks without a choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_cep.engine.lowering.chains import chain_of
from gpu_cep_kernels.automaton import chain_runs, enumeration, single_runs
from gpu_cep_kernels.automaton.dead_ends import ALWAYS, LAST_EVENT, NEVER, StateKeys, new_dead_ends
from gpu_cep_kernels.automaton.enumeration import CandidateWindows, Mode, Shortcuts
from gpu_cep_kernels.automaton.single_runs import CURRENT, FURTHER_ONLY, Judgements, Walk
from gpu_cep_kernels.rules.cut import KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST
from gpu_cep_kernels.rules.path_arrays import new_path
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventTable, MatchTable, ProgramTable, Strategy
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Random, column_bank, ends_of, start_events, streams
from tests.kernel_cases.jumps import JUMPING, JUMPING_PROGRAMS, jumps, no_jumps
from tests.kernel_cases.tables import (
    AGGREGATES,
    FINALLY,
    ITERATED,
    ITERATION_PROGRAMS,
    MEAN,
    MEAN_PROGRAMS,
    PROGRAMS,
    QUANTIFIED,
    Condition,
    aggregate_table,
    condition_table,
    negation_table,
    pattern_table,
    put_keys,
)

_NEXT = pattern_table((2, 1), ((1, 1), (1, None), (1, 1)))
_ANY = pattern_table((1, 1, 1), ((1, 1), (1, 2), (1, 1)))
_DEPTH = 64
# The states of the second pattern under QUANTIFIED: b and c read a, and b its last event.
_STATES = StateKeys(
    enough=np.array([1, 2, 1]),
    weight=np.array([1, 2, 6]),
    read=np.array([LAST_EVENT, LAST_EVENT]),
    variable=np.array([0, 1]),
    readers=np.array([0b110, 0b010], np.uint64),
    lone=np.array([NEVER, NEVER, ALWAYS]),
)


def automaton(
    size: int,
    random: Random,
    slots: int,
    strategy: Strategy = Strategy.NEXT,
    counting: bool = False,
    steps: int = 1 << 12,
    conditions: Sequence[Condition] = QUANTIFIED,
    programs: ProgramTable = PROGRAMS,
    negated: bool = False,
    keyed: bool = False,
    patience: int = 0,
    remembered: int = 0,
    kept: int = KEEP_ALL,
    limit: int = 1,
    exclusive: bool | None = None,
    **given: Any,
) -> Call:
    free = strategy in (Strategy.ANY, Strategy.ROBUST)
    events = streams(size, random, exclusive=not free if exclusive is None else exclusive, **given)
    starts = start_events(events.labels, 1)[:: 1 if kept == KEEP_ALL else -1].copy()
    pattern = _ANY if free else _NEXT
    aggregate = aggregate_table(4, AGGREGATES if programs is ITERATION_PROGRAMS or programs is MEAN_PROGRAMS else ())
    # no d between b and c, and none in the window after a
    places = np.flatnonzero(random.random(size) < 0.1)
    negations = [(3, (1,), (2,), places), (3, (0,), (), places)] if negated else []
    rules_out = negation_table(negations, events.offsets, events.times, events.times, events.length)
    bank = column_bank(size, random)
    rules_out = put_keys(rules_out, bank) if keyed else rules_out
    successor = events.occurrence[1, 1 : size + 1].astype(np.int64) if strategy == Strategy.CONTIGUOUS else np.zeros(0, np.int64)
    most = 0 if counting else size
    inputs = CandidateWindows(starts, ends_of(events, starts)), EventTable(events.after, events.occurrence, successor)
    judged = Conditions(condition_table(4, conditions), aggregate, programs, bank, 0)
    jumping = jumps(bank, events.occurrence, patience) if conditions is JUMPING and size else no_jumps()
    counts, totals = np.zeros((most, 3), np.int32), np.zeros(len(starts), np.int64)
    output = MatchTable(np.zeros(most, np.int64), counts, np.zeros(most * 8, np.int64), totals)
    run = new_path(_DEPTH, pattern, judged, kept, limit)
    dead_ends = new_dead_ends(_STATES, remembered, 0)
    shortcuts, mode = Shortcuts(jumping, dead_ends), Mode(strategy.value, counting, steps)
    return Call(1, (*inputs, Criteria(pattern, judged, rules_out), shortcuts, mode, run, output))


def _judged(*judged: tuple[int, int, int, int, int], behind: tuple[int, int] = (0, 0)) -> Judgements:
    """Judgements of conditions on a, b+ and c: (condition, needed, when, slot of the left side and of the right one).

    Those from ``behind[0]`` on are b's, and those from ``behind[1]`` on c's.
    """
    condition, needed, when, left, right = zip(*judged, strict=True)
    return Judgements(
        before=np.array([0, 1, 3], np.uint64),
        behind=np.array([6, 4, 0], np.uint64),
        everyone=np.array([7], np.uint64),
        first=np.array([0, *behind, len(judged)]),
        condition=np.array(condition),
        needed=np.array(needed, np.uint64),
        when=np.array(when),
        waits=np.zeros(len(judged), np.uint64),
        left=np.array(left),
        right=np.array(right),
        slot_first=2 * np.arange(len(judged) + 1),
        slot=np.array([left, right]).T.ravel(),
    )


_LAST_A, _LAST_B = 3, 4


# The conditions QUANTIFIED where they are decided: the first two as b binds an event, the program as c does.
_JUDGED = _judged(
    (0, 1, single_runs.ALWAYS, _LAST_A, CURRENT),
    (1, 0, FURTHER_ONLY, _LAST_B, CURRENT),
    (2, 1, single_runs.ALWAYS, _LAST_A, CURRENT),
    behind=(0, 2),
)
# The conditions JUMPING: the first two as b binds an event, the others as c does.
_JUMPING_JUDGED = _judged(
    (0, 1, single_runs.ALWAYS, _LAST_A, CURRENT),
    (1, 0, FURTHER_ONLY, _LAST_B, CURRENT),
    *((c, 1, single_runs.ALWAYS, _LAST_A, CURRENT) for c in (2, 3, 4)),
    behind=(0, 2),
)
# The condition MEAN as c binds an event.
_MEAN_JUDGED = _judged((0, 3, single_runs.ALWAYS, _LAST_A, _LAST_B))
_JUDGEMENTS = ((JUMPING, _JUMPING_JUDGED), (MEAN, _MEAN_JUDGED))


def walking(size: int, random: Random, slots: int, contiguous: bool = False, exclusive: bool = True, **given: Any) -> Call:
    _, (windows, events, criteria, shortcuts, mode, run, output) = automaton(
        size, random, slots, strategy=Strategy.CONTIGUOUS if contiguous else Strategy.NEXT, exclusive=exclusive, **given
    )
    walk = Walk(mode.strategy, mode.counting, mode.step_limit)
    judged = next((judged for conditions, judged in _JUDGEMENTS if given.get("conditions") is conditions), _JUDGED)
    return Call(1, (windows, events, criteria, judged, shortcuts.jumps, walk, run, output))


_CHAIN = pattern_table((1, 1, 1), ((1, 1), (1, None), (1, 1)))
_SINGLES = pattern_table((1, 1, 1), ((1, 1), (1, 1), (1, 1)))


def walking_chain(size: int, random: Random, slots: int, robust: bool = False, **given: Any) -> Call:
    _, (windows, events, criteria, judged, _, walk, run, output) = walking(size, random, slots, **given)
    pattern, walk = (_SINGLES, walk._replace(strategy=int(Strategy.ROBUST))) if robust else (_CHAIN, walk)
    codes = [condition.code for condition in given.get("conditions", QUANTIFIED)]
    chain = chain_of(pattern, judged, criteria.conditions.table, codes)
    return Call(1, (windows, events, criteria._replace(pattern=pattern), chain, walk, np.zeros(7, np.int64), run, output))


AUTOMATON_CASES: tuple[KernelCase, ...] = (
    *cases(
        single_runs.walk_windows,
        walking,
        {
            "next": {},
            "next-untied": {"tied": False},
            "counting": {"counting": True},
            "contiguous": {"contiguous": True},
            "float64": {"time": np.float64},
            "interrupted": {"steps": 20},
            "choice": {"exclusive": False},
            "jumping": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS},
        },
    ),
    *cases(
        single_runs.walk_restricted_windows,
        walking,
        {
            "next": {"negated": True},
            "float64": {"time": np.float64, "negated": True},
            "disjoint": {"kept": KEEP_DISJOINT},
        },
    ),
    *cases(
        chain_runs.walk_chains,
        walking_chain,
        {
            "next": {},
            "next-untied": {"tied": False},
            "counting": {"counting": True},
            "float64": {"time": np.float64},
            "interrupted": {"steps": 20},
            "disjoint": {"kept": KEEP_DISJOINT},
            "choice": {"exclusive": False},
            "sifted": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS},
            "mean": {"conditions": MEAN, "programs": MEAN_PROGRAMS},
            "robust": {"robust": True, "exclusive": False},
            "robust-sifted": {"robust": True, "exclusive": False, "conditions": JUMPING, "programs": JUMPING_PROGRAMS},
        },
    ),
    *cases(
        chain_runs.walk_compared_chains,
        walking_chain,
        {
            "next": {},
            "float64": {"time": np.float64},
            "disjoint": {"kept": KEEP_DISJOINT},
            "robust": {"robust": True, "exclusive": False},
        },
    ),
    *cases(
        enumeration.enumerate_matches,
        automaton,
        {
            "next": {},
            "next-untied": {"tied": False},
            "any": {"strategy": Strategy.ANY},
            "any-counting": {"strategy": Strategy.ANY, "counting": True},
            "interrupted": {"strategy": Strategy.ANY, "steps": 20},
            "contiguous": {"strategy": Strategy.CONTIGUOUS},
            "robust": {"strategy": Strategy.ROBUST},
            "robust-remembering": {"strategy": Strategy.ROBUST, "remembered": 4},
            "iterated": {"strategy": Strategy.ANY, "conditions": ITERATED, "programs": ITERATION_PROGRAMS, "negated": True},
            "iterated-robust": {"strategy": Strategy.ROBUST, "conditions": ITERATED, "programs": ITERATION_PROGRAMS, "negated": True},
            "finally": {"strategy": Strategy.ANY, "conditions": FINALLY, "programs": ITERATION_PROGRAMS},
            "float64": {"time": np.float64, "negated": True},
            "keyed": {"negated": True, "keyed": True},
            "disjoint": {"kept": KEEP_DISJOINT},
            "disjoint-any": {"strategy": Strategy.ANY, "kept": KEEP_DISJOINT, "steps": 20, "negated": True},
            "disjoint-robust": {"strategy": Strategy.ROBUST, "kept": KEEP_DISJOINT},
            "earliest-any": {"strategy": Strategy.ANY, "kept": KEEP_EARLIEST},
            "first-any": {"strategy": Strategy.ANY, "kept": KEEP_EARLIEST, "limit": 3},
            "first-counted": {"strategy": Strategy.ANY, "kept": KEEP_EARLIEST, "limit": 3, "counting": True},
            "jumping": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS},
            "jumping-any": {"strategy": Strategy.ANY, "conditions": JUMPING, "programs": JUMPING_PROGRAMS, "patience": 1},
            "jumping-robust": {"strategy": Strategy.ROBUST, "conditions": JUMPING, "programs": JUMPING_PROGRAMS, "steps": 20},
        },
    ),
)
