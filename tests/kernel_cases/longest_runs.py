"""Cases of the kernel that finds the longest run of each window without a match."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.automaton import longest_runs
from gpu_cep_kernels.rules.tables import Strategy
from tests.kernel_cases.automata import automaton
from tests.kernel_cases.calls import Call, KernelCase, cases
from tests.kernel_cases.inputs import Random
from tests.kernel_cases.jumps import JUMPING, JUMPING_PROGRAMS
from tests.kernel_cases.tables import FINALLY, ITERATION_PROGRAMS


def _running(size: int, random: Random, slots: int, exclusive: bool = False, **given: Any) -> Call:
    _, (*inputs, run, output) = automaton(size, random, slots, exclusive=exclusive, **given)
    longest = longest_runs.Longest(*(np.zeros(1, np.int64) for _ in longest_runs.Longest._fields))
    return Call(1, (*inputs, run, longest, output))


LONGEST_RUN_CASES: tuple[KernelCase, ...] = (
    *cases(
        longest_runs.find_longest_runs,
        _running,
        {
            "next": {},
            "next-untied": {"tied": False, "exclusive": True},
            "contiguous": {"strategy": Strategy.CONTIGUOUS},
            "negated": {"negated": True},
            "float64": {"time": np.float64, "negated": True},
            "interrupted": {"steps": 20},
            "finally": {"conditions": FINALLY, "programs": ITERATION_PROGRAMS},
            "jumping": {"conditions": JUMPING, "programs": JUMPING_PROGRAMS},
        },
    ),
)
