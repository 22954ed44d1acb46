"""Hold the text columns of an event table as codes of dictionaries, each encoded once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.chunks import Rows, chunks_of, is_long, texts_at
from gpu_cep.engine.input.device.resident import ResidentColumn, ResidentText
from gpu_cep.engine.input.few_texts import FewTexts, few_texts
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.input.text_codes import (
    Codes,
    SharedDictionary,
    are_distinct,
    are_many,
    codes_of,
    dictionaries_of,
    encode_text,
    share_dictionary,
)
from gpu_cep_kernels.compile.launch import threads_for, threads_of

Result = TypeVar("Result")

# Arrow types by their bits, of codes that are read as they are.
_CODES = {8: pa.uint8(), 16: pa.uint16(), 32: pa.int32()}


class ColumnsWithText(Protocol):
    """Columns of events, by number, some of which are text: what :class:`gpu_cep.engine.input.event_columns.EventColumns` has of them."""

    @property
    def dictionaries(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def threads(self) -> int | None: ...
    @property
    def texts(self) -> TextColumns: ...
    def __len__(self) -> int: ...
    def arrow(self, column: int, /) -> pa.Array: ...
    def chunks(self, column: int, /) -> pa.ChunkedArray | None: ...
    def resident(self, column: int, /) -> ResidentColumn | None: ...
    def elsewhere(self, column: int, /) -> ColumnsWithText | None: ...
    def once(self, what: str, columns: tuple[int, ...], found: Callable[[], Result], /) -> Result: ...


@dataclass(slots=True, eq=False)
class EncodedTexts:
    """Keep the codes and the values of text columns, by number, for :class:`TextColumns`."""

    codes: dict[int, Codes] = field(default_factory=dict)
    pieces: dict[int, Pieces] = field(default_factory=dict)
    long_chunks: dict[int, list[pa.DictionaryArray] | None] = field(default_factory=dict)
    few: dict[int, tuple[pa.Array, FewTexts | None]] = field(default_factory=dict)
    own: dict[int, Codes] = field(default_factory=dict)
    shared: dict[int, SharedDictionary] = field(default_factory=dict)


class TextColumns(NamedTuple):
    """Give the text among the columns of events, by number, as codes and the values that these stand for.

    The columns have what is `kept`, and not this: a cycle would hold their table until Python looks for cycles.
    """

    columns: ColumnsWithText
    kept: EncodedTexts

    def codes(self, column: int) -> Codes:
        """Return a text column's codes."""
        if column not in self.kept.codes:
            own, places = self._encode_own(column), self.shared_places(column)
            self.kept.codes[column] = own if places is None else Codes(places[own.codes], self.values(column))
        return self.kept.codes[column]

    def values(self, column: int) -> pa.Array:
        """Return the values that a text column's codes stand for; no row of a dictionary column is encoded."""
        shared = self._shared_dictionary(column)
        return self._own_values(column) if shared is None else shared.values

    def code_pieces(self, column: int) -> tuple[Pieces, pa.Array]:
        """Return a text column's codes, and the values that these stand for; chunks with one dictionary are not joined."""
        chunks = None if column in self.kept.codes else self.long_chunks(column)
        if chunks is None:
            text = self.codes(column)
            return Pieces.of([text.codes]), text.values
        if column not in self.kept.pieces:
            self.kept.pieces[column] = Pieces.of([codes_of(chunk, pa.int32()) for chunk in chunks])
        return self.kept.pieces[column], chunks[0].dictionary

    def label_codes(self, column: int) -> tuple[Pieces, pa.Array]:
        """Return what :meth:`code_pieces` does, but codes are those of the column's own dictionary, and keep their width up to 32 bits."""

        def found() -> tuple[Pieces, pa.Array] | None:
            chunks = self.long_chunks(column) or [self.columns.arrow(column)]
            kind = chunks[0].type
            width = kind.index_type.bit_width if pa.types.is_dictionary(kind) else 0
            # NULL has a code of its own
            if width in _CODES and not len(chunks[0].dictionary) >> width:
                return Pieces.of([codes_of(chunk, _CODES[width]) for chunk in chunks]), chunks[0].dictionary
            return None

        # the others depend on the dictionaries that a query compares
        own = self.columns.once("label codes", (column,), found)
        return self.code_pieces(column) if own is None else own

    def has_dictionary(self, column: int) -> bool:
        """Return whether the column came with a dictionary."""
        source = self.columns.chunks(column)
        return bool(pa.types.is_dictionary((self.columns.arrow(column) if source is None else source).type))

    def few_texts(self, column: int, values: pa.Array) -> FewTexts | None:
        """Return what :func:`gpu_cep.engine.input.few_texts.few_texts` does for the values that a column's codes stand for."""
        known = self.kept.few.get(column)
        if known is None or known[0] is not values:
            known = self.kept.few[column] = values, few_texts(values)
        return known[1]

    def long_chunks(self, column: int) -> list[pa.DictionaryArray] | None:
        """Return the chunks of a text column if they are long, and have one dictionary without NULLs or repeated values."""
        if column not in self.kept.long_chunks:
            elsewhere = None if self._groups_of(column) else self._elsewhere(column)
            self.kept.long_chunks[column] = self._find_long_chunks(column) if elsewhere is None else elsewhere.long_chunks(column)
        return self.kept.long_chunks[column]

    def many_unread(self, column: int) -> pa.ChunkedArray | None:
        """Return a text column of many distinct values as it came; None if it is joined or encoded, or has one dictionary.

        To encode such a column costs more than all else that a query does with it, so that only the rows that matter are to be.
        Columns that queries share are encoded once for all of them, and columns that share a dictionary as a whole.
        """
        source = None if self._groups_of(column) or self._elsewhere(column) is not None else self.columns.chunks(column)
        if source is None or column in self.kept.own or not source.num_chunks or self.long_chunks(column) is not None:
            return None
        return source if self.columns.once("many texts", (column,), lambda: _has_many_texts(source)) else None

    def at(self, source: pa.ChunkedArray, rows: Rows) -> Codes:
        """Return codes of text at ascending `rows`, for a dictionary of the values there; `source` is of :meth:`many_unread`."""
        return encode_text(texts_at(source, rows), threads_for(len(rows), threads_of(self.columns.threads)))

    def shared_places(self, column: int) -> npt.NDArray[np.int32] | None:
        """Return the codes in a shared dictionary of the column's own values and, last, of NULL.

        The result is None if the column shares no dictionary.
        """
        shared = self._shared_dictionary(column)
        return None if shared is None else shared.places[column]

    def _find_long_chunks(self, column: int) -> list[pa.DictionaryArray] | None:
        """Return the chunks as :meth:`long_chunks` does, which keeps them."""
        source = self.columns.chunks(column)
        if source is None or not is_long(source) or not pa.types.is_dictionary(source.type) or self._groups_of(column):
            return None
        chunks = chunks_of(source)
        values, *others = dictionaries_of(chunks)
        same = all(own.equals(values) for own in others) and are_distinct(values, self.few_texts(column, values))
        return chunks if same else None

    def _shared_dictionary(self, column: int) -> SharedDictionary | None:
        """Return the dictionary that the column shares with others; None if it shares none."""
        group = self._groups_of(column)
        if group and column not in self.kept.shared:
            self.kept.shared.update(dict.fromkeys(group, share_dictionary({member: self._own_values(member) for member in group})))
        return self.kept.shared.get(column)

    def _groups_of(self, column: int) -> tuple[int, ...]:
        """Return the columns that share a dictionary with this one, itself included; empty if none does."""
        return next((group for group in self.columns.dictionaries if column in group), ()) if self.columns.dictionaries else ()

    def _own_values(self, column: int) -> pa.Array:
        """Return the values of the column's own dictionary."""
        resident, chunks = self.columns.resident(column), self.long_chunks(column)
        if isinstance(resident, ResidentText):
            return resident.encoded.values
        if chunks is not None:
            return chunks[0].dictionary
        array = self.columns.arrow(column)
        return array.dictionary if pa.types.is_dictionary(array.type) else self._encode_own(column).values

    def _encode_own(self, column: int) -> Codes:
        """Return codes for the column's own dictionary."""
        if column not in self.kept.own:
            elsewhere = self._elsewhere(column)
            if elsewhere is None:
                threads = threads_for(len(self.columns), threads_of(self.columns.threads))
                self.kept.own[column] = encode_text(self.columns.arrow(column), threads)
            else:
                self.kept.own[column] = elsewhere._encode_own(column)
        return self.kept.own[column]

    def _elsewhere(self, column: int) -> TextColumns | None:
        """Return the texts that hold a column of the table for all queries; None if they are these."""
        shared = self.columns.elsewhere(column)
        return None if shared is None else shared.texts


def _has_many_texts(source: pa.ChunkedArray) -> bool:
    """Return whether text is plain or has different dictionaries, of many distinct values in all."""
    if not pa.types.is_dictionary(source.type):
        return are_many(source)
    first, *others = dictionaries_of(source.chunks)
    return not all(own.equals(first) for own in others) and are_many(pa.chunked_array([first, *others]))
