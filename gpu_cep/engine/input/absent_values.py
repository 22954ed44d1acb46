"""Find texts that a query asks for and no event has, to explain why there are no matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Field, Operation
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.readable import readable_texts
from gpu_cep.errors import nearest
from gpu_cep.plan.properties import property_conjuncts

_TEXT = pa.large_string()
_FEW = 1 << 14  # most distinct values that are looked up one by one
_COMPARED = 1_000  # most distinct values that are searched for a similar one
_LISTED = 8  # most distinct values that a message lists


@dataclass(frozen=True)
class Texts:
    """The distinct texts of a column."""

    values: pa.Array

    @cached_property
    def _few(self) -> frozenset[bytes] | None:
        """Return the bytes of the texts, which need not be UTF-8; None if there are many."""
        return frozenset(self.values.cast(pa.large_binary()).to_pylist()) if len(self.values) <= _FEW else None

    def has_any(self, texts: Sequence[str]) -> bool:
        """Return whether the column has one of `texts`."""
        if self._few is not None:
            return any(text.encode(errors="surrogatepass") in self._few for text in texts)
        return bool(pc.any(pc.is_in(self.values, pa.array(texts, _TEXT))).as_py())


def absent_values(query: BoundQuery, table: pa.Table | ResidentTable, known: dict[str, Texts] | None = None) -> list[str]:
    """Return a sentence for each text that a variable must have in a column, and that no event of the table has.

    A query for which there is such a sentence has no match that binds the variable. `known` keeps the distinct texts
    of columns for further queries over the same table.
    """
    asked = dict.fromkeys(asked_texts(query)) if table.num_rows else {}
    kept = {} if known is None else known
    for name in {query.column_name(column) for column, _ in asked} - kept.keys():
        kept[name] = Texts(_present(_texts_of(table, name)))
    present = {column: kept[query.column_name(column)] for column, _ in asked}
    absent = [(column, texts) for column, texts in asked if not present[column].has_any(texts)]
    return [_sentence(query.column_name(column), texts, present[column].values) for column, texts in absent]


def asked_columns(query: BoundQuery) -> list[str]:
    """Return the columns of a table that :func:`absent_values` reads."""
    return list(dict.fromkeys(query.column_name(column) for column, _ in asked_texts(query)))


def _texts_of(table: pa.Table | ResidentTable, name: str) -> pa.ChunkedArray:
    """Return a column of text, downloaded if it lies on a device."""
    column = table.column(table.schema.names.index(name))
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column.to_arrow()])


def asked_texts(query: BoundQuery) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the columns of which an event must have one of some texts to be bound to a positive variable."""
    positives = (1 << len(query.positives)) - 1
    for _, conjunct, bits in property_conjuncts(query):
        found = _texts(conjunct)
        if found is not None and bits & positives and found[0] < len(query.schema.attributes):
            yield found


def _texts(conjunct: Bound) -> tuple[int, tuple[str, ...]] | None:
    """Return the column and the texts of a test for equality; None for other tests."""
    match conjunct:
        case Operation(
            name="eq", arguments=(Field(column=column), Constant(value=str(text))) | (Constant(value=str(text)), Field(column=column))
        ):
            return column, (text,)
        case Operation(name="in", arguments=(Field(column=column), Constants(values=values))):
            texts = tuple(value for value in values if isinstance(value, str))
            return (column, texts) if len(texts) == len(values) else None
    return None


def _present(values: pa.ChunkedArray) -> pa.Array:
    """Return the distinct texts of a column."""
    if not pa.types.is_dictionary(values.type):
        return pc.drop_null(pc.unique(values)).cast(_TEXT)
    used = [pc.take(chunk.dictionary, pc.drop_null(chunk.indices.unique())).cast(_TEXT) for chunk in values.chunks]
    return pc.drop_null(pc.unique(pa.chunked_array(used, _TEXT)))


def _sentence(name: str, texts: Sequence[str], present: pa.Array) -> str:
    asked = " or ".join(map(repr, texts))
    known = readable_texts(present.slice(0, _COMPARED + 1)).to_pylist()
    similar = nearest(texts[0], known) if len(known) <= _COMPARED else None
    return f"no event has {name} {asked}; {similar or _listing(known)}"


def _listing(known: Sequence[str]) -> str:
    if not known:
        return "all are NULL"
    return f"there are {', '.join(map(repr, known[:_LISTED]))}{' …' if len(known) > _LISTED else ''}"
