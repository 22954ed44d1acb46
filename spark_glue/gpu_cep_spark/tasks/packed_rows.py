"""Pack rows that Spark carries unchanged from one Python stage to another, since it converts each row in turn, and packed ones at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from gpu_cep_spark.tasks.results import as_promised, in_batches

# The columns behind a row's own: a number that spreads packed rows over tasks, and the rows as bytes. One of them is NULL in each row.
PACKED = 2
# The bytes of rows that are packed together: so few that several tasks share the rows where they are worth it.
TOGETHER = 1 << 20
_NAMES = ("spread", "packed")


def add_packed_columns(schema: StructType) -> StructType:
    """Return `schema` with the columns of packed rows behind; all columns may be NULL."""
    taken, suffix = {name.lower() for name in schema.names}, ""
    while taken & {name + suffix for name in _NAMES}:
        suffix += "_"
    own = [StructField(field.name, field.dataType, True, field.metadata) for field in schema.fields]
    return StructType([*own, *map(StructField, (name + suffix for name in _NAMES), (LongType(), BinaryType()))])


def pack_settled(found: Iterable[pa.RecordBatch], schema: pa.Schema, ends: int, task: int) -> Iterator[pa.Table]:
    """Yield the rows of matches in `schema`, those packed whose last column is NULL.

    Parameters
    ----------
    found
        The rows without the columns of packed rows.
    schema
        Their schema with these columns.
    ends
        The number of their last columns that packed rows lack.
    task
        The number of the task, so that packed rows of different ones are spread apart.
    """
    number = task << 32
    for rows in found:
        settled = rows.column(rows.num_columns - 1).is_null()
        plain = rows.filter(pc.invert(settled))
        yield pa.Table.from_arrays([*plain.columns, *(pa.nulls(len(plain), kind) for kind in schema.types[-PACKED:])], schema=schema)
        shown = pa.Table.from_batches([rows.filter(settled).select(range(rows.num_columns - ends))])
        for part in in_batches(shown, TOGETHER):
            nothing = [pa.nulls(1, kind) for kind in schema.types[:-PACKED]]
            yield pa.Table.from_arrays([*nothing, pa.array([number]), pa.array([pack(part)], pa.binary())], schema=schema)
            number += 1


def pack(rows: pa.Table) -> bytes:
    """Return rows as bytes that tell their schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def unpack(rows: pa.RecordBatch, ends: int) -> tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]:
    """Return the rows that were not packed, without the columns of packed ones, and those that were.

    The former have so many more columns at their `ends`.
    """
    packed = rows.column(rows.num_columns - 1)
    plain = rows.filter(packed.is_null()).select(range(rows.num_columns - PACKED))
    # Spark calls columns otherwise meanwhile
    shown = pa.schema(list(plain.schema)[: plain.num_columns - ends])
    return plain, (as_promised(pa.ipc.open_stream(part.as_buffer()).read_all(), shown) for part in packed.drop_null())
