"""Aggregates that grow with a binding, against plain Python over the events bound so far."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.rules.running import AGGREGATIONS, SUM_OVERFLOWED, accumulate
from gpu_cep_kernels.rules.tables import AggregateValues, ColumnBank
from tests.kernel_cases.tables import aggregate_table

INTS = st.one_of(st.none(), st.integers(-5, 5))
FLOATS = st.one_of(st.none(), st.sampled_from([0.5, -0.0, 2.25, -1.0, math.inf, math.nan]))
EVENTS = st.lists(st.tuples(INTS, FLOATS), min_size=1, max_size=7)
AGGREGATES = aggregate_table(2, [(0, "count_events", 0), *((1, step, 0) for step in AGGREGATIONS)])


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


def values_of(depth):
    """Room for the aggregates of a path of so many events."""
    shape = len(AGGREGATES.step), depth
    return AggregateValues(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape))


def bind(rows, variable, bank, values, depth=0):
    """Bind the events in these rows to a variable, at places from `depth` on, the first behind the one at the place before."""
    for place, row in enumerate(rows, depth):
        accumulate(variable, place - 1, place, row, AGGREGATES, bank, values)


def value(step, k, place, values):
    """The aggregate at a place: None for no value."""
    count = int(values.counts[k, place])
    if step.startswith("count"):
        return count
    numbers = values.ints if step.endswith("ints") else values.floats
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
    values, bank = values_of(len(events)), bank_of(events)
    bind(range(len(events)), 1, bank, values)
    for k, step in enumerate(AGGREGATIONS, 1):
        for place in range(len(events)):
            assert same(value(step, k, place, values), expected(step, events[: place + 1]))


@given(EVENTS, st.data())
def test_going_back_on_the_path_needs_no_undoing(events, data):
    """Other events are bound from some place on, and nothing of those bound there before is left."""
    values, bank = values_of(2 * len(events)), bank_of(events)
    bind(range(len(events)), 1, bank, values)
    kept = data.draw(st.integers(0, len(events)))
    others = data.draw(st.lists(st.integers(0, len(events) - 1), min_size=1, max_size=len(events)))
    bind(others, 1, bank, values, kept)
    bound = [*events[:kept], *(events[row] for row in others)]
    for k, step in enumerate(AGGREGATIONS, 1):
        assert same(value(step, k, len(bound) - 1, values), expected(step, bound))


def test_the_aggregates_of_other_variables_stay_as_they_are():
    values, bank = values_of(3), bank_of([(1, 1.0), (2, 2.0), (3, 3.0)])
    bind(range(3), 0, bank, values)
    assert values.counts[0].tolist() == [1, 2, 3]
    assert not values.counts[1:].any()


@pytest.mark.parametrize("added", [[2**63 - 1, 1], [-(2**63), -1], [2**63 - 1, 1, -1]])
def test_a_sum_that_overflows_stays_so(added):
    values, bank = values_of(len(added)), bank_of([(value, None) for value in added])
    bind(range(len(added)), 1, bank, values)
    k = 1 + AGGREGATIONS["sum_ints"]
    assert values.counts[k].tolist() == [1] + [SUM_OVERFLOWED] * (len(added) - 1)
    assert values.ints[1 + AGGREGATIONS["max_ints"], -1] == max(added)
