"""Matches of alternatives that stay apart are the same as those that are merged."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.branchwise_matches import BranchwiseMatches, may_stay_apart
from gpu_cep.engine.events.matches import Ends, Matches, ones
from gpu_cep.engine.events.merged_matches import BranchMatches, merge_by_starts
from gpu_cep.engine.events.placed_matches import OrderedMatches, join_batches, matches_of

VARIABLES, EVENTS = 5, 12
BRANCHES = st.lists(st.sets(st.integers(0, VARIABLES - 1), min_size=1).map(sorted).map(tuple), min_size=2, max_size=3)


@st.composite
def batches(draw):
    """For each of some batches the matches of each branch, which begin with an event that no other begins with."""
    branches, number = draw(BRANCHES), draw(st.integers(1, 3))
    owners = draw(st.lists(st.integers(-1, len(branches) - 1), min_size=EVENTS * number, max_size=EVENTS * number))
    found = []
    for low in range(0, EVENTS * number, EVENTS):
        parts = []
        for branch, variables in enumerate(branches):
            first = np.array([low + e for e in range(EVENTS) if owners[low + e] == branch], np.int64)
            later = st.lists(st.integers(0, 40), min_size=len(variables) - 1, max_size=len(variables) - 1)
            events = [[event, *(event + more for more in draw(later))] for event in first.tolist()]
            bound = np.array(events, np.int64).ravel()
            parts.append(BranchMatches(Matches(first, ones(len(first), len(variables)), bound), variables))
        found.append((Batch(low, low + EVENTS, low + EVENTS), parts))
    return found


@given(batches(), st.integers(1, 2), st.data())
def test_alternatives_are_the_merged_matches(found, threads, data):
    apart = [BranchwiseMatches(tuple(parts), VARIABLES) for _, parts in found]
    wanted = merge_by_starts([part for _, parts in found for part in parts], VARIABLES)
    made = join_batches(apart, VARIABLES, EVENTS * len(found), threads)
    assert isinstance(made, OrderedMatches)
    order = np.array(data.draw(st.permutations(range(len(wanted)))), np.int64)
    some = order[: data.draw(st.integers(0, len(order)))]
    rows = np.arange(200, dtype=np.int32) * 3
    ends = Ends(np.arange(VARIABLES), np.zeros(VARIABLES, np.bool_))
    for own, other in ((made, wanted), (made.reorder(some), wanted.reorder(some))):
        assert (len(own), own.bound) == (len(other), other.bound)
        for array in ("first", "last", "counts", "events", "offsets"):
            assert np.array_equal(getattr(own, array), getattr(other, array))
        assert np.array_equal(own.rows_of_ends(ends, rows, threads), other.rows_of_ends(ends, rows, threads))
        listed = [each.bound_rows(np.arange(VARIABLES), rows, threads) for each in (own, other)]
        assert all(map(np.array_equal, one, two) for one, two in zip(*listed, strict=True))


@given(batches())
def test_batches_of_either_kind_are_joined(found):
    """A batch in which two matches begin with one event is merged."""
    parts = [BranchwiseMatches(tuple(parts), VARIABLES) for _, parts in found]
    mixed = [matches_of(parts[0]), *parts[1:]]
    wanted = merge_by_starts([part for _, parts in found for part in parts], VARIABLES)
    made = join_batches(mixed, VARIABLES, EVENTS * len(found))
    for array in ("first", "counts", "events"):
        assert np.array_equal(getattr(made, array), getattr(wanted, array))


@given(batches())
def test_matches_that_begin_with_one_event_do_not_stay_apart(found):
    for batch, parts in found:
        assert may_stay_apart(parts, batch)
        assert may_stay_apart([*parts, parts[0]], batch) == (not len(parts[0].matches))


def test_matches_that_may_bind_several_events_do_not_stay_apart():
    several = Matches(np.array([0]), np.array([[1, 2]], np.int32), np.array([0, 1, 2]))
    assert not may_stay_apart([BranchMatches(several, (0, 1))], Batch(0, 3, 3))
