"""Keep the rows whose texts a query wants, by the dictionaries in which texts come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyarrow.dataset import Expression


def rows_of_texts(table: pa.Table, texts: Mapping[str, Expression]) -> pa.Table:
    """Return the rows for which the condition on each text column is true; columns of plain text leave out none.

    A condition reads one column of the table and nothing else. It is tested once for each text of a dictionary.
    """
    for name, condition in texts.items():
        if pa.types.is_dictionary(table.schema.field(name).type):
            table = pa.Table.from_batches(_kept_rows(table, name, condition), table.schema)
    return table


def _kept_rows(table: pa.Table, name: str, condition: Expression) -> Iterator[pa.RecordBatch]:
    known, marks = None, pa.array([], pa.uint8())
    for batch in table.to_batches():
        texts = batch.column(name)
        if known is None or not known.equals(texts.dictionary):
            known, marks = texts.dictionary, _marks(texts.dictionary, name, condition)
        # a number that the type of the codes may not have
        codes = texts.indices.cast(pa.int64()).fill_null(len(known)) if texts.indices.null_count else texts.indices
        # codes were tested when they were read; and to take is several times as fast as a filter by marks
        rows = np.flatnonzero(pc.take(marks, codes, boundscheck=False).to_numpy().view(np.bool_))
        yield batch if len(rows) == len(batch) else pc.take(batch, pa.array(rows), boundscheck=False)


def _marks(dictionary: pa.Array, name: str, condition: Expression) -> pa.Array:
    """Return 1 for each text of a dictionary, and behind them for NULL, for which the condition is true, and 0 for others."""
    # numbers come along under a name that is not that of the texts
    number = f"{name} number"
    texts = pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)])
    true = pa.table({name: texts, number: np.arange(len(texts))}).filter(condition).column(number)
    marks = np.zeros(len(texts), np.uint8)
    marks[true.to_numpy()] = 1
    return pa.array(marks)
