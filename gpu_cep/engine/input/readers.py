"""Say who reads columns of row groups of Parquet files, and where to: Arrow to the host, or another reader to a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from gpu_cep.engine.input.encodings import decode_table
from gpu_cep.engine.input.parquet_files import ParquetFiles, PartOfFiles
from gpu_cep.engine.input.wanted_events import Wanted

if TYPE_CHECKING:
    from pyarrow import dataset

    from gpu_cep.engine.input.device.resident import ResidentTable

# Rows from which files are worth a look at their footers before they are read to the host.
_MANY_ROWS = 1 << 20


class ChosenGroups(NamedTuple):
    """Row groups of `files` that are to be read: as fragments, and by Arrow, which reads the columns of these names."""

    files: ParquetFiles
    fragments: Callable[[], Sequence[dataset.ParquetFileFragment]]
    by_arrow: Callable[[list[str]], pa.Table]


class ReadColumns(NamedTuple):
    """Columns that were read; `told` says in words who read which, and why (nothing: Arrow read all)."""

    table: pa.Table | ResidentTable
    told: str = ""


class Reader(Protocol):
    """Reads columns of row groups, to the host or to a card."""

    @property
    def on_card(self) -> bool:
        """Return whether columns come to a card, as far as they can."""

    def is_large(self, files: ParquetFiles, gpu_memory: int | None) -> bool:
        """Return whether files may hold more than is read at once without a look at what the query needs of them."""

    def most_bytes(self, memory: int | None, gpu_memory: int | None) -> int | None:
        """Return the bytes that events may take, by what the caller allows; None for a share of the host's free memory."""

    def read(self, chosen: ChosenGroups, columns: Sequence[str], gpu_memory: int | None) -> ReadColumns:
        """Return these columns; on a card they take at most `gpu_memory` bytes (None: what is free).

        Raises
        ------
        EventError
            They cannot be read.
        UnsupportedError
            They do not fit the card's memory, or `gpu_memory`.
        """

    def tell(self, files: ParquetFiles, columns: Sequence[str]) -> str:
        """Return who reads which columns of all files, in words; nothing if Arrow reads all."""


@dataclass(frozen=True, slots=True)
class ArrowReader:
    """Reads all columns by Arrow to the host, as :class:`Reader` says."""

    on_card: bool = False

    def is_large(self, files: ParquetFiles, gpu_memory: int | None) -> bool:
        """Return whether files have many rows."""
        return files.count_rows() >= _MANY_ROWS

    def most_bytes(self, memory: int | None, gpu_memory: int | None) -> int | None:
        """Return what the caller allows of the host's memory."""
        return memory

    def read(self, chosen: ChosenGroups, columns: Sequence[str], gpu_memory: int | None) -> ReadColumns:
        """Return these columns."""
        return ReadColumns(chosen.by_arrow(list(columns)))

    def tell(self, files: ParquetFiles, columns: Sequence[str]) -> str:
        """Return nothing."""
        return ""


BY_ARROW = ArrowReader()


def read_part(
    reader: Reader, files: ParquetFiles, columns: Sequence[str], wanted: Wanted | None, gpu_memory: int | None = None
) -> PartOfFiles:  # fmt: skip
    """Return these columns of all rows that are wanted (None: of all rows), and of few others; text may come as dictionaries.

    Raises as :meth:`Reader.read`.
    """
    kept = files.kept_groups(columns, wanted)
    chosen = ChosenGroups(files, partial(files.subset, kept), lambda names: decode_table(files.read_kept(names, kept)))
    table, told = reader.read(chosen, columns, gpu_memory)
    schema = pa.schema([files.schema.field(name) for name in columns])
    numbers, groups = (None, None) if wanted is None else files.rows_of(kept)
    return PartOfFiles(table, schema, numbers, groups, told)
