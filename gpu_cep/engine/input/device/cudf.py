"""Read cuDF's DataFrames as events, and return results as such; no other file imports cudf.

It uses documented functions of cuDF only, and reads numbers by the CUDA array interface. It has
been tested against cuDF's own signatures and against a stand-in: until it has run on a card it is
unproven.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_cep.engine.input.device.foreign_arrays import ForeignArray, open_bits, open_values
from gpu_cep.engine.input.device.resident import DeviceCodes, ResidentColumn, ResidentNumbers, ResidentText
from gpu_cep.errors import EngineUnavailable, EventError
from gpu_cep_kernels.device.interface import Array, Device, DeviceUnavailable
from gpu_cep_kernels.device.selection import open_device


def is_frame(events: Any) -> bool:
    """Return whether `events` is a cudf.DataFrame."""
    cudf = sys.modules.get("cudf")
    return cudf is not None and isinstance(events, cudf.DataFrame)


def is_series(column: Any) -> bool:
    """Return whether `column` is a cudf.Series."""
    cudf = sys.modules.get("cudf")
    return cudf is not None and isinstance(column, cudf.Series)


def load_row_groups(paths: Sequence[str], groups: Sequence[Sequence[int]], columns: Sequence[str]) -> Any:
    """Return columns of row groups of Parquet files as a cudf.DataFrame: of each file those with these numbers, in this order."""
    import cudf
    import pylibcudf

    parquet = pylibcudf.io.parquet
    # cudf.read_parquet would make an index of what pandas had as one
    builder = parquet.ParquetReaderOptions.builder(pylibcudf.io.SourceInfo(list(paths)))
    # files may differ in columns that are not read
    options = builder.use_pandas_metadata(False).allow_mismatched_pq_schemas(True).build()
    options.set_row_groups([list(own) for own in groups])
    options.set_column_names(list(columns))
    return cudf.DataFrame.from_pylibcudf(parquet.read_parquet(options))


def open_series(device: Device, series: Any, name: str, kind: pa.DataType | None = None) -> ResidentColumn:
    """Return a cudf.Series as a column on the device; numbers are not copied.

    Text is encoded on the card when its codes are first asked for. The column has the Arrow type
    `kind` (None: that which its own type stands for).

    Raises
    ------
    EventError
        It is of a type that columns on a device cannot have, or of another than `kind`.
    """
    import cudf

    if isinstance(series.dtype, cudf.CategoricalDtype) and cudf.api.types.is_string_dtype(series.cat.categories.dtype):
        values = _text(series.cat.categories)
        return ResidentText(
            device=device,
            type=pa.dictionary(pa.int32(), pa.string(), bool(series.dtype.ordered)),
            rows=len(series),
            nbytes=int(series.memory_usage(index=False)),
            encode=lambda: _categories(device, series, values, name),
            gather=None,
        )
    if _is_numeric(series.dtype):
        numbers = _numbers(device, series, name)
        if kind is not None and pa.from_numpy_dtype(numbers.dtype) != _without_zone(kind):
            raise EventError(f"column {name!r}: cuDF read {numbers.dtype}, where the files have {kind}")
        return ResidentNumbers(device, name, numbers, kind)
    if not isinstance(series.dtype, cudf.CategoricalDtype) and cudf.api.types.is_string_dtype(series.dtype):
        return ResidentText(
            device=device,
            type=kind or pa.string(),
            rows=len(series),
            nbytes=int(series.memory_usage(index=False)),
            encode=lambda: _factorize(device, series),
            gather=lambda rows: _text(series.take(rows)),
        )
    raise EventError(
        f"column {name!r}: a cudf column of {series.dtype} cannot be read on the device; supported are bool, integers, floats, "
        "datetime64, timedelta64, text and categories of text; events.to_arrow() brings the table to the host"
    )


def require_cudf(what: str = "result='cudf'") -> Any:
    """Return the module cudf, which `what` needs.

    Raises
    ------
    EngineUnavailable
        There is no device, or no cudf; the message says why.
    """
    try:
        open_device()
        import cudf
    except DeviceUnavailable as fault:
        raise EngineUnavailable(f"{what} is not available: {fault}") from fault
    except ImportError as fault:
        raise EngineUnavailable(f"{what} is not available: {fault} (pip install 'gpu_cep[rapids]')") from fault
    return cudf


def to_cudf(table: pa.Table) -> Any:
    """Return an Arrow table as a cudf.DataFrame.

    Raises
    ------
    EngineUnavailable
        There is no device, or no cudf; the message says why.
    """
    return require_cudf().DataFrame.from_arrow(table)


def _text(strings: Any) -> pa.Array:
    """Return the strings of a Series or Index on the host; if all are NULL, cuDF gives them no type."""
    return strings.to_arrow().cast(pa.string())


def _factorize(device: Device, series: Any) -> DeviceCodes:
    """Return codes in cuDF's order; NULL is −1 among cuDF's."""
    codes, distinct = series.factorize()
    values = _text(distinct)
    return DeviceCodes(_fill_nulls(device, device.xp.asarray(codes), len(values)), values)


def _without_zone(kind: pa.DataType) -> pa.DataType:
    """Return the type of the numbers in a column of type `kind`: NumPy's times have no zone."""
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _is_numeric(dtype: Any) -> bool:
    """Return whether a column has numbers or times that NumPy has, with or without pandas' masks."""
    # NumPy has no zone and no decimals, which Arrow's types may have
    plain = None if hasattr(dtype, "pyarrow_dtype") else getattr(dtype, "numpy_dtype", dtype)
    return isinstance(plain, np.dtype) and plain.kind in "biufmM"


def _numbers(device: Device, series: Any, name: str) -> ForeignArray:
    """Return the numbers of a Series, with its NULLs."""
    opened, (column, _) = open_values(device, series, name), series.to_pylibcudf()
    bitmap = column.null_mask()
    # the array interface describes the bitmap as bytes, without the offset that a slice of a column has
    return opened if bitmap is None else replace(opened, mask=open_bits(device, bitmap, column.offset(), len(series)))


def _categories(device: Device, series: Any, values: pa.Array, name: str) -> DeviceCodes:
    """Return the codes of a categorical column.

    Its NULLs are masked, have the code −1, or both.
    """
    opened = _numbers(device, series.cat.codes, name)
    codes = _fill_nulls(device, opened.values, len(values))
    if opened.mask is not None:
        codes = device.xp.where(opened.mask.load(0, len(codes)) != 0, codes, np.int32(len(values)))
    return DeviceCodes(codes, values)


def _fill_nulls(device: Device, codes: Array, null: int) -> Array:
    """Return codes as int32, those below 0 as the code of NULL."""
    narrow = codes.astype(np.int32)
    return device.xp.where(narrow < 0, np.int32(null), narrow)
