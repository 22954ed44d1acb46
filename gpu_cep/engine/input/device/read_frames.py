"""Read tables that lie on a device: cudf DataFrames, and arrays by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from gpu_cep.engine.input.device.cudf import is_series, open_series
from gpu_cep.engine.input.device.foreign_arrays import is_array, open_array
from gpu_cep.engine.input.device.resident import AnyColumn, ResidentNumbers, ResidentTable
from gpu_cep.engine.input.encodings import decode_table
from gpu_cep.errors import EngineUnavailable, EventError
from gpu_cep_kernels.compile.jit import simulated
from gpu_cep_kernels.device.interface import Device, DeviceUnavailable
from gpu_cep_kernels.device.selection import open_device


def read_frame(frame: Any) -> ResidentTable | pa.Table:
    """Return a cudf.DataFrame as a table on the device; on the host if kernels cannot run on the device."""
    try:
        device = open_device()
    except DeviceUnavailable:
        return decode_table(frame.to_arrow(preserve_index=False))
    return _table(device, {name: open_series(device, frame[name], name) for name in _names(frame.columns)})


def are_arrays(events: Any) -> bool:
    """Return whether `events` are columns by name, some of them on a device."""
    return isinstance(events, Mapping) and any(_is_on_device(column) for column in events.values())


def read_arrays(arrays: Mapping[Any, Any]) -> ResidentTable:
    """Return columns, given by name, as a table.

    Arrays on the device and cudf Series are not copied. Arrow's arrays among them stay on the host.

    Raises
    ------
    EventError
        The columns are not of one length, or one of them cannot be read.
    EngineUnavailable
        The arrays are said to be on a device, but there is none.
    """
    names = _names(arrays)
    try:
        device = open_device()
    except DeviceUnavailable as fault:
        raise EngineUnavailable(f"events: arrays on a device cannot be read here: {fault}") from fault
    return _table(device, {name: _column(device, arrays[name], name) for name in names})


def _names(names: Any) -> list[str]:
    """Return the names of columns; raise EventError if one is not text."""
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise EventError(f"events: the name of a column must be text, not {wrong[0]!r}")
    return list(names)


def _column(device: Device, column: Any, name: str) -> AnyColumn:
    """Return a column on the device or, if it is Arrow's, on the host."""
    if is_series(column):
        return open_series(device, column, name)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return decode_table(pa.table({name: column})).column(0)
    if is_array(device, column):
        return ResidentNumbers(device, name, open_array(device, column, name))
    raise EventError(
        f"column {name!r}: cannot read {type(column).__name__}; expected an array on the device (__cuda_array_interface__), "
        "a cudf Series or an Arrow array; pyarrow.table(…) takes arrays on the host"
    )


def _is_on_device(column: Any) -> bool:
    # a cudf Series of text has no array interface
    """Return whether a column lies on a device."""
    return is_series(column) or hasattr(column, "__cuda_array_interface__") or (simulated() and hasattr(column, "__array_interface__"))


def _table(device: Device, columns: Mapping[str, AnyColumn]) -> ResidentTable:
    """Return the columns as a table; raise EventError if they differ in length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise EventError(f"events: columns of different lengths: {', '.join(f'{name} {length:,}' for name, length in lengths.items())}")
    return ResidentTable(device, columns)
