"""Number the matches of one stream that is cut into slices: rows are packed, and sent to tasks that know how many matches are before.

Each task that matches slices tells all tasks that number matches how many its slices have. These notes are few, so that no
task gets the rows of all matches, and no slice is matched twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, StructField, StructType

from gpu_cep.engine.events.matches import Indices
from gpu_cep_spark.tasks.packed_rows import TOGETHER, pack
from gpu_cep_spark.tasks.results import as_promised, in_batches

TO, IS_ROWS, PACKED = "to", "is_rows", "packed"
# The task that gets it, whether it is rows and no note, and what it is.
SENT = StructType([StructField(TO, IntegerType()), StructField(IS_ROWS, BooleanType()), StructField(PACKED, BinaryType())])
_SENT = pa.schema({TO: pa.int32(), IS_ROWS: pa.bool_(), PACKED: pa.binary()})


@dataclass(frozen=True, slots=True)
class Numbering:
    """How matches are numbered.

    Parameters
    ----------
    rows
        The schema of the rows that slices give, whose matches are numbered from 0 in each slice.
    slices, matches
        The columns of these that hold the number of the slice, and of the match in it.
    tasks
        The number of tasks that number them.
    """

    rows: pa.Schema
    slices: int
    matches: int
    tasks: int


class _Counts(NamedTuple):
    """The numbers of slices, in order, and how many matches each has, or all before it."""

    slices: Indices
    matches: Indices


def pack_rows(how: Numbering, found: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Give the rows of matches packed, those of a slice for one task, and behind them a note for each task.

    The rows of a slice are in the order of its matches, and no other call has rows of it.
    """
    counted = []
    for table in found:
        rows = as_promised(table, how.rows)
        slices = _values(rows, how.slices)
        counted.append(_count(slices, _values(rows, how.matches)))
        for task, own in _by_task(rows, slices % how.tasks):
            yield from (_sent(task, part, is_rows=True) for part in in_batches(own, TOGETHER))
    if counted:
        note = pa.table(_most(counted)._asdict())
        yield from (_sent(task, note, is_rows=False) for task in range(how.tasks))


def _by_task(rows: pa.RecordBatch, tasks: Indices) -> Iterator[tuple[int, pa.Table]]:
    """Give the rows of each task, which keep their order."""
    order = np.argsort(tasks, kind="stable")
    sorted_rows = pa.Table.from_batches([rows.take(pa.array(order))])
    firsts = np.flatnonzero(np.diff(tasks[order], prepend=-1))
    for begin, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(order)], strict=True):
        yield int(tasks[order[begin]]), sorted_rows.slice(begin, end - begin)


def _count(slices: Indices, matches: Indices) -> _Counts:
    """Return for each slice the number behind its last match."""
    lasts = np.flatnonzero(np.diff(slices, append=slices[-1:] - 1))
    return _Counts(slices[lasts], matches[lasts] + 1)


def _most(counted: list[_Counts]) -> _Counts:
    """Return the largest count of each slice."""
    slices, matches = (np.concatenate(each) for each in zip(*counted, strict=True))
    order = np.lexsort((matches, slices))
    lasts = order[np.diff(slices[order], append=slices[order[-1:]] + 1) != 0]
    return _Counts(slices[lasts], matches[lasts])


def _sent(task: int, what: pa.Table, *, is_rows: bool) -> pa.Table:
    return pa.table([[task], [is_rows], [pack(what)]], schema=_SENT)


def number_rows(how: Numbering, shown: tuple[int, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the columns `shown` of rows that were packed, their matches numbered through all slices.

    The notes of all tasks come before the rows.
    """
    notes: list[pa.Table] = []
    before: _Counts | None = None
    for batch in batches:
        for is_rows, packed in zip(batch.column(IS_ROWS).to_pylist(), batch.column(PACKED), strict=True):
            table = pa.ipc.open_stream(packed.as_buffer()).read_all()
            if is_rows:
                before = before or _count_before(notes)
                yield _number(how, table, before).select(shown)
            else:
                notes.append(table)


def _count_before(notes: list[pa.Table]) -> _Counts:
    """Return for each slice how many matches all slices before it have."""
    slices, matches = (column.to_numpy() for column in pa.concat_tables(notes).columns)
    order = np.argsort(slices)
    through = np.cumsum(matches[order])
    return _Counts(slices[order], through - matches[order])


def _number(how: Numbering, table: pa.Table, before: _Counts) -> pa.RecordBatch:
    rows = as_promised(table, how.rows)
    numbers = before.matches[np.searchsorted(before.slices, _values(rows, how.slices))] + _values(rows, how.matches)
    return rows.set_column(how.matches, how.rows.field(how.matches), pa.array(numbers))


def _values(rows: pa.RecordBatch, column: int) -> Indices:
    values: Indices = rows.column(column).to_numpy()
    return values
