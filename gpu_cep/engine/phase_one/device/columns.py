"""Hold the columns of an event table as inputs of a device.

Arrow's buffers are copied to the device as they are, and converted there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.buffers import buffer_values
from gpu_cep.engine.input.device.resident import ResidentNumbers, ResidentText
from gpu_cep.engine.input.device.uploads import DeviceNumbers, DType, Filled, HostBits, HostBlocks, HostNumbers, Input, LookedUp, Repeated
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import is_opaque, machine_values, native_values
from gpu_cep.engine.lowering.text_predicates import Values, constant_codes
from gpu_cep.plan.event_plan import CodeProperty
from gpu_cep_kernels.device.interface import Device, write_block

_INT32, _INT64, _FLOAT32, _FLOAT64 = (np.dtype(kind) for kind in (np.int32, np.int64, np.float32, np.float64))
_UINT8, _UINT16 = np.dtype(np.uint8), np.dtype(np.uint16)

# What a buffer of each Arrow type holds, and the machine representation of that.
_STORED: dict[pa.DataType, tuple[Any, DType]] = {
    pa.int8(): (np.int8, _INT64),
    pa.int16(): (np.int16, _INT64),
    pa.int32(): (np.int32, _INT32),
    pa.int64(): (np.int64, _INT64),
    pa.uint8(): (np.uint8, _INT64),
    pa.uint16(): (np.uint16, _INT64),
    pa.uint32(): (np.uint32, _INT64),
    pa.float16(): (np.float16, _FLOAT64),
    pa.float32(): (np.float32, _FLOAT32),
    pa.float64(): (np.float64, _FLOAT64),
    pa.date32(): (np.int32, _INT32),
}


@dataclass
class DeviceColumns:
    """The columns that a query reads, by number, as inputs of `device`.

    `columns` is the host's view of the same table. All loads of an input may share a table on the
    device. The table is made, in the caller's lane, when the input is first asked for.
    """

    columns: EventColumns
    device: Device
    _values: dict[int, Input] = field(default_factory=dict)
    _present: dict[int, Input | None] = field(default_factory=dict)
    _codes: dict[int, Input] = field(default_factory=dict)

    def values(self, column: int) -> Input:
        """Return the column in its machine representation, as :meth:`EventColumns.values`.

        Values at NULLs are arbitrary.
        """
        if column not in self._values:
            self._values[column] = self._number_input(column)
        return self._values[column]

    def present(self, column: int) -> Input | None:
        """Return uint8, 0 where the column is NULL; None if it never is."""
        if column not in self._present:
            resident = self.columns.resident(column)
            self._present[column] = presence(self.device, self.columns.arrow(column)) if resident is None else resident.present
        return self._present[column]

    def text_codes(self, column: int) -> Input:
        """Return the codes (int32) of a text column for :meth:`TextColumns.values`.

        NULL has the code after the last value's.
        """
        if column not in self._codes:
            self._codes[column] = self._code_input(column)
        return self._codes[column]

    def label_codes(self, planned: CodeProperty) -> tuple[Input, Values]:
        """Return codes for the values of a text column, and the values that the codes stand for.

        If all predicates compare with constants, values other than these may share one code. Codes are of
        the narrowest type that has one for NULL, too.
        """
        if self.columns.resident(planned.column) is None:
            codes = constant_codes(self.columns.arrow(planned.column), planned.predicates)
            if codes is not None:
                found, values = codes
                return HostBlocks(found.write, _code_type(len(values) + 1)), values
        values = self.columns.texts.values(planned.column)
        codes_of_values = self._narrow_codes(planned.column, _code_type(len(values) + 1))
        return codes_of_values or self.text_codes(planned.column), values

    def _narrow_codes(self, column: int, kind: DType) -> Input | None:
        """Return the column's codes as `kind`; None if they lie on the device, or are mapped to those of a shared dictionary."""
        if self.columns.resident(column) is not None or kind == _INT32:
            return None
        if not pa.types.is_dictionary(self.columns.arrow(column).type):
            return HostNumbers(self.device, self.columns.texts.codes(column).codes, kind)
        return self._own_codes(column, kind) if self.columns.texts.shared_places(column) is None else None

    @property
    def tables(self) -> int:
        """Return the bytes of the device's memory that the inputs' shared tables take."""
        return sum(int(codes.table.nbytes) for codes in self._codes.values() if isinstance(codes, LookedUp))

    def row_bytes(self, column: int) -> int:
        """Return the bytes of device memory per row that the column and its NULLs take when loaded."""
        present = self.present(column)
        return self._value_bytes(column) + (0 if present is None else present.row_bytes)

    def _value_bytes(self, column: int) -> int:
        textual = self.columns.type(column).kind is Kind.STRING
        if textual and self.columns.resident(column) is None and not pa.types.is_dictionary(self.columns.arrow(column).type):
            # known before all of it is encoded, which a property may not need
            return _INT32.itemsize
        return self.values(column).row_bytes

    def _number_input(self, column: int) -> Input:
        data_type = self.columns.type(column)
        if data_type.kind is Kind.STRING:
            return self.text_codes(column)
        if is_opaque(data_type):
            return Repeated(self.device, 0, _INT64)
        resident = self.columns.resident(column)
        if isinstance(resident, ResidentNumbers):
            return resident.values
        return numbers(self.device, self.columns.arrow(column), self.columns.name(column))

    def _code_input(self, column: int) -> Input:
        codes = self._own_codes(column)
        if codes is None:
            return HostNumbers(self.device, self.columns.texts.codes(column).codes, _INT32)
        places = self.columns.texts.shared_places(column)
        return codes if places is None else LookedUp(codes, self.device.upload(places))

    def _own_codes(self, column: int, kind: DType = _INT32) -> Input | None:
        """Return the codes for the column's own dictionary, on the host as `kind`; None if it has none."""
        resident = self.columns.resident(column)
        if isinstance(resident, ResidentText):
            return DeviceNumbers(self.device, resident.encoded.codes, _INT32)
        array = self.columns.arrow(column)
        if not pa.types.is_dictionary(array.type):
            return None
        indices = HostNumbers(self.device, native_values(array.indices, str(array.type.index_type)), kind)
        present = self.present(column)
        return indices if present is None else Filled(self.device, indices, present, len(array.dictionary))


