"""Cases of the search through windows side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.automaton.chain_windows import chain_criteria
from gpu_cep_kernels.automaton.enumeration import Mode
from gpu_cep_kernels.automaton.window_searches import (
    SearchCriteria,
    SearchedMatches,
    SearchNumber,
    new_search_scratch,
    search_windows,
)
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import Status, Strategy
from tests.kernel_cases.automata import walking
from tests.kernel_cases.calls import Call, KernelCase, arrays_in, cases
from tests.kernel_cases.inputs import Random
from tests.kernel_cases.tables import MEAN, MEAN_PROGRAMS


def _searching(
    size: int, random: Random, slots: int, strategy: Strategy = Strategy.NEXT, counting: bool = True, steps: int = 1 << 8, room: int = 16,
    **given: Any,
) -> Call:  # fmt: skip
    """Searches of two variables in any order and one behind; if not `counting`, matches are written that were counted before."""
    _, (windows, events, criteria, judged, *_) = walking(size, random, slots, exclusive=False, **given)
    conditions = chain_criteria(criteria.pattern, criteria.conditions).conditions
    variables, table = len(criteria.pattern.order), criteria.conditions.table
    own = SearchCriteria(criteria.pattern, conditions, judged)
    kept = len(criteria.conditions.aggregates.step)
    scratch = new_search_scratch(np, slots, room, variables, kept, table.roles, conditions.programs.registers)
    for array in arrays_in(scratch):
        array[...] = 0
    numbers = np.zeros((len(SearchNumber), len(windows.starts)), np.int32)
    none = np.empty(0, np.int64)
    matches = SearchedMatches(none, none, none, np.empty((0, variables), np.int32), np.empty(0, np.int32))
    going = np.argsort(windows.starts - windows.ends, kind="stable")
    shared = (windows, NextEvents(events.after, events.occurrence), own)
    if not counting:
        search_windows(0, len(going), 0, going, *shared, Mode(strategy.value, True, steps), scratch, numbers, matches)
        found = (numbers[SearchNumber.STATUS] == int(Status.FINISHED)) & (numbers[SearchNumber.MATCHES] > 0)
        each, bound = (np.where(found, numbers[n], 0).astype(np.int64) for n in (SearchNumber.MATCHES, SearchNumber.EVENTS))
        starts, counts = np.zeros(each.sum(), np.int64), np.zeros((each.sum(), variables), np.int32)
        matches = SearchedMatches(np.cumsum(each) - each, np.cumsum(bound) - bound, starts, counts, np.zeros(bound.sum(), np.int32))
        going, steps = going[found[going]], UNBOUNDED
    return Call(len(going), (going, *shared, Mode(strategy.value, counting, steps), scratch, numbers, matches))


WINDOW_SEARCH_CASES: tuple[KernelCase, ...] = (
    *cases(
        search_windows,
        _searching,
        {
            "next": {},
            "next-untied": {"tied": False},
            "next-writing": {"counting": False},
            "robust": {"strategy": Strategy.ROBUST},
            "robust-writing": {"strategy": Strategy.ROBUST, "counting": False},
            "any-stopped": {"strategy": Strategy.ANY, "steps": 20},
            "any-writing": {"strategy": Strategy.ANY, "counting": False},
            "no-room": {"room": 3},
            "mean": {"conditions": MEAN, "programs": MEAN_PROGRAMS, "counting": False},
        },
    ),
)
