"""Cases of the walk through windows of a chain side by side."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from gpu_cep.engine.lowering.chains import with_negations
from gpu_cep.engine.lowering.judgements import NegationJudgement
from gpu_cep_kernels.automaton import chain_windows
from gpu_cep_kernels.automaton.chain_judgements import Chain
from gpu_cep_kernels.automaton.chain_negations import ChainNegations, rule_out_runs
from gpu_cep_kernels.automaton.chain_windows import (
    ChainMatches,
    ChainWalk,
    RunNumber,
    chain_criteria,
    new_runs,
    new_scratch,
    walk_chain_windows,
    walk_compared_windows,
)
from gpu_cep_kernels.automaton.robust_windows import (
    walk_negated_robust_windows,
    walk_robust_compared_windows,
    walk_robust_windows,
)
from gpu_cep_kernels.automaton.single_runs import CURRENT
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Criteria
from tests.kernel_cases.automata import walking_chain
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Random
from tests.kernel_cases.jumps import JUMPING, JUMPING_PROGRAMS
from tests.kernel_cases.tables import COMPARED, MEAN, MEAN_PROGRAMS, QUANTIFIED


def _walking(
    size: int, random: Random, slots: int, counting: bool = True, steps: int = UNBOUNDED, kernel: Any = walk_chain_windows,
    steps_back: bool = False, **given: Any,
) -> Call:  # fmt: skip
    """Runs that are begun; if not `counting`, matches are written, whose events were counted before.

    `steps_back`: runs step back from matches that negations rule out.
    """
    _, (windows, events, criteria, chain, *_) = walking_chain(size, random, slots, **given)
    variables, values = len(criteria.pattern.minimum), len(criteria.conditions.aggregates.step)
    scratch = (_zeroed_scratch(slots, criteria),) if kernel.slotted else ()
    runs = _zeroed(new_runs(np, len(windows.starts), variables, values))
    none = np.empty(0, np.int64)
    matches = ChainMatches(none, none, np.empty((0, variables), np.int32), np.empty(0, np.int32))
    following = NextEvents(events.after, events.occurrence)
    going = np.argsort(windows.starts - windows.ends, kind="stable")
    judged = _with_negations(chain, criteria) if steps_back else (chain,)
    shared = (windows, following, chain_criteria(criteria.pattern, criteria.conditions), *judged)
    if not counting:
        slot = (0,) if kernel.slotted else ()
        kernel(0, len(going), *slot, going, *shared, ChainWalk(True, UNBOUNDED), *scratch, runs, matches)
        depth = runs.numbers[RunNumber.DEPTH].astype(np.int64)
        found = depth > 0
        counts, bound = np.zeros((int(found.sum()), variables), np.int32), np.zeros(depth.sum(), np.int32)
        matches = ChainMatches(np.cumsum(found) - 1, np.cumsum(depth) - depth, counts, bound)
        going, runs = going[found[going]], _zeroed(new_runs(np, len(windows.starts), variables, values))
    return Call(len(going), (going, *shared, ChainWalk(counting, steps), *scratch, runs, matches))


def _ruling_out(size: int, random: Random, slots: int, **given: Any) -> Call:
    """Runs that are walked to their ends, and negations whose events are compared with a, by columns and by a program."""
    _, (_, _, criteria, *_) = walking_chain(size, deepcopy(random), slots, negated=True, **given)
    _, (going, windows, following, chained, chain, walk, scratch, runs, matches) = _walking(size, random, slots, negated=True, **given)
    walk_chain_windows(0, len(going), 0, going, windows, following, chained, chain, walk, scratch, runs, matches)
    found = np.flatnonzero(runs.numbers[RunNumber.DEPTH] > 0)
    return Call(len(found), (found, chained.conditions, *_with_negations(chain, criteria), scratch, runs))


def _with_negations(chain: Chain, criteria: Criteria) -> tuple[Chain, ChainNegations]:
    """The chain with what is judged of the events that two negations may rule out, and these negations."""
    judged = [[NegationJudgement(0, (_LAST_A, CURRENT))], [NegationJudgement(2, (_LAST_A, CURRENT))]]
    scopes = {"after": np.array([1, 0]), "before": np.array([2, -1])}
    negations = ChainNegations(**{name: getattr(criteria.negations, name) for name in ChainNegations._fields} | scopes)
    return with_negations(chain, judged, criteria.conditions.table, [condition.code for condition in QUANTIFIED]), negations


def _zeroed_scratch(slots: int, criteria: Criteria) -> chain_windows.ChainScratch:
    """Scratch with nothing left in it."""
    scratch = new_scratch(np, slots, criteria.conditions.table.roles, criteria.conditions.programs.registers)
    for array in (scratch.state, *scratch.registers):
        array[...] = 0
    return scratch


# The slot of a's last event, as conditions name it.
_LAST_A = 3


def _zeroed(runs: chain_windows.ChainRuns) -> chain_windows.ChainRuns:
    """The runs with nothing left in what they write."""
    for array in (runs.slots, *runs.aggregates):
        array[...] = 0
    return runs


CHAIN_WINDOW_CASES: tuple[KernelCase, ...] = (
    *cases(
        walk_chain_windows,
        _walking,
        {
            "counting": {},
            "untied": {"tied": False},
            "writing": {"counting": False},
            "writing-resting": {"counting": False, "steps": 2},
            "resting": {"steps": 3},
            "choice": {"exclusive": False},
            "sifted": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS, "counting": False},
            "mean": {"conditions": MEAN, "programs": MEAN_PROGRAMS, "counting": False},
        },
    ),
    *cases(
        walk_compared_windows,
        partial(_walking, kernel=walk_compared_windows, conditions=COMPARED),
        {
            "counting": {},
            "untied": {"tied": False},
            "writing": {"counting": False},
            "writing-resting": {"counting": False, "steps": 2},
        },
    ),
    *cases(
        walk_robust_windows,
        partial(_walking, kernel=walk_robust_windows, robust=True, exclusive=False),
        {
            "counting": {},
            "untied": {"tied": False},
            "writing": {"counting": False},
            "writing-resting": {"counting": False, "steps": 2},
            "sifted": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS, "counting": False},
        },
    ),
    *cases(
        walk_negated_robust_windows,
        partial(_walking, kernel=walk_negated_robust_windows, steps_back=True, robust=True, negated=True, exclusive=False),
        {
            "counting": {},
            "writing-resting": {"counting": False, "steps": 2},
            "float64": {"time": np.float64},
        },
    ),
    *cases(
        walk_robust_compared_windows,
        partial(_walking, kernel=walk_robust_compared_windows, robust=True, exclusive=False, conditions=COMPARED),
        {"counting": {}, "writing": {"counting": False}, "writing-resting": {"counting": False, "steps": 2}},
    ),
    *cases(rule_out_runs, _ruling_out, {"": {}, "float64": {"time": np.float64}}),
)
