"""A stand-in for cuDF with what gpu_cep uses of its documented interface, over Arrow arrays and on the device at hand."""

from __future__ import annotations

import types

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.gpu.foreign import Foreign, bits

OBJECT = np.dtype(object)


class StringDtype:
    """The type of text: pandas' own since cuDF 26, NumPy's object before."""

    def __repr__(self):
        return "str"


class CategoricalDtype:
    def __init__(self, categories, ordered):
        self.categories = categories
        self.ordered = ordered

    def __repr__(self):
        return "category"


class DatetimeTZDtype:
    def __repr__(self):
        return "datetime64[us, UTC]"


def dtype_of(arrow, text):
    if pa.types.is_string(arrow):
        return text
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        return DatetimeTZDtype()
    return np.dtype(arrow.to_pandas_dtype())


class Index:
    def __init__(self, array, text):
        self.dtype = dtype_of(array.type, text)
        self._array = array

    def to_arrow(self):
        # where all are NULL, cuDF gives text no type
        return pa.nulls(len(self._array)) if self._array.null_count == len(self._array) else self._array


class Categorical:
    def __init__(self, device, array, text, masked):
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        indices = pc.fill_null(array.indices, 0 if masked else -1).to_numpy()
        self.codes = Foreign(device, indices.astype(np.int8), bits(device, valid) if masked and array.null_count else None)
        self.categories = Index(array.dictionary, text)


class Series(Index):
    def __init__(self, device, array, text=OBJECT, masked=True):
        self._device = device
        self._array = array
        if pa.types.is_dictionary(array.type):
            self.cat = Categorical(device, array, text, masked)
            self.dtype = CategoricalDtype(self.cat.categories, array.type.ordered)
        else:
            self.dtype = dtype_of(array.type, text)
        self.taken = []
        self.downloads = 0

    def __len__(self):
        return len(self._array)

    def memory_usage(self, index=True, deep=False):
        return self._array.nbytes

    def factorize(self, sort=False, use_na_sentinel=True):
        encoded = self._array.dictionary_encode()
        codes = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
        return (codes if self._device.simulated else self._device.upload(codes)), Index(encoded.dictionary, self.dtype)

    def take(self, indices, axis=0):
        rows = self._device.download(indices)
        self.taken.append(len(rows))
        return Index(self._array.take(pa.array(rows)), self.dtype)

    def to_arrow(self):
        self.downloads += 1
        return super().to_arrow()

    def _interface(self):
        if not isinstance(self.dtype, np.dtype) or self.dtype is OBJECT:
            raise NotImplementedError("not supported via __cuda_array_interface__")
        valid = self._array.is_valid().to_numpy(zero_copy_only=False)
        filled = pc.if_else(self._array.is_valid(), self._array, pa.scalar(1, pa.int64()).cast(self._array.type))
        values = filled.to_numpy(zero_copy_only=False).astype(self.dtype, copy=False)
        self._held = Foreign(self._device, values, bits(self._device, valid) if self._array.null_count else None)
        return self._held.interface

    @property
    def __cuda_array_interface__(self):
        return self._interface()

    @property
    def __array_interface__(self):
        return self._interface()


class DataFrame:
    def __init__(self, series):
        self.series = series

    @property
    def columns(self):
        return list(self.series)

    def __getitem__(self, name):
        return self.series[name]

    def to_arrow(self, preserve_index=None):
        assert preserve_index is False
        return pa.table({name: series._array for name, series in self.series.items()})

    @classmethod
    def from_arrow(cls, table):
        made = cls({})
        made.table = table
        return made


def frame(device, table, text=OBJECT, masked=True):
    """A table on the device; `text` is the type of its strings, `masked` whether NULL categories are masked, not −1."""
    return DataFrame({name: Series(device, table[name].combine_chunks(), text, masked) for name in table.schema.names})


def module():
    """What ``import cudf`` gives."""
    found = types.ModuleType("cudf")
    found.DataFrame, found.Series, found.CategoricalDtype = DataFrame, Series, CategoricalDtype
    found.api = types.SimpleNamespace(types=types.SimpleNamespace(is_string_dtype=is_string_dtype))
    return found


def is_string_dtype(dtype):
    return dtype is OBJECT or isinstance(dtype, StringDtype)
