"""What is moved to a device together is what was there before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpu_cep_kernels.device import packing
from gpu_cep_kernels.device.interface import HOST
from gpu_cep_kernels.device.packing import to_device
from tests.gpu.strict_arrays import StrictArray, StrictDevice

KINDS = st.sampled_from([np.bool_, np.uint8, np.uint16, np.int32, np.uint64, np.float32, np.float64])
ARRAYS = hnp.arrays(KINDS, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))


class Table(NamedTuple):
    """Two parts of any kind."""

    one: Any
    other: Any


VALUES = st.recursive(ARRAYS | st.integers() | st.none(), lambda own: st.tuples(own, own) | st.builds(Table, own, own), max_leaves=8)


class Noting(StrictDevice):
    """A device that notes the bytes of each transfer."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def upload(self, array: np.ndarray) -> StrictArray:
        self.sizes.append(array.nbytes)
        return super().upload(array)


def assert_same(device, found, value):
    assert isinstance(found, StrictArray if isinstance(value, np.ndarray) else type(value))
    if isinstance(value, tuple):
        for part, own in zip(found, value, strict=True):
            assert_same(device, part, own)
    elif isinstance(value, np.ndarray):
        held = device.download(found)
        assert (held.dtype, held.shape, held.tobytes()) == (value.dtype, value.shape, np.ascontiguousarray(value).tobytes())
    else:
        assert found == value


@given(VALUES)
def test_values_keep_their_form_and_their_bits(value):
    device = Noting()
    assert_same(device, to_device(device, value), value)
    assert len(device.sizes) <= 1
    assert to_device(HOST, value) is value


def test_large_arrays_travel_by_themselves():
    device, large = Noting(), np.arange(packing._SMALL // 8 + 1)
    value = (np.arange(3), (large, np.arange(12).reshape(3, 4).T), large[::2])
    assert_same(device, to_device(device, value), value)
    assert len(device.sizes) == 2
    assert large.nbytes in device.sizes