def _code_type(count: int) -> DType:
    """Return the narrowest type of so many codes."""
    return next((kind for kind in (_UINT8, _UINT16) if count <= 1 << 8 * kind.itemsize), _INT32)


def numbers(device: Device, array: pa.Array, name: str) -> Input:
    """Return an Arrow array that is not text as an input of machine values.

    The values are those of :func:`gpu_cep.engine.input.machine_values.machine_values`.
    """
    arrow = array.type
    if pa.types.is_null(arrow):
        return Repeated(device, 0, _INT64)
    if pa.types.is_boolean(arrow):
        return HostBits(device, buffer_values(array.buffers()[1], np.uint8), array.offset, _INT32)
    if pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow):
        return HostNumbers(device, native_values(array, np.int64), _INT64)
    if arrow in _STORED:
        stored, kind = _STORED[arrow]
        return HostNumbers(device, native_values(array, stored), kind)
    # decimals, dates in milliseconds, and integers that may not fit
    kind = _INT32 if pa.types.is_date64(arrow) else _INT64
    return HostBlocks(write_block(lambda low, high: machine_values(array.slice(low, high - low), name)), kind)


def presence(device: Device, array: pa.Array) -> Input | None:
    """Return uint8, 0 where an Arrow array is NULL; None if it never is."""
    if array.null_count == 0:
        return None
    validity = array.buffers()[0]
    if validity is not None:
        return HostBits(device, buffer_values(validity, np.uint8), array.offset, _UINT8)
    return HostBlocks(write_block(lambda low, high: _validity(array.slice(low, high - low))), _UINT8)


def _validity(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return where the array is not NULL, as uint8."""
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid.view(np.uint8)
