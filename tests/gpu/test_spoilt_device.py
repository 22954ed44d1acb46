"""Whole queries on a device of spoilt memory, whose kernels run in no order, against the oracle."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.errors import UnsupportedError
from gpu_cep_kernels.compile.jit import kernel
from tests.conformance.expectation import answered, expected
from tests.drawn.queries import AFTER_MATCH, label_cases, trend_cases, whole_language
from tests.drawn.situations import situation_cases
from tests.gpu.pieces import PIECES
from tests.gpu.spoilt_device import SpoiltDevice
from tests.requirements import require_modules
from tests.results import matches_of

SEEDS = st.integers(0, 2**32)


@pytest.fixture(autouse=True)
def reference(device):
    """What says which functions the device has."""
    if not device.simulated:
        pytest.skip("the CPU plays a card's part")
    require_modules("cupy")
    import cupy

    return cupy


def on_spoilt(reference, seed, case, pieces=None, **options):
    """What the query gives there."""
    options = {"output": "indices", **options}
    device = SpoiltDevice(reference, seed)
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: device):
        if pieces is None:
            return answered(case, engine="gpu", **options)
        with patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", lambda device, plan: pieces):
            return answered(case, engine="gpu", **options)


def test_random_queries(reference):
    @given(whole_language(max_size=20), st.none() | PIECES, SEEDS)
    def check(case, pieces, seed):
        wanted = expected(case)
        assert matches_of(on_spoilt(reference, seed, case, pieces)) == wanted

    check()


def test_queries_whose_strategies_differ(reference):
    @given(trend_cases(after_match=AFTER_MATCH), SEEDS)
    def check(case, seed):
        wanted = expected(case)
        assert matches_of(on_spoilt(reference, seed, case)) == wanted

    check()


def test_joins(reference):
    singles = whole_language(max_size=20, strategies=("skip_till_any_match",)).filter(may_be_joined)

    @given(singles, st.none() | PIECES, SEEDS)
    def check(case, pieces, seed):
        wanted = expected(case)
        assert matches_of(on_spoilt(reference, seed, case, pieces, algorithm="join_tree")) == wanted

    check()


def test_counts_of_what_labels_decide(reference):
    @given(label_cases(), st.none() | PIECES, SEEDS)
    def check(case, pieces, seed):
        expected(case)  # not too many to count
        wanted = answered(case, engine="cpu", output="count")
        # tiles of few candidates, so that there are several
        with patch("gpu_cep.engine.windows.state_counts._LEAST", 1):
            found = on_spoilt(reference, seed, case, pieces, output="count")
        assert repr(found.to_pylist()) == repr(wanted.to_pylist())

    check()


def may_be_joined(case):
    """Whether joins answer a query."""
    try:
        answered(case, engine="cpu", algorithm="join_tree", output="count")
    except UnsupportedError:
        return False
    return True


def test_situations(reference):
    @given(situation_cases(), SEEDS)
    def check(case, seed):
        wanted = answered(case, engine="cpu", output="count")
        # as text, since NaN, a key, equals nothing
        assert str(on_spoilt(reference, seed, case, output="count").to_pydict()) == str(wanted.to_pydict())

    check()


@kernel(writes=("sums",))
def carried(low: int, high: int, values: np.ndarray, sums: np.ndarray) -> None:
    """Read what another index writes."""
    for e in range(low, high):
        sums[e] = values[e] + (sums[e - 1] if e else 0)


@kernel(writes=("doubled",))
def forgetful(low: int, high: int, values: np.ndarray, doubled: np.ndarray) -> None:
    """Leave an element as it was."""
    for e in range(low, high):
        if values[e] != 3:
            doubled[e] = 2 * values[e]


@pytest.mark.parametrize("wrong", [carried, forgetful])
def test_faults_of_a_kernel_show(reference, wrong):
    values, found = np.arange(9), []
    for seed in range(4):
        device = SpoiltDevice(reference, seed)
        written = device.xp.empty(9, np.int64)
        device.launch(wrong, 9, device.upload(values), written)
        found.append(device.download(written).tolist())
    in_order = np.zeros(9, np.int64)
    wrong(0, 9, values, in_order)
    assert any(each != in_order.tolist() for each in found)
