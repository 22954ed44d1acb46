"""Matches of branches that are merged: all of them by first event, each with its bindings."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.events.matches import Matches, ones
from gpu_cep.engine.events.merged_matches import BranchMatches, merge_by_starts

_VARIABLES = 4
_BINDING = st.lists(st.integers(0, 5), max_size=2).map(tuple)


@st.composite
def _parts(draw):
    """Variables of a branch, and matches of it as bindings of these: the first variable binds the first event."""
    variables = tuple(sorted(draw(st.sets(st.integers(0, _VARIABLES - 1), min_size=1))))
    matches = draw(st.lists(st.tuples(st.tuples(st.integers(0, 5)), *[_BINDING] * (len(variables) - 1)), max_size=6))
    return variables, sorted(matches, key=lambda match: match[0])


def _flat(variables, matches):
    """The matches as arrays; those that bind one event to each variable without counts of their own."""
    counts = np.array([[len(binding) for binding in match] for match in matches], np.int32).reshape(-1, len(variables))
    first = np.array([match[0][0] for match in matches], np.int64)
    events = np.array([event for match in matches for binding in match for event in binding], np.int64)
    return BranchMatches(Matches(first, ones(*counts.shape) if (counts == 1).all() else counts, events), variables)


def _listed(matches):
    cut = np.split(matches.events, np.cumsum(matches.counts.ravel()))[: matches.counts.size]
    bindings = [tuple(own.tolist()) for own in cut]
    return [tuple(bindings[m * _VARIABLES : (m + 1) * _VARIABLES]) for m in range(len(matches))]


@given(st.lists(_parts(), min_size=1, max_size=5))
def test_matches_of_branches_are_merged_by_first_event(parts):
    wide = [
        (match[0][0], tuple(dict(zip(variables, match, strict=True)).get(v, ()) for v in range(_VARIABLES)))
        for variables, matches in parts
        for match in matches
    ]
    # sorting is stable, so that those of earlier parts come before
    expected = sorted(wide, key=lambda match: match[0])
    merged = merge_by_starts([_flat(*part) for part in parts], _VARIABLES)
    assert merged.first.tolist() == [first for first, _ in expected]
    assert _listed(merged) == [bindings for _, bindings in expected]
