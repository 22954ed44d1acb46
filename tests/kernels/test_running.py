"""Aggregates that grow with a binding, against plain Python over the events bound so far."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.testing.kernel_cases.tables import aggregate_table, condition_table, pattern_table, program_table
from gpu_cep_kernels.running import OVERFLOWED, STEPS, accumulate
from gpu_cep_kernels.tables import ColumnBank, new_run

INTS = st.one_of(st.none(), st.integers(-5, 5))
FLOATS = st.one_of(st.none(), st.sampled_from([0.5, -0.0, 2.25, -1.0, math.inf, math.nan]))
EVENTS = st.lists(st.tuples(INTS, FLOATS), min_size=1, max_size=7)
AGGREGATES = aggregate_table(2, [(0, "count_events", 0), *((1, step, 0) for step in STEPS)])


def bank_of(events):
    """One column of integers and one of floats."""
    ints, floats = zip(*events, strict=True)
    return ColumnBank(
        np.array([[value or 0 for value in ints]], np.int64),
        np.array([[0.0 if value is None else value for value in floats]]),
        np.array([value is None for value in ints], np.uint64),
        np.array([value is None for value in floats], np.uint64),
        np.empty((0, len(events), 0)),
    )


def run_of(depth):
    pattern = pattern_table((1, 1), ((1, None), (1, None)))
    return new_run(depth, pattern, condition_table(2, ()), AGGREGATES, program_table((("load_int", 0, 0, 0),)))


def bind(rows, variable, bank, run, depth=0):
    """Bind the events in these rows to a variable, at places from `depth` on, the first behind the one at the place before."""
    for place, row in enumerate(rows, depth):
        accumulate(variable, place - 1, place, row, AGGREGATES, bank, run)


def values(step, k, place, run):
    """The aggregate at a place: None for no value."""
    count = int(run.counts[k, place])
    if step.startswith("count"):
        return count
    numbers = run.ints if step.endswith("ints") else run.floats
    return numbers[k, place].item() if count else None


def expected(step, events):
    if step == "count_events":
        return len(events)
    function, _, column = step.partition("_")
    present = [event[column == "floats"] for event in events if event[column == "floats"] is not None]
    if function == "count":
        return len(present)
    if not present:
        return None
    if function == "sum":
        return sum(present[1:], present[0])
    return math.nan if any(value != value for value in present) else {"min": min, "max": max}[function](present)


def same(one, other):
    return one == other or (one != one and other != other)


@given(EVENTS)
def test_each_place_holds_the_aggregates_of_the_events_up_to_there(events):
    run, bank = run_of(len(events)), bank_of(events)
    bind(range(len(events)), 1, bank, run)
    for k, step in enumerate(STEPS, 1):
        for place in range(len(events)):
            assert same(values(step, k, place, run), expected(step, events[: place + 1]))


@given(EVENTS, st.data())
def test_going_back_on_the_path_needs_no_undoing(events, data):
    """Other events are bound from some place on, and nothing of those bound there before is left."""
    run, bank = run_of(2 * len(events)), bank_of(events)
    bind(range(len(events)), 1, bank, run)
    kept = data.draw(st.integers(0, len(events)))
    others = data.draw(st.lists(st.integers(0, len(events) - 1), min_size=1, max_size=len(events)))
    bind(others, 1, bank, run, kept)
    bound = [*events[:kept], *(events[row] for row in others)]
    for k, step in enumerate(STEPS, 1):
        assert same(values(step, k, len(bound) - 1, run), expected(step, bound))


def test_the_aggregates_of_other_variables_stay_as_they_are():
    run, bank = run_of(3), bank_of([(1, 1.0), (2, 2.0), (3, 3.0)])
    bind(range(3), 0, bank, run)
    assert run.counts[0].tolist() == [1, 2, 3]
    assert not run.counts[1:].any()


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1], [2**63 - 1, 1, -1]])
def test_a_sum_that_overflows_stays_so(values):
    run, bank = run_of(len(values)), bank_of([(value, None) for value in values])
    bind(range(len(values)), 1, bank, run)
    k = 1 + STEPS.index("sum_ints")
    assert run.counts[k].tolist() == [1] + [OVERFLOWED] * (len(values) - 1)
    assert run.ints[1 + STEPS.index("max_ints"), -1] == max(values)
