"""The device against the oracle: random queries of the whole language over random tables, whole and in pieces."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.engine.phase_one.device.card_memory import memory_of
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.plan.settings import PRUNING_STEPS
from tests.conformance.expectation import answered, expected
from tests.drawn.neighbours import neighbour_cases
from tests.drawn.queries import AFTER_MATCH, trend_cases, whole_language
from tests.gpu.pieces import PIECES
from tests.results import matches_of

found = partial(answered, engine="gpu")


@given(whole_language())
def test_same_matches_in_the_same_order(case):
    wanted = expected(case)
    assert matches_of(found(case, output="indices")) == wanted


@given(trend_cases(after_match=AFTER_MATCH))
def test_same_matches_where_strategies_differ(case):
    wanted = expected(case)
    assert matches_of(found(case, output="indices")) == wanted


@given(whole_language(max_size=40, strategies=tuple(strategy for strategy in STRATEGIES if strategy != "skip_till_any_match")))
def test_same_matches_in_longer_streams(case):
    wanted = expected(case)
    assert matches_of(found(case, output="indices")) == wanted


@given(neighbour_cases(), st.none() | PIECES)
def test_same_matches_of_neighbours(case, pieces):
    wanted = expected(case)
    with patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", memory_of if pieces is None else lambda device, plan: pieces):
        assert matches_of(found(case, output="indices")) == wanted


@given(whole_language(max_size=20), PIECES, st.data())
def test_pieces_and_pruning_change_nothing(case, pieces, data):
    wanted = expected(case)
    prune = data.draw(st.one_of(st.booleans(), st.sets(st.sampled_from(PRUNING_STEPS)).map(sorted)))
    with patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", lambda device, plan: pieces):
        assert matches_of(found(case, output="indices", prune=prune)) == wanted


@given(whole_language(max_size=20), PIECES)
def test_same_counts(case, pieces):
    expected(case)  # not too many to count
    with patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", lambda device, plan: pieces):
        counts = found(case, output="count")
    wanted = gpu_cep.match(case.events, case.text, **case.options, engine="cpu", output="count")
    assert counts.schema == wanted.schema
    assert repr(counts.to_pylist()) == repr(wanted.to_pylist())  # NaN equals NaN


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_no_events(output):
    events = pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string()), "k": pa.array([], pa.int64())})
    options = {"partition_by": "k", "output": output}
    text = "PATTERN SEQ(A a, B b+) WITHIN 10"
    assert gpu_cep.match(events, text, engine="gpu", **options).equals(gpu_cep.match(events, text, engine="cpu", **options))
