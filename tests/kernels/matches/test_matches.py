"""Flat matches against lists of bindings: order, last events, bindings of one variable, gathering."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.matches.flat_matches import (
    FlatMatches,
    gather_matches,
    group_matches,
    invert_order,
    last_events,
    match_offsets,
    order_matches,
    split_binding,
    sum_bound,
)

VARIABLES = 3
BINDINGS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(sorted), min_size=VARIABLES, max_size=VARIABLES)


def integers(values):
    return np.array(list(values), np.int64)


def flat(matches):
    """Offsets, counts and events of matches given as lists of bindings."""
    counts = np.array([[len(binding) for binding in match] for match in matches], np.int32).reshape(-1, VARIABLES)
    offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
    return FlatMatches(offsets, counts, integers(event for match in matches for binding in match for event in binding))


def places_of(matches, v, order, counts):
    """Where the events that v binds in the matches of an order begin, summed in two parts."""
    places, middle = np.full((1, matches + 1), -1, np.int32), matches // 2
    places[:, 0] = 0
    for begin, end in ((0, middle), (middle, matches)):
        sum_bound(begin, end, np.array([v]), order, counts, places)
    places[:, middle + 1 :] += places[0, middle]
    return places[0]


def last_of(match):
    return max(event for binding in match for event in binding)


@given(st.lists(st.lists(BINDINGS, max_size=8), max_size=4))
def test_order_within_groups_is_by_last_event_then_by_bindings(groups):
    matches = [match for group in groups for match in group]
    order = integers(range(len(matches)))
    first = integers(start for start, group in enumerate(groups) for _ in group)
    lasts = integers(last_of(match) for match in matches)
    moved = order_matches(first, flat(matches), lasts, order, np.empty_like(order))
    spans = [*itertools.pairwise(np.cumsum([0, *(len(group) for group in groups)]).tolist())]
    assert moved == sum(order[low:high].tolist() != [*range(low, high)] for low, high in spans)
    expected = [m for span in spans for m in sorted(range(*span), key=lambda m: (last_of(matches[m]), matches[m]))]
    assert order.tolist() == expected


@given(st.lists(BINDINGS, max_size=6))
def test_last_events(matches):
    offsets, _, events = flat(matches)
    lasts = np.full(len(matches), -1)
    last_events(0, len(matches), offsets, events, lasts)
    assert lasts.tolist() == [last_of(match) for match in matches]


@given(st.lists(BINDINGS, max_size=6), st.integers(0, VARIABLES - 1))
def test_split_binding(matches, v):
    found = flat(matches)
    places = places_of(len(matches), v, integers([]), found.counts)
    assert places.tolist() == [0, *itertools.accumulate(len(match[v]) for match in matches)]
    out = np.full(int(places[-1]), -1)
    split_binding(0, len(matches), v, found, np.arange(100) * 3, integers([]), places, out)
    assert out.tolist() == [3 * event for match in matches for event in match[v]]


@given(st.lists(BINDINGS, min_size=1, max_size=6), st.integers(0, VARIABLES - 1), st.data())
def test_split_binding_of_some_in_another_order(matches, v, data):
    order = data.draw(st.lists(st.integers(0, len(matches) - 1), min_size=1, unique=True))
    found = flat(matches)
    places, ranks = places_of(len(order), v, integers(order), found.counts), np.full(len(matches), -1)
    invert_order(integers(order), ranks)
    out = np.full(int(places[-1]), -1)
    split_binding(0, len(matches), v, found, np.arange(100) * 3, ranks, places, out)
    assert out.tolist() == [3 * event for m in order for event in matches[m][v]]


@given(st.lists(BINDINGS, max_size=6), st.data())
def test_gather_matches(matches, data):
    order = data.draw(st.lists(st.integers(0, len(matches) - 1), max_size=8)) if matches else []
    wanted = flat([matches[m] for m in order])
    gathered = wanted._replace(counts=np.full_like(wanted.counts, -1), events=np.full_like(wanted.events, -1))
    gather_matches(0, len(order), integers(order), flat(matches), gathered)
    assert gathered.counts.tolist() == wanted.counts.tolist()
    assert gathered.events.tolist() == wanted.events.tolist()


@given(st.lists(BINDINGS, max_size=6))
def test_match_offsets(matches):
    expected, counts, _ = flat(matches)
    offsets = np.full(len(matches) + 1, -1)
    match_offsets(counts, offsets)
    assert offsets.tolist() == expected.tolist()


@given(st.lists(st.integers(0, 9), max_size=12))
def test_group_matches_is_stable(starts):
    order, places = np.full(len(starts), -1), np.zeros(12, np.int64)
    group_matches(integers(starts), places, order)
    assert order.tolist() == sorted(range(len(starts)), key=lambda m: starts[m])
    assert places[:-1].tolist() == [sum(start < event for start in starts) for event in range(11)]
