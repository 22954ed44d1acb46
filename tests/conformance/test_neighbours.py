"""Contiguous sequences against the oracle: with conditions between neighbours judged in bulk, and by the automaton."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.events.batches import cut_batches
from tests.conformance.expectation import answered, expected
from tests.drawn.neighbours import neighbour_cases
from tests.effort import examples
from tests.results import matches_of

thoroughly = examples(300, 1_500)
NEIGHBOURS = neighbour_cases()
PRUNING = st.sampled_from((True, True, False, ("lift",), ("lift", "overlap"), ("partition", "lift", "overlap")))


@thoroughly
@given(NEIGHBOURS, PRUNING, st.sampled_from((1, 2, 3, 5, 1_000)))
def test_same_matches_whatever_the_batches(case, prune, size):
    wanted = expected(case)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matches_of(answered(case, output="indices", prune=prune)) == wanted
        assert sum(row["count"] for row in answered(case, output="count", prune=prune).to_pylist()) == len(wanted)
