"""Packs' bits against the bits of their labels, one by one."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one import pack_bits

BYTES = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255), min_size=8, max_size=8)


def block_of(numbers):
    """A block of eight bytes."""
    return np.frombuffer(bytes(numbers), "<u8")[0]


@pytest.fixture(params=[False, True], ids=["plain", "compiled"], scope="module")
def rules(request):
    """The rules of a block, as Python or compiled as kernels have them."""
    if not request.param:
        return pack_bits.transposed, pack_bits.nonzero_bytes
    return numba.njit(lambda block: pack_bits.transposed(block)), numba.njit(lambda block: pack_bits.nonzero_bytes(block))


@given(BYTES)
def test_bits_of_bytes_are_exchanged(rules, numbers):
    bits = np.unpackbits(np.array(numbers, np.uint8), bitorder="little").reshape(8, 8)
    assert int(rules[0](block_of(numbers))).to_bytes(8, "little") == np.packbits(bits.T, bitorder="little").tobytes()


@given(BYTES)
def test_a_bit_for_each_byte_that_is_not_zero(rules, numbers):
    assert rules[1](block_of(numbers)) == np.packbits(np.array(numbers) != 0, bitorder="little")[0]


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32, np.uint64])
@given(st.data(), st.integers(0, 8))
def test_a_block_has_a_byte_of_each_label(word, data, count):
    with np.errstate(over="ignore"):
        width = pack_bits.label_width(np.empty(0, word))
    assert width == 8 * np.dtype(word).itemsize
    place = data.draw(st.sampled_from(range(0, width, pack_bits.BYTE)))
    labels = data.draw(st.lists(st.integers(0, np.iinfo(word).max), min_size=10, max_size=10))
    block = int(pack_bits.label_block(place, pack_bits.labels_of(2, count, np.array(labels, word))))
    assert list(block.to_bytes(8, "little")) == [label >> place & 0xFF for label in labels[2 : 2 + count]] + [0] * (8 - count)


@given(st.integers(0, 255))
def test_a_byte_is_repeated(byte):
    assert int(pack_bits.repeated(np.uint64(byte))).to_bytes(8, "little") == bytes([byte] * 8)
