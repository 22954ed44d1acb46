"""Number the matches of one stream that is cut into slices: rows are packed, and sent to tasks that know how many matches are before.

Each task that has matches tells all tasks that number them which these are, in runs of successive numbers. Such notes are
short, so that no task gets the rows of all matches, and no slice is matched twice.
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
class NumberedRows:
    """How matches are numbered.

    Parameters
    ----------
    rows
        The schema of the rows that slices give, whose matches have ascending numbers in each slice.
    slices, matches
        The columns of these that hold the number of the slice, and of the match in it.
    tasks
        The number of tasks that number them.
    """

    rows: pa.Schema
    slices: int
    matches: int
    tasks: int


class _Runs(NamedTuple):
    """Matches of slices with successive numbers: the slice, the first number, and the one behind the last."""

    slices: Indices
    begins: Indices
    ends: Indices


class _Through(NamedTuple):
    """What numbers matches through: the slices in order, how far the numbers of two are apart here, and runs that do not touch.

    Of each run these are its first number here, and how many matches are in the runs before it.
    """

    slices: Indices
    apart: int
    begins: Indices
    before: Indices


def pack_rows(how: NumberedRows, found: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of matches packed, those of a slice for one task, and behind them a note for each task: which matches there are.

    The numbers of a slice's matches may have gaps; other calls may have rows of the same slices, also of the same matches.
    """
    seen = []
    for table in found:
        rows = as_promised(table, how.rows)
        slices, matches = _values(rows, how.slices), _values(rows, how.matches)
        seen.append(_runs(slices, matches))
        for task, own in _by_task(rows, slices % how.tasks):
            yield from (_sent(task, part, is_rows=True) for part in in_batches(own, TOGETHER))
    if seen:
        note = pa.table(_united(_joined(seen))._asdict())
        yield from (_sent(task, note, is_rows=False) for task in range(how.tasks))


def _by_task(rows: pa.RecordBatch, tasks: Indices) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each task that has some; they keep their order."""
    order = np.argsort(tasks, kind="stable")
    sorted_rows = pa.Table.from_batches([rows.take(pa.array(order))])
    firsts = np.flatnonzero(np.diff(tasks[order], prepend=-1))
    for begin, end in zip(firsts.tolist(), np.append(firsts[1:], len(order)).tolist(), strict=False):
        yield int(tasks[order[begin]]), sorted_rows.slice(begin, end - begin)


def _runs(slices: Indices, matches: Indices) -> _Runs:
    """Return the matches of rows in runs, which may touch."""
    steps = np.diff(matches)
    begins = np.concatenate([[True], (np.diff(slices) != 0) | (steps < 0) | (steps > 1)])[: len(slices)]
    firsts = np.flatnonzero(begins)
    return _Runs(slices[firsts], matches[firsts], matches[np.append(firsts[1:], len(slices))[: len(firsts)] - 1] + 1)


def _joined(runs: Iterable[_Runs]) -> _Runs:
    return _Runs(*map(np.concatenate, zip(*runs, strict=True)))


def _united(runs: _Runs) -> _Runs:
    """Return the same matches in runs that do not touch, in order."""
    order = np.lexsort((runs.begins, runs.slices))
    slices, begins, ends = (each[order] for each in runs)
    _, places = np.unique(slices, return_inverse=True)
    shifts = places * (int(ends.max(initial=0)) + 1)
    reached = np.maximum.accumulate(ends + shifts)
    firsts = np.flatnonzero(np.concatenate([[True], (begins + shifts)[1:] > reached[:-1]])[: len(slices)])
    lasts = np.append(firsts[1:], len(slices))[: len(firsts)] - 1
    return _Runs(slices[firsts], begins[firsts], reached[lasts] - shifts[firsts])


def _sent(task: int, what: pa.Table, *, is_rows: bool) -> pa.Table:
    return pa.table([[task], [is_rows], [pack(what)]], schema=_SENT)


def number_rows(how: NumberedRows, shown: tuple[int, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the columns `shown` of rows that were packed, their matches numbered through all slices.

    The notes of all tasks come before the rows.
    """
    notes: list[_Runs] = []
    through: _Through | None = None
    for batch in batches:
        for is_rows, packed in zip(batch.column(IS_ROWS).to_pylist(), batch.column(PACKED), strict=True):
            table = pa.ipc.open_stream(packed.as_buffer()).read_all()
            if is_rows:
                through = through or _through(_united(_joined(notes)))
                yield _numbered(how, table, through).select(shown)
            else:
                notes.append(_Runs(*(column.to_numpy() for column in table.columns)))


def _through(runs: _Runs) -> _Through:
    """Return what numbers the matches of runs that do not touch."""
    slices, places = np.unique(runs.slices, return_inverse=True)
    apart, sizes = int(runs.ends.max(initial=0)) + 1, runs.ends - runs.begins
    return _Through(slices, apart, places * apart + runs.begins, np.cumsum(sizes) - sizes)


def _numbered(how: NumberedRows, table: pa.Table, through: _Through) -> pa.RecordBatch:
    rows = as_promised(table, how.rows)
    here = np.searchsorted(through.slices, _values(rows, how.slices)) * through.apart + _values(rows, how.matches)
    of_rows = np.searchsorted(through.begins, here, side="right") - 1
    numbers = through.before[of_rows] + here - through.begins[of_rows]
    return rows.set_column(how.matches, how.rows.field(how.matches), pa.array(numbers))


def _values(rows: pa.RecordBatch, column: int) -> Indices:
    values: Indices = rows.column(column).to_numpy()
    return values
