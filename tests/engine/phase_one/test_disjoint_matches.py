"""Matches that a device takes where they must not overlap, in blocks of any size: those that the CPU takes one after the other."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.phase_one.device import disjoint_matches
from gpu_cep_kernels.labels_decide.runs import keep_matches
from gpu_cep_kernels.matches.disjoint import drop_containing, take_apart
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed


def taken(first, last, alone):
    """The numbers of the matches that kernels for one thread keep, or take."""
    numbers, ends = np.arange(len(first)), last.copy()
    drop_containing(ends)
    numbers = numbers[: keep_matches(numbers, ends)]
    room = np.empty(len(numbers) + 1, np.int64)
    return numbers[room[: take_apart(first[numbers], last[numbers], room)]].tolist() if alone else numbers.tolist()


def found(first, last, alone, seed=3):
    device = SpoiltDevice(cupy_if_installed(), seed)
    given_ends = device.upload(first), device.upload(last.copy())
    return device.download(disjoint_matches.disjoint_matches(device, *given_ends, alone=alone)).tolist()


def ranges(size, longest, seed):
    """The first and last events of matches, some of which contain others."""
    random = np.random.default_rng(seed)
    first = np.cumsum(random.integers(1, 4, size))
    return first, (first + random.integers(0, longest + 1, size)).astype(np.int32)


@given(st.integers(0, 300), st.sampled_from([0, 2, 9, 80, 1_000]), st.integers(0, 2**32), st.sampled_from([1, 2, 6]), st.booleans())
def test_the_same_matches_are_taken(size, longest, seed, bits, alone):
    first, last = ranges(size, longest, seed)
    with patch.object(disjoint_matches, "BITS", bits):
        assert found(first, last, alone, seed) == taken(first, last, alone)


@pytest.mark.parametrize("longest", [0, 5, 500])
def test_many_matches_make_blocks_of_several_sizes(longest):
    first, last = ranges(20_000, longest, 7)
    assert 1 << 2 * disjoint_matches.BITS < 20_000
    expected = taken(first, last, alone=True)
    assert found(first, last, alone=True) == expected
    assert (np.diff(first[expected]) > 0).all()
    assert (first[expected][1:] > last[expected][:-1]).all()


@pytest.mark.parametrize("around", [1, 63, 64, 65, 4_000])
def test_a_match_around_others_is_not_taken(around):
    """It ends behind one that starts `around` matches later, in another block."""
    first = np.arange(5_000, dtype=np.int64) * 2
    last = first.astype(np.int32)
    last[100] = last[100 + around] + 1
    assert found(first, last, alone=False) == [m for m in range(5_000) if m != 100]
