"""The grids that a card's kernels are launched with, computed without a card."""

from __future__ import annotations

import pytest

from gpu_cep_kernels.device.cuda_device import CudaDevice

THREADS = 256


@pytest.fixture
def card():
    """A card of 132 multiprocessors, not opened."""
    unopened = object.__new__(CudaDevice)
    unopened._multiprocessors = 132
    return unopened


@pytest.mark.parametrize("slotted", [False, True])
def test_a_few_indices_take_one_block(card, slotted):
    assert card._blocks(slotted, 1) == 1


@pytest.mark.parametrize("slotted", [False, True])
def test_a_grid_grows_with_the_indices_up_to_what_the_card_holds(card, slotted):
    assert card._blocks(slotted, 1000 * THREADS) == 1000
    assert card._blocks(slotted, 10**9) == 132 * (8 if slotted else 32)


def test_only_threads_with_an_index_have_a_slot(card):
    assert [card.slots(size) for size in (0, 1, 128 * THREADS + 1)] == [0, 1, 128 * THREADS + 1]
    assert card.slots(10**9) == 132 * 8 * THREADS
