"""Keep what the search of a row pattern knows of the rows in a bucket's list: marks beside the list, which stays as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.row_patterns.columns import row_columns
from gpu_cep.engine.row_patterns.ordering import order_rows
from gpu_cep.engine.streaming.row_patterns import MARKS, Marks, marked, new_marks, with_marks, without_marks
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_spark.streaming.packing import read_chunk, write_chunk

Numbers = npt.NDArray[np.int64]


class ListMarks(NamedTuple):
    """The marks of the rows in a bucket's list, by their numbers, which rise."""

    numbers: Numbers
    marks: Marks

    @property
    def open(self) -> int:
        """Return the number of rows of which it is not certain yet which match begins there."""
        return len(self.numbers) - int(np.count_nonzero(self.marks.passed))


def read_marks(variable: Any, rows: pa.Table) -> pa.Table:
    """Return the rows of a list with their marks, which a state variable holds; those behind the marked ones have come since."""
    if not variable.exists():
        return marked(rows)
    (packed,) = variable.get()
    _, known = without_marks(read_chunk(packed))
    further = new_marks(rows.num_rows - len(known.passed))
    return with_marks(rows, Marks(*(np.concatenate(pair) for pair in zip(known, further, strict=True))))


def in_order_of_ties(plan: RowPlan, ties: tuple[int, ...], rows: pa.Table, numbers: Numbers) -> tuple[pa.Table, Numbers]:
    """Return rows and their numbers as a batch orders them, which has those that ORDER BY leaves equal by the columns `ties`."""
    if not ties:
        return rows, numbers
    ordered = order_rows(plan.bound, row_columns(plan, rows, 1), 1, ties)
    return (rows, numbers) if ordered.rows is None else (rows.take(pa.array(ordered.rows)), numbers[ordered.rows])


def marks_after(numbers: Numbers, kept: pa.Table, kept_numbers: Numbers) -> ListMarks:
    """Return the marks of a list after a run, which has given up all rows but those that are `kept`, with marks.

    A row that is given up counts as passed: no match depends on it.
    """
    marks, places = new_marks(len(numbers), passed=True), np.searchsorted(numbers, kept_numbers)
    for of_list, of_kept in zip(marks, without_marks(kept)[1], strict=True):
        of_list[places] = of_kept
    return ListMarks(numbers, marks)


def write_marks(variable: Any, known: ListMarks, kept: Numbers | None) -> None:
    """Have a state variable hold the marks of all rows, or of those that are `kept`, if the list has been written anew."""
    chosen = np.ones(len(known.numbers), np.bool_) if kept is None else np.isin(known.numbers, kept)
    if not chosen.any():
        variable.clear()
        return
    columns = [pa.array(values[chosen]) for values in known.marks]
    variable.update((write_chunk(pa.Table.from_arrays(columns, schema=pa.schema(MARKS))),))
