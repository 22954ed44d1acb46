"""Searches that stop after every few steps, for want of room in the output, and for want of a deeper path: the same matches."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.engine.matchers.automaton import longest_runs, ses_automaton
from gpu_cep.engine.matchers.lazy import enumeration
from gpu_cep.engine.matchers.match_tables import new_match_table
from gpu_cep.engine.matchers.nfab import buffer_counts, buffer_paths, nfab
from gpu_cep_kernels.rules.tables import Status
from tests.conformance.expectation import answered, expected
from tests.conformance.test_conformance import QUERIES, applicable
from tests.results import matches_of

SEARCHES = (ses_automaton, longest_runs, enumeration, buffer_counts, buffer_paths, nfab)
# What a search takes at first: steps of a call, the length of a path, rows of the output.
STEPS = ("_STEPS_PER_CALL", "STEPS_PER_CALL", "FIRST_STEPS", "FIRST_WALKED")
PATHS, ROOMS = ("_PATH", "_HEIGHT"), ("_SMALLEST_OUTPUT", "_EACH_PIVOT")


@contextmanager
def cramped(steps: int, path: int, room: int):
    """Every search takes so many steps, begins with a path of this length, and has an output of so many matches."""

    def small_table(matches, events, variables):
        return new_match_table(min(matches, room), events, variables)

    sizes = {**dict.fromkeys(STEPS, steps), **dict.fromkeys(PATHS, path), **dict.fromkeys(ROOMS, room), "_LONGER": 1}
    with ExitStack() as patches:
        for module in SEARCHES:
            for name, size in sizes.items():
                if hasattr(module, name):
                    patches.enter_context(patch.object(module, name, size))
            if hasattr(module, "new_match_table"):
                patches.enter_context(patch.object(module, "new_match_table", small_table))
        yield


@given(QUERIES, st.integers(1, 7), st.integers(1, 3), st.integers(1, 3), st.data())
def test_interruptions_change_nothing(case, steps, path, room, data):
    wanted, algorithm = expected(case), data.draw(st.sampled_from(applicable(case)))
    with cramped(steps, path, room):
        assert matches_of(answered(case, output="indices", algorithm=algorithm)) == wanted
        assert sum(row["count"] for row in answered(case, output="count", algorithm=algorithm).to_pylist()) == len(wanted)


KERNELS = {
    "ses_automaton": (ses_automaton, "enumerate_matches"),
    "lazy_chain": (enumeration, "enumerate_iterations"),
    "nfab": (buffer_paths, "enumerate_paths"),
}
EVENTS = pa.table({"ts": range(12), "type": ["A", "B", "B", "A", "B", "C"] * 2, "x": range(12)})


@pytest.mark.parametrize("algorithm", KERNELS)
def test_searches_stop_for_each_reason(algorithm):
    module, name = KERNELS[algorithm]
    kernel, stops = getattr(module, name), set()

    def recorded(*arguments):
        status = kernel(*arguments)
        stops.add(Status(status))
        return status

    query = "PATTERN SEQ(A a, B b+, C c) WHERE skip_till_any_match { b.x > a.x AND count(b.x) > 1 }"
    for steps in (1, 7):
        with cramped(steps, 1, 1), patch.object(module, name, recorded):
            assert gpu_cep.match(EVENTS, query, algorithm=algorithm).num_rows > 2
    assert stops >= {Status.FINISHED, Status.STEPS_SPENT, Status.OUTPUT_FULL, Status.PATH_FULL}
