"""A stand-in for cuDF with what gpu_cep uses of its documented interface, over Arrow arrays and on the device at hand."""

from __future__ import annotations

import types

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from tests.gpu.foreign import Foreign

OBJECT = np.dtype(object)


class StringDtype:
    """The type of text: pandas' own since cuDF 26, NumPy's object before."""

    def __repr__(self):
        return "str"


class NullableDtype:
    """A type of pandas that has masks, as Int16."""

    def __init__(self, numpy_dtype):
        self.numpy_dtype = numpy_dtype


class OwnDtype:
    """A type of cuDF's own, for decimals, lists and structs."""

    def __init__(self, arrow):
        self._arrow = arrow

    def __repr__(self):
        return str(self._arrow)


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
    if pa.types.is_decimal(arrow) or pa.types.is_nested(arrow):
        return OwnDtype(arrow)
    plain = np.dtype(arrow.to_pandas_dtype())
    return NullableDtype(plain) if text is not OBJECT and plain.kind == "i" else plain


class Index:
    def __init__(self, array, text):
        self.dtype = dtype_of(array.type, text)
        self._array = array

    def to_arrow(self):
        # where all are NULL, cuDF gives text no type
        return pa.nulls(len(self._array)) if self._array.null_count == len(self._array) else self._array


class Column:
    """A column of pylibcudf: its bitmap is that of the column which it is a slice of, and has bytes up to a multiple of 64."""

    def __init__(self, device, array, offset):
        before = np.resize([False, True, True], offset)
        packed = np.packbits([*before, *array.is_valid().to_pylist()], bitorder="little")
        padded = np.concatenate([packed, np.full(-len(packed) % 64, 0xA5, np.uint8)])
        self._bitmap, self._offset = Foreign(device, padded) if array.null_count else None, offset

    def null_mask(self):
        return self._bitmap

    def offset(self):
        return self._offset


class Categorical:
    def __init__(self, device, array, text, masked, offset):
        indices = array.indices if masked else pc.fill_null(array.indices, -1)
        self.codes = Series(device, indices.cast(pa.int8()), offset=offset)
        self.categories = Index(array.dictionary, text)


class Series(Index):
    def __init__(self, device, array, text=OBJECT, masked=True, offset=0):
        self._device = device
        self._array = array
        self._offset = offset
        if pa.types.is_dictionary(array.type):
            self.cat = Categorical(device, array, text, masked, offset)
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
        dtype = getattr(self.dtype, "numpy_dtype", self.dtype)
        if not isinstance(dtype, np.dtype) or dtype is OBJECT:
            raise NotImplementedError("not supported via __cuda_array_interface__")
        filled = pc.if_else(self._array.is_valid(), self._array, pa.scalar(1, pa.int64()).cast(self._array.type))
        values = filled.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
        self._held = Foreign(self._device, values, self.to_pylibcudf()[0].null_mask())
        return self._held.interface

    def to_pylibcudf(self):
        return Column(self._device, self._array, self._offset), {}

    @property
    def __cuda_array_interface__(self):
        return self._interface()

    @property
    def __array_interface__(self):
        return self._interface()


class DataFrame:
    def __init__(self, series, table=None):
        self.series = series
        self.table = table

    @property
    def columns(self):
        return list(self.series)

    def __getitem__(self, name):
        return self.series[name]

    def to_arrow(self, preserve_index=None):
        assert preserve_index is False
        return pa.table({name: series._array for name, series in self.series.items()})

    @classmethod
    def from_pylibcudf(cls, table, metadata=None):
        return frame(table.device, table.table)

    @classmethod
    def from_arrow(cls, table):
        return cls({}, pa.table([column_from_arrow(column) for column in table.columns], table.schema.names))


def column_from_arrow(column):
    """A column as cuDF takes it: the codes of all chunks are those of all their distinct texts."""
    if not pa.types.is_dictionary(column.type):
        check_type(column.type)
        return column
    codes = pa.chunked_array([chunk.indices for chunk in column.chunks], column.type.index_type)
    texts = pc.unique(pa.chunked_array([chunk.dictionary for chunk in column.chunks], column.type.value_type))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes.combine_chunks(), texts, ordered=column.type.ordered)])


