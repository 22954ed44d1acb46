"""Load ranges of rows of columns onto a device.

Each class says for one kind of column what is copied of its buffers, and makes the rows of that on the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.machine_values import BEYOND_INT64
from gpu_cep.errors import EventError
from gpu_cep_kernels.device.interface import Array, Device, HostArray, HostRows, Write, rows_of
from gpu_cep_kernels.device.primitives import any_set

DType = np.dtype[Any]

_INT64 = np.dtype(np.int64)
_LARGEST = int(np.iinfo(np.int64).max)


class Input(Protocol):
    """A column, or its mask of NULLs, that can be loaded onto a device."""

    @property
    def row_bytes(self) -> int:
        """Return the bytes of device memory per row that loading takes."""

    def travelling(self, low: int, high: int) -> list[HostRows]:
        """Return what is copied to the device to load the rows [low, high)."""

    def loaded(self, copies: Sequence[Array], low: int, high: int) -> Array:
        """Return the rows [low, high), given copies of what :meth:`travelling` returns for them.

        The result is C-contiguous. It must not be written to, because it may be the memory of the events themselves.
        """


def load(device: Device, inputs: Sequence[Input], low: int, high: int) -> list[Array]:
    """Return the rows [low, high) of some inputs, for which all that is copied travels together."""
    asked = [source.travelling(low, high) for source in inputs]
    copies = iter(device.upload_rows([*chain.from_iterable(asked)]))
    return [source.loaded([*islice(copies, len(own))], low, high) for source, own in zip(inputs, asked, strict=True)]


class Picking(Input, Protocol):
    """A column, or its mask of NULLs, that lies on the device."""

    def load(self, low: int, high: int) -> Array:
        """Return the rows [low, high), as :meth:`loaded`."""

    def at(self, rows: Array) -> Array:
        """Return the values of some rows."""


class _There(ABC):
    """The methods of an input on the device, of which nothing is copied."""

    __slots__ = ()

    def travelling(self, low: int, high: int) -> list[HostRows]:
        """Return nothing."""
        return []

    def loaded(self, copies: Sequence[Array], low: int, high: int) -> Array:
        """Return the rows [low, high)."""
        return self.load(low, high)

    @abstractmethod
    def load(self, low: int, high: int) -> Array:
        """Return the rows [low, high)."""


@dataclass(frozen=True, slots=True, eq=False)
class HostNumbers:
    """Numbers in a host buffer, which become `kind` on the device.

    What travels is the narrower type. Values that a narrower `kind` cannot hold stand for nothing.
    """

    device: Device
    numbers: HostArray
    kind: DType

    @property
    def row_bytes(self) -> int:
        return self._narrower.itemsize + (self.kind.itemsize if self.kind != self._narrower else 0)

    @property
    def _narrower(self) -> DType:
        """Return the type in which the numbers are copied."""
        return self.kind if self.kind.itemsize < self.numbers.itemsize else self.numbers.dtype

    def travelling(self, low: int, high: int) -> list[HostRows]:
        return [rows_of(self.numbers, low, high, self._narrower)]

    def loaded(self, copies: Sequence[Array], low: int, high: int) -> Array:
        return copies[0].astype(self.kind, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class HostBits:
    """Bits of a bitmap on the host, which become 0 or 1 of type `kind` on the device.

    The lowest bit of each byte is the first. Row 0 is bit `offset`.
    """

    device: Device
    bitmap: npt.NDArray[np.uint8]
    offset: int
    kind: DType

    @property
    def row_bytes(self) -> int:
        # the bit, rounded up, and the byte that it is unpacked to
        return 2 + (self.kind.itemsize if self.kind != np.uint8 else 0)

    def travelling(self, low: int, high: int) -> list[HostRows]:
        first, last = self.offset + low, self.offset + high
        return [rows_of(self.bitmap, first // 8, -(-last // 8), self.bitmap.dtype)]

    def loaded(self, copies: Sequence[Array], low: int, high: int) -> Array:
        bits = _unpack_bits(self.device, copies[0], (self.offset + low) % 8, high - low)
        return bits.astype(self.kind, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class HostBlocks:
    """Values that a function computes on the host for ranges of rows; they travel as `kind`, in which they fit."""

    write: Write
    kind: DType

    @property
    def row_bytes(self) -> int:
        return self.kind.itemsize

    def travelling(self, low: int, high: int) -> list[HostRows]:
        return [HostRows(self.write, low, high, self.kind)]

    def loaded(self, copies: Sequence[Array], low: int, high: int) -> Array:
        return copies[0]


@dataclass(frozen=True, slots=True, eq=False)
class Repeated(_There):
    """The same value in every row."""

    device: Device
    value: int
    kind: DType

    @property
    def row_bytes(self) -> int:
        return self.kind.itemsize

    def load(self, low: int, high: int) -> Array:
        return self.device.xp.full(high - low, self.value, self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceNumbers(_There):
    """Numbers on the device; they are copied only if not of type `kind`, or not contiguous."""

    device: Device
    numbers: Array
    kind: DType

    @property
    def row_bytes(self) -> int:
        # side by side, then as they are to be
        return int(self.numbers.itemsize) + self.kind.itemsize

    def load(self, low: int, high: int) -> Array:
        return self.device.xp.ascontiguousarray(self.numbers[low:high]).astype(self.kind, copy=False)

    def at(self, rows: Array) -> Array:
        """Return the numbers of some rows."""
        return self.numbers[rows].astype(self.kind, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class WideNumbers(_There):
    """Unsigned 64-bit numbers on the device, loaded as int64.

    A number of column `name` that does not fit is an error, unless it is NULL.
    """

    device: Device
    numbers: Array
    present: Picking | None
    name: str

    @property
    def row_bytes(self) -> int:
        return 2 * _INT64.itemsize + (0 if self.present is None else self.present.row_bytes)

    def load(self, low: int, high: int) -> Array:
        return self._as_signed(self.numbers[low:high], None if self.present is None else self.present.load(low, high))

    def at(self, rows: Array) -> Array:
        """Return the numbers of some rows."""
        return self._as_signed(self.numbers[rows], None if self.present is None else self.present.at(rows))

    def _as_signed(self, numbers: Array, present: Array | None) -> Array:
        """Return numbers as int64; those that do not fit are an error, unless `present` is 0 there."""
        beyond = numbers > np.uint64(_LARGEST)
        if present is not None:
            beyond &= present != 0
        if any_set(beyond):
            told = f"Integer value {int(numbers[beyond][0])} not in range: 0 to {_LARGEST}"
            raise EventError(f"column {self.name!r}: {told}; {BEYOND_INT64}")
        return numbers.astype(_INT64)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceBits(_There):
    """Bits of a bitmap on the device, loaded as uint8.

    The lowest bit of each byte is the first. Row 0 is bit number `first`.
    """

    device: Device
    bitmap: Array
    first: int = 0

    @property
    def row_bytes(self) -> int:
        return 1

    def load(self, low: int, high: int) -> Array:
        begin, end = self.first + low, self.first + high
        return _unpack_bits(self.device, self.bitmap[begin // 8 : -(-end // 8)], begin % 8, high - low)

    def at(self, rows: Array) -> Array:
        """Return the bits of some rows."""
        places = rows + self.first
        return (self.bitmap[places >> 3] >> (places & 7).astype(np.uint8)) & np.uint8(1)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceFlags(_There):
    """Numbers on the device, loaded as uint8: 1 if they are not 0."""

    device: Device
    flags: Array

    @property
    def row_bytes(self) -> int:
        return 2

    def load(self, low: int, high: int) -> Array:
        return (self.flags[low:high] != 0).astype(np.uint8)

    def at(self, rows: Array) -> Array:
        """Return the flags of some rows."""
        return (self.flags[rows] != 0).astype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """Numbers with the value `null` in place of NULLs."""

    device: Device
    numbers: Input
    present: Input
    null: int

    @property
    def row_bytes(self) -> int:
        # the result is at most as wide as what goes into it
        return 2 * self.numbers.row_bytes + self.present.row_bytes + 1

    def travelling(self, low: int, high: int) -> list[HostRows]:
        return [*self.numbers.travelling(low, high), *self.present.travelling(low, high)]

    def loaded(self, copies: Sequence[Array], low: int, high: int) -> Array:
        own = len(self.numbers.travelling(low, high))
        numbers, present = self.numbers.loaded(copies[:own], low, high), self.present.loaded(copies[own:], low, high)
        return self.device.xp.where(present != 0, numbers, numbers.dtype.type(self.null))


@dataclass(frozen=True, slots=True, eq=False)
class LookedUp:
    """The values ``table[code]`` of a column of codes; the table is on the device."""

    codes: Input
    table: Array

    @property
    def row_bytes(self) -> int:
        return self.codes.row_bytes + int(self.table.itemsize)

    def travelling(self, low: int, high: int) -> list[HostRows]:
        return self.codes.travelling(low, high)

    def loaded(self, copies: Sequence[Array], low: int, high: int) -> Array:
        return self.table[self.codes.loaded(copies, low, high)]


def _unpack_bits(device: Device, packed: Array, skipped: int, count: int) -> Array:
    """Return `count` bits of a bitmap as uint8, from bit number `skipped` on."""
    return device.xp.unpackbits(packed, bitorder="little")[skipped : skipped + count]
