"""Hold the events that a query reads of its input, and what of that input they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.parquet_files import GroupCounts
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.row_numbers import RowNumbers, Rows
from gpu_cep.records import record


@record()
class Origin:
    """The input of which a table of events is a part.

    `schema`: the types that the table's columns have in the input (None: those of the table).
    `numbers`: the numbers of the table's rows in the input (None: it has all rows).
    """

    schema: pa.Schema | None = None
    numbers: RowNumbers | None = None

    def numbers_of(self, rows: Rows | None) -> RowNumbers | None:
        """Return the numbers in the input of these rows of the table, None being all of them."""
        return rows if self.numbers is None else self.numbers if rows is None else self.numbers[rows]


AS_GIVEN = Origin()


@record()
class InputEvents:
    """The events that a query reads of its input.

    `groups`: how many row groups of Parquet were read (None: none could be left out).
    `read_all`: reads columns of all rows of the input, if some rows are not in the table.
    `shared`: the columns of the table, if other queries read them, too.
    `told`: who read the columns, in words, if others than Arrow may.
    """

    table: pa.Table | ResidentTable | PickedRows
    origin: Origin = AS_GIVEN
    groups: GroupCounts | None = None
    read_all: Callable[[Sequence[str]], pa.Table] | None = None
    shared: EventColumns | None = None
    told: str = ""