def check_type(kind):
    """Raise TypeError for a type that cuDF has none for, inside lists and structs, too."""
    for place in range(kind.num_fields):
        check_type(kind.field(place).type)
    nested = pa.types.is_list(kind) or pa.types.is_struct(kind)
    if not nested and (kind.num_fields or pa.types.is_dictionary(kind) or pa.types.is_time(kind) or pa.types.is_binary(kind)):
        raise TypeError(f"Unsupported type: {kind}")


def frame(device, table, text=OBJECT, masked=True, offset=0):
    """A table on the device; `text` is the type of its strings, `masked` whether NULL categories are masked, not −1.

    It is a slice of a longer table, from row `offset` on.
    """
    return DataFrame({name: Series(device, table[name].combine_chunks(), text, masked, offset) for name in table.schema.names})


def module():
    """What ``import cudf`` gives."""
    api = types.SimpleNamespace(types=types.SimpleNamespace(is_string_dtype=is_string_dtype))
    return module_of("cudf", DataFrame=DataFrame, Series=Series, CategoricalDtype=CategoricalDtype, api=api)


def module_of(name, **members):
    """A module with such members."""
    found = types.ModuleType(name)
    vars(found).update(members)
    return found


def is_string_dtype(dtype):
    return dtype is OBJECT or isinstance(dtype, StringDtype)


class ParquetReaderOptions:
    """What a reader of pylibcudf is to read."""

    def __init__(self, source, allows):
        self.source = source
        self.allows = allows

    @staticmethod
    def builder(source):
        return ParquetReaderOptionsBuilder(source)

    def set_row_groups(self, row_groups):
        self.row_groups = row_groups

    def set_column_names(self, col_names):
        self.col_names = col_names


class ParquetReaderOptionsBuilder:
    def __init__(self, source):
        self._source = source
        self._allows = False

    def allow_mismatched_pq_schemas(self, val):
        self._allows = val
        return self

    def use_pandas_metadata(self, val):
        assert not val
        return self

    def build(self):
        return ParquetReaderOptions(self._source, self._allows)


def pylibcudf_module(device, reads):
    """What ``import pylibcudf`` gives; `reads` receives the columns and row groups of each reading."""

    def read_parquet(options, stream=None, mr=None, parquet_metadatas=None):
        reads.append((options.col_names, options.row_groups))
        files = [parquet.ParquetFile(path) for path in options.source]
        check_schemas(files, options)
        sources = zip(files, options.row_groups, strict=True)
        parts = [file.read_row_groups(groups, options.col_names) for file, groups in sources]
        plain = [pa.table([column.cast(type_in_cudf(column.type)) for column in part.columns], part.column_names) for part in parts]
        return types.SimpleNamespace(device=device, table=pa.concat_tables(plain))

    reader = types.SimpleNamespace(ParquetReaderOptions=ParquetReaderOptions, read_parquet=read_parquet)
    return module_of("pylibcudf", io=types.SimpleNamespace(SourceInfo=list, parquet=reader))


def check_schemas(files, options):
    """Raise ValueError if files differ, or where that is allowed, in a column that is read, as libcudf does."""
    if not options.allows and not all(file.schema.equals(files[0].schema) for file in files):
        raise ValueError("All sources must have the same schema")
    for name in options.col_names:
        fields = [file.schema_arrow.field(name) for file in files]
        columns = [file.schema.column(file.schema_arrow.names.index(name)) for file in files]
        told = {(each.physical_type, each.converted_type, str(field.metadata)) for each, field in zip(columns, fields, strict=True)}
        if len(told) > 1:
            raise ValueError(f"Encountered mismatching data type or schema across the Parquet sources for column '{name}'")


def type_in_cudf(kind):
    """The type as which libcudf reads what Arrow reads as `kind`: it knows no zone, no day, and no dictionary of a file."""
    if pa.types.is_date32(kind):
        return pa.timestamp("s")
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    return pa.string() if pa.types.is_dictionary(kind) or pa.types.is_large_string(kind) else kind
