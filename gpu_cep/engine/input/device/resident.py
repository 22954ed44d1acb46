"""Hold events that lie on a device; the host downloads columns, or some rows, on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.device.foreign_arrays import ForeignArray
from gpu_cep.engine.input.device.uploads import DeviceFlags, DeviceNumbers, DType, Input, Picking, WideNumbers
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.primitives import any_set

_INT32, _INT64, _FLOAT32, _FLOAT64 = (np.dtype(kind) for kind in (np.int32, np.int64, np.float32, np.float64))
# What numbers of a type are computed as; all others as int64.
_MACHINE_TYPES: dict[DType, DType] = {_FLOAT32: _FLOAT32, _FLOAT64: _FLOAT64, _INT32: _INT32, np.dtype(np.bool_): _INT32}
_NOT_A_TIME = np.iinfo(np.int64).min


class ResidentColumn(Protocol):
    """A column on a device, with the attributes of an Arrow column: type, length, size and `take`."""

    @property
    def type(self) -> pa.DataType: ...

    @property
    def nbytes(self) -> int: ...

    def __len__(self) -> int: ...

    @property
    def present(self) -> Input | None:
        """Return uint8, 0 where the column is NULL; None if it never is."""

    def to_arrow(self) -> pa.Array:
        """Return the whole column on the host; text as a dictionary."""

    def take(self, rows: pa.Array) -> pa.Array:
        """Return some rows on the host, NULL where `rows` are."""


@dataclass(frozen=True, eq=False)
class ResidentNumbers:
    """A column of numbers or times.

    `kind` is its type, of which only the mask says what is NULL. Without it, the type is that of
    the array, and NaT is NULL.
    """

    device: Device
    name: str
    array: ForeignArray
    kind: pa.DataType | None = None

    @cached_property
    def type(self) -> pa.DataType:
        return self.kind or pa.from_numpy_dtype(self.array.dtype)

    @property
    def nbytes(self) -> int:
        return len(self) * self.array.dtype.itemsize

    def __len__(self) -> int:
        return len(self.array.values)

    @cached_property
    def values(self) -> Picking:
        """Return the column in its machine representation."""
        if self.array.dtype == np.uint64:
            return WideNumbers(self.device, self.array.values, self.present, self.name)
        return DeviceNumbers(self.device, self.array.values, _MACHINE_TYPES.get(self.array.dtype, _INT64))

    @cached_property
    def present(self) -> Picking | None:
        mask = self.array.mask
        if self.array.dtype.kind not in "mM" or self.kind is not None:
            return mask
        known = self.array.values != _NOT_A_TIME
        if not any_set(~known):
            return mask
        return DeviceFlags(self.device, known if mask is None else known & (mask.load(0, len(self)) != 0))

    def to_arrow(self) -> pa.Array:
        mask = self.array.mask
        return self._on_host(self.array.values, None if mask is None else mask.load(0, len(self)))

    def take(self, rows: pa.Array) -> pa.Array:
        places = _places(self.device, rows)
        mask = self.array.mask
        return _with_nulls(self._on_host(self.array.values[places], None if mask is None else mask.at(places)), rows)

    def _on_host(self, values: Array, present: Array | None) -> pa.Array:
        host = self.device.download(values)
        nulls = None if present is None else self.device.download(present) == 0
        if self.kind is not None:
            return pa.array(host, mask=nulls, from_pandas=False).view(self.kind)
        host = host.view(self.array.dtype)
        if self.array.dtype.kind in "mM":
            nulls = np.isnat(host) if nulls is None else nulls | np.isnat(host)
        # with a mask Arrow copies value by value
        return pa.array(host, self.type, mask=nulls if nulls is not None and nulls.any() else None, from_pandas=False)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceCodes:
    """A text column as dictionary codes (int32) on the device; NULL has the code ``len(values)``."""

    codes: Array
    values: pa.Array


@dataclass(frozen=True, eq=False)
class ResidentText:
    """A column of text on a device.

    `encode` computes its codes. `gather` downloads the text of some rows; None if there are only
    codes.
    """

    device: Device
    type: pa.DataType
    rows: int
    nbytes: int
    encode: Callable[[], DeviceCodes]
    gather: Callable[[Array], pa.Array] | None

    def __len__(self) -> int:
        return self.rows

    @cached_property
    def encoded(self) -> DeviceCodes:
        """Return the codes, made on first use."""
        return self.encode()

    @cached_property
    def present(self) -> Input | None:
        known = self.encoded.codes != len(self.encoded.values)
        return DeviceFlags(self.device, known) if any_set(~known) else None

    def to_arrow(self) -> pa.Array:
        return self._dictionary(self.encoded.codes)

    def codes_at(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """Return the codes of some rows on the host."""
        return self.device.download(self.encoded.codes[self.device.upload(rows)])

    def take(self, rows: pa.Array) -> pa.Array:
        places = _places(self.device, rows)
        picked = self._dictionary(self.encoded.codes[places]) if self.gather is None else self.gather(places)
        return _with_nulls(picked.cast(self.type), rows)

    def _dictionary(self, codes: Array) -> pa.Array:
        indices = self.device.download(codes)
        return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices == len(self.encoded.values)), self.encoded.values)


def _places(device: Device, rows: pa.Array) -> Array:
    """Return row numbers on the device; 0 in place of NULL."""
    return device.upload(pc.fill_null(rows, 0).to_numpy().astype(np.int64))


def _with_nulls(picked: pa.Array, rows: pa.Array) -> pa.Array:
    """Return `picked`, but NULL where `rows` are."""
    if not rows.null_count:
        return picked
    places: npt.NDArray[np.int64] = np.arange(len(rows))
    return picked.take(pa.array(places, mask=rows.is_null().to_numpy(zero_copy_only=False)))


AnyColumn: TypeAlias = "ResidentColumn | pa.ChunkedArray"


@dataclass(frozen=True, eq=False)
class ResidentTable:
    """A table on a device; some of its columns may be Arrow's, on the host."""

    device: Device
    columns: Mapping[str, AnyColumn]

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, column.type) for name, column in self.columns.items()])

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def column(self, place: int) -> AnyColumn:
        """Return a column by its place in the schema."""
        return self.columns[self.schema.names[place]]

    def append_column(self, name: str, column: AnyColumn) -> ResidentTable:
        """Return the table with a column behind the others."""
        return ResidentTable(self.device, {**self.columns, name: column})

    def to_arrow(self) -> pa.Table:
        """Return the whole table on the host."""
        host = [column if isinstance(column, pa.ChunkedArray) else column.to_arrow() for column in self.columns.values()]
        return pa.table(host, names=self.schema.names).cast(self.schema)
