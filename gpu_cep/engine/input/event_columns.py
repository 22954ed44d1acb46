"""Hold the columns of an event table as machine arrays, each converted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.computed_columns import ComputedColumn, ComputedMembership
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.engine.input.buffers import values_at
from gpu_cep.engine.input.chunks import LARGE, chunks_of, is_long, take_few, take_few_texts, take_present, take_rows
from gpu_cep.engine.input.device.resident import ResidentColumn, ResidentTable, ResidentText
from gpu_cep.engine.input.host_functions import compute_column, compute_membership
from gpu_cep.engine.input.joined_texts import one_array
from gpu_cep.engine.input.machine_values import Array, dense_rank, is_opaque, machine_values
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.input.readable import readable_value
from gpu_cep.engine.input.row_numbers import RowNumbers, take_numbers
from gpu_cep.engine.input.text_columns import EncodedTexts, TextColumns
from gpu_cep.engine.input.vectors import centre_lists, stack_lists
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep_kernels.compile.launch import spread, threads_for, threads_of

Result = TypeVar("Result")

# So many times what it costs to copy a value of a column does it cost to find one in its chunks.
_DEARER = 128
# Text of many distinct values is encoded at some rows alone if they are at most this share of all.
FEW_OF_MANY = 4


@dataclass
class EventColumns:
    """The columns that a query reads, by number; each is converted when it is first asked for.

    Computed columns that are expressions are set by :meth:`put`. `dictionaries` are the groups of
    text columns that share an ordered dictionary. `numbers` are the numbers of the table's rows in
    the caller's input, if some of its rows are not in the table. `types` are those that the columns
    have in that input, if text was read as dictionaries. `shared` are the columns of the same table
    that other queries read, too: what does not depend on the query is converted there, once for all.
    At most `threads` threads encode a column of text (None: all that the process may use).
    """

    table: pa.Table | ResidentTable | PickedRows
    query: BoundQuery
    dictionaries: tuple[tuple[int, ...], ...] = ()
    numbers: RowNumbers | None = None
    types: pa.Schema | None = None
    shared: EventColumns | None = None
    threads: int | None = field(kw_only=True)
    _given: dict[int, Any] = field(default_factory=dict)
    _arrow: dict[int, pa.Array] = field(default_factory=dict)
    _values: dict[int, Array] = field(default_factory=dict)
    _pieces: dict[int, Pieces] = field(default_factory=dict)
    _nulls: dict[int, npt.NDArray[np.bool_] | None] = field(default_factory=dict)
    _texts: EncodedTexts = field(default_factory=EncodedTexts)
    _found: dict[tuple[object, ...], Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """Return the columns with the types that they have in the caller's input, and so in results."""
        return self.table.schema if self.types is None else self.types

    @property
    def texts(self) -> TextColumns:
        """Return the text among the columns, as codes."""
        return TextColumns(self, self._texts)

    def name(self, column: int) -> str:
        """Return the column's name for messages."""
        return self.query.column_name(column)

    def type(self, column: int) -> DataType:
        """Return the column's data type."""
        return self.query.column_type(column)

    def _as_given(self, column: int) -> Any:
        """Return a column of the table as it came: a chunked array, or a resident column."""
        if column not in self._given:
            self._given[column] = (self if self.shared is None else self.shared).table.column(column)
        return self._given[column]

    def arrow(self, column: int) -> pa.Array:
        """Return the column as one Arrow array."""
        if column not in self._arrow:
            elsewhere = self.elsewhere(column)
            if elsewhere is not None:
                self._arrow[column] = elsewhere.arrow(column)
            elif column < len(self.query.schema.attributes):
                source = self._as_given(column)
                self._arrow[column] = self._joined(source) if isinstance(source, pa.ChunkedArray) else source.to_arrow()
            else:
                self._arrow[column] = self._compute(column)
        return self._arrow[column]

    def _joined(self, source: pa.ChunkedArray) -> pa.Array:
        """Return the chunks of a column as one array."""
        return one_array(source, threads_for(len(self), threads_of(self.threads)))

    def prepare(self, wanted: Iterable[int], in_pieces: Iterable[int], keys: Iterable[int], threads: int) -> None:
        """Join the chunks of the `wanted` columns on the host, and encode the `keys`, several columns at a time.

        Columns that are read `in_pieces` are joined only if they must be. Keys of many distinct values are left as they are.
        """
        texts = {column for column in keys if self.type(column).kind is Kind.STRING}
        unread = {column for column in texts if self.texts.many_unread(column) is not None}
        encoded = dict.fromkeys(texts - unread, self.texts.code_pieces)
        whole = dict.fromkeys([*(column for column in keys if column not in unread), *wanted], self.arrow)
        loads = {**dict.fromkeys(in_pieces, self._load), **whole, **encoded}
        plain = [column for column in loads if column < len(self.query.schema.attributes) and self.resident(column) is None]
        spread(lambda column: loads[column](column), plain, threads)

    def _load(self, column: int) -> object:
        """Load a column in pieces if it can be; text is not encoded."""
        text = self.type(column).kind is Kind.STRING
        return self.pieces(column) if not text else self.texts.long_chunks(column) or self.arrow(column)

    def once(self, what: str, columns: tuple[int, ...], found: Callable[[], Result]) -> Result:
        """Return what `found` makes of the `columns`, made once: for all queries that share them, if they are the table's own."""
        common = all(column < len(self.query.schema.attributes) for column in columns)
        kept = self.shared._found if self.shared is not None and common else self._found
        if (what, columns) not in kept:
            kept[what, columns] = found()
        result: Result = kept[what, columns]
        return result

    def elsewhere(self, column: int) -> EventColumns | None:
        """Return the columns that hold a column of the table for all queries; None if they are these."""
        return self.shared if column < len(self.query.schema.attributes) else None

    def put(self, column: int, values: pa.Array) -> None:
        """Set the values of a computed column that is an expression."""
        self._arrow[column] = values

    def _compute(self, column: int) -> pa.Array:
        """Return the values of a computed column that is a function of another."""
        match self.query.computed[column - len(self.query.schema.attributes)]:
            case ComputedColumn(column=source) as computed:
                return self._apply(computed, self.arrow(source))
            case ComputedMembership(column=source, constants=constants):
                return compute_membership(constants, self._searched(source))
        raise AssertionError(f"{self.name(column)} has been put")

    def _apply(self, computed: ComputedColumn, source: pa.Array) -> pa.Array:
        """Return a function's values, or raise EventError if it cannot read those of its column."""
        try:
            return compute_column(computed, source)
        except pa.ArrowInvalid as fault:
            raise EventError(f"column {self.name(computed.column)!r} cannot be read by {computed.function}(): {fault}") from fault

    def _searched(self, column: int) -> pa.Array:
        """Return text as it is, other values in their machine representation of 64 bits; no zero is negative."""
        if self.type(column).kind is Kind.STRING:
            return self.arrow(column)
        values, is_float = self.values(column), self.type(column).kind is Kind.FLOAT
        return pa.array(values.astype(np.float64) + 0.0 if is_float else values.astype(np.int64), mask=self.null_mask(column))

    def vectors(self, wanted: tuple[int, ...], rows: Array) -> Array:
        """Return columns of fixed-size lists at some rows, less the mean of each list, as [column, row, position]."""
        places = pa.array(rows)
        return stack_lists([centre_lists(self.take(column, places)) for column in wanted], len(rows))

    def take(self, column: int, rows: pa.Array) -> pa.Array:
        """Return the column's values at `rows`, in its own type.

        Raises
        ------
        MatchLimitExceeded
            It is text, of which these rows have more than an array of its type holds.
        """
        resident = self.resident(column)
        if resident is not None:
            return resident.take(rows)
        if column >= len(self.query.schema.attributes):
            return self.arrow(column).take(rows)
        apart, own = self._chunks_for(column, len(rows)), self.schema.field(column).type
        try:
            if apart is not None:
                return take_few(apart, rows)
            unread = self._unread_texts_for(column, len(rows))
            if unread is not None:
                return take_few_texts(unread, rows)
            array = self.arrow(column)
            if array.type == own:
                return take_present(array, rows)
            if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(own):
                return array.take(rows).cast(own)
            return array.take(rows).cast(own) if own in LARGE else take_rows(self._as_given(column), rows)
        except pa.ArrowInvalid as fault:
            remedy = "use output='count', a narrower pattern or columns="
            raise MatchLimitExceeded(f"column {self.name(column)!r} of {len(rows):,} matched events: {fault}; {remedy}") from fault

    def _chunks_for(self, column: int, rows: int) -> pa.ChunkedArray | None:
        """Return the chunks of a column, from each of which some of so few rows are taken; None if they are joined for these."""
        elsewhere = self.elsewhere(column)
        if elsewhere is not None:
            return elsewhere._chunks_for(column, rows)
        source = self.chunks(column)
        if source is None or source.num_chunks == 1 or rows * _DEARER >= len(self) or not is_long(source):
            return None
        joined = source.type != self.schema.field(column).type
        return None if joined or (pa.types.is_dictionary(source.type) and not self.texts.long_chunks(column)) else source

    def _unread_texts_for(self, column: int, rows: int) -> pa.ChunkedArray | None:
        """Return the chunks of a column with dictionaries of their own, which are not joined for so few rows; None if they are."""
        if self.type(column).kind is not Kind.STRING or rows * FEW_OF_MANY > len(self):
            return None
        source = self.chunks(column)
        if source is None or not pa.types.is_dictionary(source.type) or source.type != self.schema.field(column).type:
            return None
        return self.texts.many_unread(column)

    def value(self, column: int, row: int) -> object:
        """Return the value in one row, for messages."""
        return readable_value(self.take(column, pa.array([row]))[0])

    def numbers_of(self, rows: pa.Array) -> pa.Array:
        """Return the numbers in the caller's input of rows, or of lists of rows; NULL stays NULL."""
        return rows if self.numbers is None else take_numbers(self.numbers, rows)

    def number_of(self, row: int) -> int:
        """Return the number of a row in the caller's input."""
        return row if self.numbers is None else int(self.numbers[row])

    def resident(self, column: int) -> ResidentColumn | None:
        """Return the column if it lies on a device; None if it lies on the host."""
        if column >= len(self.query.schema.attributes):
            return None
        source = self._as_given(column)
        return None if isinstance(source, pa.ChunkedArray) else source

    def values(self, column: int) -> Array:
        """Return the column in its machine representation; values at NULLs are arbitrary.

        int32 and float32 keep their width.
        """
        if column not in self._values:
            known = self._pieces.get(column)
            self._values[column] = known.arrays[0] if known is not None and len(known.arrays) == 1 else self._convert(column)
        return self._values[column]

    def pieces(self, column: int) -> Pieces:
        """Return the column in its machine representation, as the pieces in which it came if these are long.

        No chunks are joined then. Of text these are codes, in one piece unless all chunks have one dictionary. A column that is
        computed is one piece.
        """
        if column not in self._pieces:
            self._pieces[column] = self._divide(column)
        return self._pieces[column]

    def _divide(self, column: int) -> Pieces:
        """Return the pieces of a column."""
        elsewhere, data_type, name = self.elsewhere(column), self.type(column), self.name(column)
        if data_type.kind is Kind.STRING:
            return self.texts.code_pieces(column)[0]
        if elsewhere is not None:
            return elsewhere.pieces(column)
        source = self.chunks(column) if not is_opaque(data_type) and column not in self._values else None
        if source is None or not is_long(source):
            return Pieces.of([self.values(column)])
        return Pieces.of([machine_values(chunk, name) for chunk in chunks_of(source)])

    def _convert(self, column: int) -> Array:
        """Return the machine representation."""
        data_type = self.type(column)
        if data_type.kind is Kind.STRING:
            return self.texts.codes(column).codes
        elsewhere = self.elsewhere(column)
        if elsewhere is not None:
            return elsewhere.values(column)
        if is_opaque(data_type):
            return np.zeros(len(self), np.int64)
        return machine_values(self.arrow(column), self.name(column))

    def pick(self, column: int, rows: Array, threads: int = 1) -> tuple[Array, npt.NDArray[np.bool_] | None]:
        """Return the machine representation at some rows, and where it is NULL there (None: nowhere).

        If the column lies on a device, only these rows are downloaded; else `threads` gather them.
        """
        resident = None if column in self._values else self.resident(column)
        if isinstance(resident, ResidentText):
            codes, places = resident.codes_at(rows), self.texts.shared_places(column)
            return codes if places is None else places[codes], codes == len(resident.encoded.values)
        if resident is not None:
            picked = resident.take(pa.array(rows))
            return machine_values(picked, self.name(column)), picked.is_null().to_numpy(zero_copy_only=False) if picked.null_count else None
        nulls = self.null_mask(column)
        return values_at(self.values(column), rows, threads), None if nulls is None else values_at(nulls, rows, threads)

    def null_mask(self, column: int) -> npt.NDArray[np.bool_] | None:
        """Return True where the column is NULL; None if it never is."""
        if column not in self._nulls:
            elsewhere = self.elsewhere(column)
            self._nulls[column] = self._find_nulls(column) if elsewhere is None else elsewhere.null_mask(column)
        return self._nulls[column]

    def _find_nulls(self, column: int) -> npt.NDArray[np.bool_] | None:
        return self.arrow(column).is_null().to_numpy(zero_copy_only=False) if self.null_count(column) else None

    def null_count(self, column: int) -> int:
        """Return how many values of the column are NULL; its chunks are not joined for that.

        No dictionary has NULL for a value.
        """
        source = self.chunks(column)
        return int(self.arrow(column).null_count if source is None else source.null_count)

    def chunks(self, column: int) -> pa.ChunkedArray | None:
        """Return a column of the host as it came; None if it is computed, on a device, or joined already."""
        if column in self._arrow or column >= len(self.query.schema.attributes):
            return None
        source = self._as_given(column)
        return source if isinstance(source, pa.ChunkedArray) else None

    def key_values(self, column: int) -> Array:
        """Return a column that is not text, with -0.0 as 0.0: equal keys have equal values."""
        values = self.values(column)
        return values + values.dtype.type(0) if values.dtype.kind == "f" else values

    def dense_rank(self, column: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rank of each of `rows` by the column's value; equal values have one rank. NULL comes first, and NaN last."""
        if column in self._arrow or self.texts.long_chunks(column) is None:
            return dense_rank(self.take(column, pa.array(rows)))
        pieces, values = self.texts.code_pieces(column)
        codes = pieces.at_any(rows)
        return dense_rank(pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes == len(values)), values))
