"""Copies between host and card by way of pinned memory, with a card whose memory is the host's; CUDA's calls are noted."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import RLock, get_ident
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_cep_kernels.device import staging
from gpu_cep_kernels.device.interface import HostRows, rows_of, write_block
from gpu_cep_kernels.device.staging import Staging


class CardArray:
    """An array on the card: the host's NumPy array `held`, described as CuPy does."""

    def __init__(self, held):
        self.held = held
        self.dtype, self.shape, self.size, self.nbytes = held.dtype, held.shape, held.size, held.nbytes
        self.data = SimpleNamespace(ptr=held.ctypes.data)


class Card:
    """What staging asks of CuPy. A copy is made when an event that was recorded behind it is waited for, as late as a card may make it."""

    def __init__(self):
        self.copies, self.pending, self.pinned, self.made = [], [], 0, 0
        self.users, self.working = set(), RLock()
        runtime = SimpleNamespace(memcpyAsync=self.copy, memcpyHostToDevice=1, memcpyDeviceToHost=2)
        stream = SimpleNamespace(ptr=7)
        self.cuda = SimpleNamespace(
            runtime=runtime,
            get_current_stream=lambda: stream,
            alloc_pinned_memory=self.pin,
            Event=lambda disable_timing: Recorded(self),
            Device=lambda number: SimpleNamespace(use=lambda: self.users.add((number, get_ident()))),
        )

    def copy(self, target, source, size, kind, stream):
        assert stream == 7
        with self.working:
            self.copies.append((kind, size))
            self.pending.append((target, source, size))
            if size < staging._STAGED:
                # the driver has staged it when it returns
                self.finish()

    def finish(self, last=None):
        """Make the pending copies, in order, up to the one of number `last`; None: all."""
        with self.working:
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
        with self.card.working:
            self.last = self.card.made + len(self.card.pending)

    def synchronize(self):
        self.card.finish(self.last)


THREADS = 3


@pytest.fixture
def card(monkeypatch):
    """A card that stages 64 bytes or more, 400 bytes or 100 values at a time."""
    monkeypatch.setattr(staging, "_STAGED", 64)
    monkeypatch.setattr(staging, "_BUFFER", 400)
    monkeypatch.setattr(staging, "_MOST_VALUES", 100)
    monkeypatch.setattr(staging, "available_threads", lambda: 4)
    return Card()


def upload(copying, array, target):
    """Copy one array to the card."""
    copying.upload([rows_of(array, 0, array.size, target.dtype)], [target])


@pytest.mark.parametrize("size", [0, 1, 7, 8, 49, 50, 51, 99, 100, 101, 1000])
def test_arrays_come_back_as_they_went(card, size):
    copying, given = Staging(card, 0), np.arange(size) * 3 - 5
    target = CardArray(np.full(size, 99))
    upload(copying, given, target)
    card.finish()
    assert np.array_equal(target.held, given)
    assert np.array_equal(copying.download(target), given)
    assert card.pinned == ((THREADS + 1) * 2 * 400 if given.nbytes >= 64 else 0)


def test_values_are_converted_while_they_are_staged(card):
    copying, given = Staging(card, 0), np.arange(2000, dtype=np.int32) % 250
    for size in (20, 220):
        target = CardArray(np.zeros(size, np.uint8))
        upload(copying, given[:size], target)
        card.finish()
        assert np.array_equal(target.held, given[:size])
    assert card.copies[0] == (1, 20)
    assert sorted(card.copies[1:]) == [(1, 20), (1, 100), (1, 100)]


@pytest.mark.parametrize("kind", [np.float64, np.bool_, np.uint16])
def test_arrays_with_gaps_and_axes_come_back(card, kind):
    whole = (np.arange(600).reshape(3, 200) % 7).astype(kind)
    every_other = whole[:, ::2]
    found = Staging(card, 0).download(CardArray(every_other))
    assert found.dtype == kind
    assert np.array_equal(found, every_other)


def test_a_buffer_that_is_still_read_is_not_written(card):
    copying, given = Staging(card, 0), np.arange(400)
    target, other = CardArray(np.zeros(400, np.int64)), CardArray(np.full(400, 7))
    upload(copying, given, target)
    assert np.array_equal(copying.download(other), other.held)
    card.finish()
    assert np.array_equal(target.held, given)


def test_threads_that_call_at_the_same_time_do_not_mix_values(card):
    copying = Staging(card, 0)
    given = [np.arange(500) + k for k in range(8)]
    targets = [CardArray(np.zeros(500, np.int64)) for _ in given]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(partial(upload, copying), given, targets))
        card.finish()
        found = list(threads.map(copying.download, targets))
    assert all(map(np.array_equal, found, given))


def test_every_thread_that_copies_uses_the_card(card):
    copying = Staging(card, 5)
    target, callers = CardArray(np.zeros(1000, np.int64)), set()

    def block(low, high):
        callers.add((5, get_ident()))
        return np.arange(low, high)

    copying.upload([HostRows(write_block(block), 0, 1000, target.dtype)], [target])
    # a thread may find no part left
    assert callers
    assert callers <= card.users
    card.users.clear()
    copying.download(target)
    assert {number for number, _ in card.users} == {5}


def test_the_first_error_of_a_block_is_raised_and_no_buffer_is_lost(card):
    copying, target = Staging(card, 0), CardArray(np.zeros(1000, np.int64))

    def block(low, high):
        if low >= 500:
            raise ValueError(f"row {low}")
        return np.arange(low, high)

    for _ in range(THREADS + 2):
        with pytest.raises(ValueError, match=r"^row 500$"):
            copying.upload([HostRows(write_block(block), 0, 1000, target.dtype)], [target])
    upload(copying, np.arange(1000), target)
    card.finish()
    assert np.array_equal(target.held, np.arange(1000))


def test_columns_travel_together_from_their_own_rows_on(card):
    copying, whole = Staging(card, 0), np.arange(900)
    spans = [(0, 0, np.int64), (100, 101, np.uint8), (7, 500, np.float64), (300, 600, np.int32)]
    targets = [CardArray(np.zeros(high - low, kind)) for low, high, kind in spans]
    asked = [HostRows(write_block(lambda low, high: whole[low:high] % 200), low, high, np.dtype(kind)) for low, high, kind in spans]
    copying.upload(asked, targets)
    card.finish()
    for (low, high, _), target in zip(spans, targets, strict=True):
        assert np.array_equal(target.held, whole[low:high] % 200)
