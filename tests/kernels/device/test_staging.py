"""Copies between host and card by way of pinned memory, with a card whose memory is the host's; CUDA's calls are noted."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_cep_kernels.device import staging
from gpu_cep_kernels.device.staging import Staging


class CardArray:
    """An array on the card: the host's NumPy array `held`, described as CuPy does."""

    def __init__(self, held):
        self.held = held
        self.dtype, self.shape, self.nbytes = held.dtype, held.shape, held.nbytes
        self.data = SimpleNamespace(ptr=held.ctypes.data)


class Card:
    """What staging asks of CuPy. A copy is made when an event that was recorded behind it is waited for, as late as a card may make it."""

    def __init__(self):
        self.copies, self.pending, self.pinned, self.made = [], [], 0, 0
        runtime = SimpleNamespace(memcpyAsync=self.copy, memcpyHostToDevice=1, memcpyDeviceToHost=2)
        stream = SimpleNamespace(ptr=7)
        self.cuda = SimpleNamespace(
            runtime=runtime, get_current_stream=lambda: stream, alloc_pinned_memory=self.pin, Event=lambda disable_timing: Recorded(self)
        )

    def copy(self, target, source, size, kind, stream):
        assert stream == 7
        self.copies.append((kind, size))
        self.pending.append((target, source, size))
        if size < staging._STAGED:
            # the driver has staged it when it returns
            self.finish()

    def finish(self, last=None):
        """Make the pending copies, in order, up to the one of number `last`; None: all."""
        while self.pending and (last is None or self.made < last):
            target, source, size = self.pending.pop(0)
            ctypes.memmove(target, source, size)
            self.made += 1

    def pin(self, size):
        self.pinned += size
        return bytearray(size)

    @staticmethod
    def ascontiguousarray(array):
        return CardArray(np.ascontiguousarray(array.held))

    @staticmethod
    def asnumpy(array):
        return array.held.copy()


class Recorded:
    """An event of the card."""

    def __init__(self, card):
        self.card, self.last = card, 0

    def record(self, stream):
        assert stream.ptr == 7
        self.last = self.card.made + len(self.card.pending)

    def synchronize(self):
        self.card.finish(self.last)


@pytest.fixture
def card(monkeypatch):
    """A card that stages arrays of 64 bytes or more in buffers of 1,000 bytes; 400 come back at a time."""
    monkeypatch.setattr(staging, "_STAGED", 64)
    monkeypatch.setattr(staging, "_BUFFER", 1000)
    monkeypatch.setattr(staging, "_PART", 400)
    return Card()


@pytest.mark.parametrize("size", [0, 1, 7, 8, 124, 125, 126, 249, 250, 251, 1000])
def test_arrays_come_back_as_they_went(card, size):
    copying, given = Staging(card), np.arange(size) * 3 - 5
    target = CardArray(np.full(size, 99))
    copying.upload(given, target)
    card.finish()
    assert np.array_equal(target.held, given)
    assert np.array_equal(copying.download(target), given)
    assert card.pinned == (2000 if given.nbytes >= 64 else 0)


def test_values_are_converted_while_they_are_staged(card):
    copying, given = Staging(card), np.arange(2000, dtype=np.int32) % 250
    for size in (20, 2000):
        target = CardArray(np.zeros(size, np.uint8))
        copying.upload(given[:size], target)
        card.finish()
        assert np.array_equal(target.held, given[:size])
    assert card.copies == [(1, 20), (1, 1000), (1, 1000)]


@pytest.mark.parametrize("kind", [np.float64, np.bool_, np.uint16])
def test_arrays_with_gaps_and_axes(card, kind):
    whole = (np.arange(600).reshape(3, 200) % 7).astype(kind)
    copying, every_other = Staging(card), whole[:, ::2]
    found = copying.download(CardArray(every_other))
    assert found.dtype == kind
    assert np.array_equal(found, every_other)
    target = CardArray(np.zeros(every_other.shape, kind))
    copying.upload(every_other, target)
    card.finish()
    assert np.array_equal(target.held, every_other)


def test_what_comes_back_is_copied_out_before_its_buffer_is_used_again(card):
    source = CardArray(np.arange(300))
    copying = Staging(card)
    assert np.array_equal(copying.download(source), source.held)
    assert card.copies == [(2, 400)] * 6


def test_a_buffer_that_is_still_read_is_not_written(card):
    copying, given = Staging(card), np.arange(400)
    target, other = CardArray(np.zeros(400, np.int64)), CardArray(np.full(400, 7))
    copying.upload(given, target)
    assert np.array_equal(copying.download(other), other.held)
    card.finish()
    assert np.array_equal(target.held, given)


def test_threads_take_turns(card):
    copying = Staging(card)
    given = [np.arange(500) + k for k in range(8)]
    targets = [CardArray(np.zeros(500, np.int64)) for _ in given]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(copying.upload, given, targets))
        card.finish()
        found = list(threads.map(copying.download, targets))
    assert all(map(np.array_equal, found, given))
