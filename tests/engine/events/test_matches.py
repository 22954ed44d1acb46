"""Flat matches: subsets in another order, and those that repeat the one before."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.events.matches import Ends, Matches, concatenate_matches, ones
from gpu_cep.engine.events.placed_matches import OrderedMatches, SinglesInParts, join_matches

# two variables, of which one may be absent
MATCH = st.tuples(st.lists(st.integers(0, 3), max_size=2), st.lists(st.integers(0, 3), min_size=1, max_size=2))
MATCHES = st.lists(MATCH, max_size=8)


def bound(match):
    """All events of a match."""
    return [event for binding in match for event in binding]


def flat(matches):
    counts = np.array([[len(binding) for binding in match] for match in matches], np.int32).reshape(-1, 2)
    events = np.array([event for match in matches for event in bound(match)], np.int64)
    return Matches(np.array([min(bound(match)) for match in matches], np.int64), counts, events)


def listed(matches):
    places = matches.offsets.tolist()
    return [
        (matches.events[low : low + counts[0]].tolist(), matches.events[low + counts[0] : high].tolist())
        for low, high, counts in zip(places, places[1:], matches.counts.tolist(), strict=False)
    ]


@given(MATCHES, st.data())
def test_some_of_the_matches_in_any_order(matches, data):
    order = data.draw(st.lists(st.integers(0, len(matches) - 1), max_size=6)) if matches else []
    found = flat(matches).reorder(np.array(order, np.int64))
    assert listed(found) == [matches[m] for m in order]
    assert found.first.tolist() == [min(bound(matches[m])) for m in order]
    assert found.last.tolist() == [max(bound(matches[m])) for m in order]


@given(MATCHES | st.lists(st.tuples(*[st.lists(st.integers(0, 3), min_size=1, max_size=1)] * 2), max_size=8), st.data(), st.integers(1, 2))
def test_matches_in_an_order_of_their_own(matches, data, threads):
    """Whether their events are gathered or stay where they are, they are the same; and so are some of these in yet another order."""
    order = data.draw(st.permutations(range(len(matches)))) if matches else []
    chosen = data.draw(st.lists(st.integers(0, len(matches) - 1), unique=True)) if matches else []
    whole = OrderedMatches(flat(matches), np.array(order, np.int64))
    for found, wanted in ((whole, order), (whole.reorder(np.array(chosen, np.int64)), [order[m] for m in chosen])):
        expected = [matches[m] for m in wanted]
        for v, (events, places) in enumerate(found.bound_rows(np.arange(2), np.arange(100), threads)):
            assert [events[low:high].tolist() for low, high in zip(places, places[1:], strict=False)] == [match[v] for match in expected]
        if found.single:
            singles = found.rows_of_singles(np.array([1, 0, 1]), np.arange(100), threads)
            assert singles.T.tolist() == [[*match[1], *match[0], *match[1]] for match in expected]
        events = found.rows_of_ends(Ends(np.array([0, 0, 1, 1]), np.array([False, True] * 2)), np.arange(100), threads)
        assert events.tolist() == [[match[v][-last] if match[v] else -1 for match in expected] for v in range(2) for last in (0, 1)]
        assert found.counts.tolist() == [[len(binding) for binding in match] for match in expected]
        assert (found.first.tolist(), found.last.tolist()) == ([min(bound(m)) for m in expected], [max(bound(m)) for m in expected])
        assert listed(found) == expected
        assert len(found) == len(expected)


@given(MATCHES)
def test_distinct_leaves_out_what_repeats_the_match_before(matches):
    wanted = [match for m, match in enumerate(matches) if m == 0 or matches[m - 1] != match]
    assert listed(flat(matches).drop_repeated()) == wanted


@given(st.lists(MATCH, min_size=1, max_size=4), st.integers(2, 3))
def test_distinct_of_matches_several_times_over(matches, times):
    repeated = [match for match in matches for _ in range(times)]
    assert listed(flat(repeated).drop_repeated()) == listed(flat(matches).drop_repeated())


@given(MATCHES)
def test_bindings_of_each_variable(matches):
    for v in range(2):
        ((events, places),) = flat(matches).bound_rows(np.array([v]), np.arange(100))
        assert [events[low:high].tolist() for low, high in zip(places, places[1:], strict=False)] == [match[v] for match in matches]


@given(MATCHES)
def test_matches_by_first_event_last_event_and_bindings(matches):
    found = flat(matches).sort_by_starts(0, 4)
    assert listed(found) == sorted(matches, key=lambda match: (min(bound(match)), max(bound(match)), match))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(4, 7)), max_size=12), st.integers(0, 4))
def test_matches_of_single_variables_need_no_counts(pairs, parts):
    """Whether their number is written out or not, they are the same."""
    events = np.array(pairs, np.int64).reshape(-1, 2)
    written = Matches(events.min(axis=1), np.ones(events.shape, np.int32), events.ravel())
    known = Matches(events.min(axis=1), ones(*events.shape), events.ravel())
    cut = np.linspace(0, len(events), parts + 1).astype(int)
    apart = [Matches(known.first[low:high], known.counts[low:high], events[low:high].ravel()) for low, high in itertools.pairwise(cut)]
    for made in (known, concatenate_matches(apart, 2) if parts else known):
        assert made.single == written.single
        for wanted, found in ((written, made), (written.sort_by_starts(0, 8), made.sort_by_starts(0, 8))):
            for array in ("first", "counts", "events", "last", "offsets"):
                assert np.array_equal(getattr(found, array), getattr(wanted, array))
            bound_by = [[own.tolist() for own in each.bound_rows(np.array([1]), np.arange(100))[0]] for each in (found, wanted)]
            assert bound_by[0] == bound_by[1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(4, 7)), max_size=12), st.integers(2, 4), st.integers(1, 2), st.data())
def test_single_variables_in_parts_are_those_of_one(pairs, parts, threads, data):
    """As they are, in an order of their own, and some of these."""
    events, rows = np.array(pairs, np.int64).reshape(-1, 2), np.arange(8, dtype=np.int32) * 7
    cut = np.linspace(0, len(events), parts + 1).astype(int)
    apart = [Matches(events[low:high, 0], ones(high - low, 2), events[low:high].ravel()) for low, high in itertools.pairwise(cut)]
    found, joined = join_matches(apart, 2, threads), concatenate_matches(apart, 2)
    assert isinstance(found, SinglesInParts)
    order = np.array(data.draw(st.permutations(range(len(pairs)))), np.int64)
    some = order[: data.draw(st.integers(0, len(order)))]
    for made, wanted in (
        (found, joined),
        (found.reorder(some), joined.reorder(some)),
        (OrderedMatches(found, some), OrderedMatches(joined, some)),
    ):
        assert len(made) == len(wanted)
        for array in ("first", "last", "counts", "events", "offsets"):
            assert np.array_equal(getattr(made, array), getattr(wanted, array))
        for asked in ([0, 1], [1], []):
            both = (each.rows_of_singles(np.array(asked, np.int64), rows, threads) for each in (made, wanted))
            assert np.array_equal(*both)
        ends = Ends(np.array([1]), np.array([False]))
        assert np.array_equal(made.rows_of_ends(ends, rows, threads), wanted.rows_of_ends(ends, rows, threads))
        (one,), (other,) = (each.bound_rows(np.array([1]), rows, threads) for each in (made, wanted))
        assert all(map(np.array_equal, one, other))


@given(st.lists(MATCHES, max_size=5), st.integers(1, 3))
def test_parts_one_after_the_other(parts, threads):
    found = concatenate_matches([flat(part) for part in parts], 2, threads)
    assert listed(found) == [match for part in parts for match in part]
    assert found.first.tolist() == [min(bound(match)) for part in parts for match in part]
