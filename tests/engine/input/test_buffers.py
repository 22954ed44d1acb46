"""Arrays over Arrow's buffers: the same types whoever made them, and no values that are not there."""

from __future__ import annotations

import gc
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.input.buffers import buffer_values
from gpu_cep.engine.input.machine_values import machine_values
from gpu_cep_kernels.compile.jit import Kernel

COLUMNS = {"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"], "x": [1.5, 0.5, 2.5, 3.5], "k": [7, 7, 8, 8]}
PRICES = [Decimal("1.10"), Decimal("2.20")]


def by_message(table):
    """The table as it is read from a message, which lies in memory that is not Arrow's own."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue().to_pybytes()).read_all()


def arrays(value):
    """All arrays among a kernel's arguments."""
    if isinstance(value, tuple):
        return [array for part in value for array in arrays(part)]
    return [value] if isinstance(value, np.ndarray) else []


TABLES = {
    "lists": lambda: pa.table(COLUMNS),
    "numpy": lambda: pa.table({name: np.array(values) for name, values in COLUMNS.items()}),
    "pandas": lambda: pa.Table.from_pandas(pd.DataFrame(COLUMNS), preserve_index=False),
    "polars": lambda: pl.DataFrame(COLUMNS).to_arrow(),
    "duckdb": lambda: duckdb.from_arrow(pa.table(COLUMNS)).to_arrow_table(),
    "message": lambda: by_message(pa.table(COLUMNS)),
}


@pytest.mark.parametrize("source", TABLES)
def test_kernels_are_compiled_for_one_type_of_array(source, monkeypatch):
    """Whatever reaches a kernel may be written to as far as it says, so that no kernel is compiled anew for one source."""
    read_only = []
    call = Kernel.__call__

    def spied(kernel, *args, **options):
        read_only.extend(kernel.__name__ for array in arrays(args) if not array.flags.writeable)
        return call(kernel, *args, **options)

    monkeypatch.setattr(Kernel, "__call__", spied)
    queries = (
        "PATTERN SEQ(A a, B b) WHERE a.x < b.x",
        "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x < b.x AND a.k = b.k }",
        "DEFINE A AS x > 1, B AS type = 'B' PATTERN A meets B WITHIN 9",
        "PATTERN SEQ(a, b) WHERE a.type LIKE 'A%' AND b.type = 'B'",
        "PARTITION BY k PATTERN SEQ(a, b) WHERE a.x > 1 AND b.type = 'B' WITHIN 9",
    )
    found = [cep.match(TABLES[source](), query, timestamp="ts").num_rows for query in queries]
    assert found == [2, 1, 1, 2, 2]
    assert read_only == []


@pytest.mark.parametrize("rows", [1, 2])
def test_decimals_are_of_that_type_too(rows):
    values = machine_values(by_message(pa.table({"price": PRICES[:rows]})).column("price").chunk(0), "price")
    assert values.tolist() == [110, 220][:rows]
    assert values.flags.writeable


def test_values_outlive_their_table():
    kept = [(column, machine_values(make().column(column).chunk(0), column)) for make in TABLES.values() for column in ("ts", "x", "k")]
    gc.collect()
    for column, values in kept:
        assert values.tolist() == COLUMNS[column]


def test_parts_of_buffers():
    buffer = pa.py_buffer(np.arange(6, dtype=np.int32))
    assert buffer_values(buffer, np.int32).tolist() == [0, 1, 2, 3, 4, 5]
    assert buffer_values(buffer, np.int32, 2, 3).tolist() == [3, 4]
    assert buffer_values(buffer, np.int32, first=4).tolist() == [4, 5]
    for held, count, first in ((None, None, 0), (None, 0, 3), (buffer, 0, 6), (buffer, None, 6)):
        assert buffer_values(held, np.int32, count, first).tolist() == []
    assert buffer_values(pa.py_buffer(b"x" + bytes(range(16))).slice(1), np.int64).flags.aligned
    for held, count, first in ((buffer, 2, 5), (buffer, 7, 0), (buffer, 1, -1), (None, 3, 0), (pa.py_buffer(b""), 3, 0)):
        with pytest.raises(ValueError, match=r"are not in a buffer of (24|0) bytes"):
            buffer_values(held, np.int32, count, first)
