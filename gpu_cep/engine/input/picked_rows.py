"""Hold some rows of a table of events; a column is gathered when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Result = TypeVar("Result")

# A dictionary with more than this share of values for each row is made anew of those that the rows have.
_SHARE = 8


class _Table(Protocol):
    @property
    def schema(self) -> pa.Schema: ...
    def column(self, number: int, /) -> Any: ...


class TableColumns(Protocol):
    """The columns of a table, by number: what :class:`gpu_cep.engine.input.event_columns.EventColumns` has of them."""

    @property
    def table(self) -> _Table: ...
    @property
    def schema(self) -> pa.Schema: ...
    def arrow(self, column: int, /) -> pa.Array: ...
    def once(self, what: str, columns: tuple[int, ...], found: Callable[[], Result], /) -> Result: ...


@dataclass(frozen=True, slots=True, eq=False)
class PickedRows:
    """Some rows of a table, with the attributes of an Arrow table: `schema`, `num_rows` and `column`.

    `columns` are those of all rows. `rows` are the numbers of the rows, ascending; one may come several times.
    `beside` are further columns of the picked rows, behind those of the table.
    """

    columns: TableColumns
    rows: npt.NDArray[np.int32]
    beside: pa.Table | None = None
    _gathered: dict[int, pa.ChunkedArray] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        own = self.columns.table.schema
        return own if self.beside is None else pa.schema([*own, *self.beside.schema])

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @property
    def num_columns(self) -> int:
        return len(self.schema)

    def column(self, number: int) -> pa.ChunkedArray:
        """Return the values of a column in these rows."""
        width = len(self.columns.table.schema)
        if number >= width and self.beside is not None:
            return self.beside.column(number - width)
        if number not in self._gathered:
            taken = self.columns.arrow(number).take(pa.array(self.rows))
            self._gathered[number] = pa.chunked_array([_without_unused(taken) if pa.types.is_dictionary(taken.type) else taken])
        return self._gathered[number]

    def first_rows(self, number: int) -> PickedRows:
        """Return the first rows alone."""
        return PickedRows(self.columns, self.rows[:number], None if self.beside is None else self.beside.slice(0, number))

    def to_arrow(self) -> pa.Table:
        """Return the rows with all columns."""
        columns = [self.column(number).cast(field.type) for number, field in enumerate(self.schema)]
        return pa.table(columns, schema=self.schema)


def _without_unused(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary array without values that no row has, if there may be many of these."""
    if _SHARE * len(array.dictionary) <= len(array):
        return array
    used = array.indices.dictionary_encode()
    codes = used.indices.cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, array.dictionary.take(used.dictionary), ordered=array.type.ordered)
