"""Let cuDF read columns of Parquet files to a card; others, and all that cuDF would read otherwise, are read by Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from gpu_cep.engine.input.device.cudf import load_row_groups, open_series, require_cudf
from gpu_cep.engine.input.device.flat_columns import judge_columns, tell_readers, unite_reasons
from gpu_cep.engine.input.device.resident import AnyColumn, ResidentTable
from gpu_cep.engine.input.event_files import shorten_name
from gpu_cep.engine.input.file_changes import reading_files
from gpu_cep.engine.input.parquet_files import ParquetFiles
from gpu_cep.engine.input.readers import ChosenGroups, ReadColumns
from gpu_cep.engine.input.row_groups import read_row_groups
from gpu_cep.engine.input.sources import Source, source_of
from gpu_cep.errors import Diagnostic, EventError, UnsupportedError
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.device.selection import open_device

if TYPE_CHECKING:
    from pyarrow import dataset

# Bytes at the peak for each byte of columns: these, and pages before they are decoded.
AT_ONCE = 2
# The same together with what a run over the events takes.
_WITH_RUN = 3
# Bytes of the widest value that cuDF reads, but for text itself.
_WIDEST = 8
# A column of cuDF's has fewer rows.
_MOST_ROWS = (1 << 31) - 1
# What Cython makes of libcudf's exceptions; IndexError and OverflowError are among them.
_FAULTS = (RuntimeError, ValueError, TypeError, OSError, LookupError, ArithmeticError)
READ_THE_PATH = "give the path itself: Arrow reads it then, in slices of time if it is large"


@dataclass(frozen=True, slots=True)
class CudfReader:
    """Reads columns by cuDF to the card, and others by Arrow, as :class:`~gpu_cep.engine.input.readers.Reader` says.

    `name` names the files in errors, of which `hint` says what to do instead.
    """

    name: str
    hint: str = READ_THE_PATH
    on_card: bool = True

    def is_large(self, files: ParquetFiles, gpu_memory: int | None) -> bool:
        """Return whether numbers and text of all columns may be more than :meth:`most_bytes`."""
        held = [(each.metadata.num_columns, group) for each in _with_footers(files.fragments) for group in each.row_groups]
        bound = sum(group.total_byte_size + _WIDEST * columns * group.num_rows for columns, group in held)
        return bool(_WITH_RUN * bound > _most_bytes(open_device(), gpu_memory))

    def most_bytes(self, memory: int | None, gpu_memory: int | None) -> int | None:
        """Return the bytes of the card's memory that events may take together with what a run over them takes."""
        return _most_bytes(open_device(), gpu_memory)

    def read(self, chosen: ChosenGroups, columns: Sequence[str], gpu_memory: int | None) -> ReadColumns:
        """Return these columns, those on the card that cuDF reads as Arrow does."""
        files = chosen.files
        fragments = [each for each in _with_footers(chosen.fragments()) if sum(group.num_rows for group in each.row_groups)]
        reasons = _reasons(files, fragments, columns)
        by_cudf = [name for name in columns if reasons[name] is None] if fragments else []
        others = [name for name in columns if name not in by_cudf]
        there = self._read_to_card(files, fragments, by_cudf, gpu_memory) if by_cudf else None
        return ReadColumns(_beside(there, chosen.by_arrow(others) if others else None, columns), tell_readers(by_cudf, reasons))

    def tell(self, files: ParquetFiles, columns: Sequence[str]) -> str:
        """Return who reads which columns of all files, in words."""
        reasons = _reasons(files, _with_footers(files.fragments), columns)
        return tell_readers([name for name in columns if reasons[name] is None], reasons)

    def _read_to_card(
        self, files: ParquetFiles, chosen: Sequence[dataset.ParquetFileFragment], columns: Sequence[str], gpu_memory: int | None
    ) -> ResidentTable:  # fmt: skip
        """Return columns of all rows of some fragments, which cuDF reads."""
        device, footers = open_device(), read_row_groups(chosen, files.schema, columns[0], columns)
        rows = int(footers.rows.sum())
        self._refuse_large(device, AT_ONCE * int(footers.size.sum()), rows, gpu_memory)
        runs = [(path, [group.id for each in same for group in each.row_groups]) for path, same in groupby(chosen, lambda each: each.path)]
        with self._reading_by_cudf(columns), reading_files(files.states, chosen, files.schema, columns):
            frame = load_row_groups([path for path, _ in runs], [groups for _, groups in runs], columns)
        opened = {name: open_series(device, frame[name], name, files.schema.field(name).type) for name in columns}
        for name, column in opened.items():
            if len(column) != rows:
                raise EventError(f"column {name!r}: cuDF read {len(column):,} rows of {rows:,}")
        return ResidentTable(device, opened)

    @contextmanager
    def _reading_by_cudf(self, columns: Sequence[str]) -> Iterator[None]:
        """Turn what cuDF raises inside into an error that names the files, as errors call them, and the columns.

        Raises
        ------
        EventError
            cuDF cannot read them.
        UnsupportedError
            The card is out of memory.
        """
        what = f"columns {', '.join(columns)} of {shorten_name(self.name)}"
        try:
            yield
        except MemoryError as fault:
            message = f"gpu_files: the card is out of memory for {what}: {fault}"
            raise UnsupportedError([Diagnostic(message, hint=self.hint)]) from fault
        except _FAULTS as fault:
            raise EventError(f"cuDF cannot read {what}: {fault}; {self.hint}") from fault

    def _refuse_large(self, device: Device, needed: int, rows: int, gpu_memory: int | None) -> None:
        """Raise UnsupportedError if columns are too many for the card's memory, for `gpu_memory`, or for a column of cuDF's."""
        most = _most_bytes(device, gpu_memory)
        if rows > _MOST_ROWS:
            message = f"cuDF reads {_MOST_ROWS:,} rows at most, and there are {rows:,}"
        elif needed > most:
            left = "allowed by gpu_memory" if most == gpu_memory else "free"
            message = f"to read the events takes about {needed:,} bytes of the card, of which {most:,} are {left}"
        else:
            return
        raise UnsupportedError([Diagnostic(f"gpu_files: {message}", hint=self.hint)])


@dataclass(frozen=True, slots=True)
class GpuFiles:
    """Parquet files whose columns cuDF reads to the card; :func:`gpu_cep.gpu_files` makes it."""

    source: Source

    @property
    def schema(self) -> pa.Schema:
        """Return the columns and their types."""
        return self.source.schema


def gpu_files(files: Any) -> GpuFiles:
    """Return local Parquet files that cuDF reads to the GPU, in place of their path.

    ``match(gpu_files("events/*.parquet"), pattern)`` reads the columns and row groups that
    ``match("events/*.parquet", pattern)`` reads, and finds the same matches. cuDF reads bool,
    integers, floats, timestamps and plain text. Other columns are read by Arrow, also text in
    dictionaries, of which only codes go to the card. ``explain`` and a `profile` say which, and
    why. Event patterns over files that do not fit the card's memory, or
    `gpu_memory`, are matched in slices of time, if files are about in the order of time. It has
    been tested with a stand-in for cuDF only.

    Parameters
    ----------
    files
        A path, a glob, a folder, a list of these, or a pyarrow.dataset.Dataset of Parquet files.
        :func:`gpu_cep.match` and :func:`gpu_cep.explain` take the result for event patterns and
        situations.

    Raises
    ------
    EngineUnavailable
        There is no GPU, or no cuDF; the message says why.
    EventError
        The files are not Parquet, or cannot be opened.
    UnsupportedError
        cuDF does not read them as Arrow does: they are encrypted, or not on this machine.
    """
    require_cudf("gpu_files()")
    source = source_of(files)
    if source is None or source.files is None:
        raise EventError(f"gpu_files: cannot read {type(files).__name__} {files!r:.60}; expected paths of Parquet files, or a data set")
    reason = next((why for fragment in source.files.fragments if (why := _reason_against(fragment)) is not None), None)
    if reason is not None:
        raise UnsupportedError([Diagnostic(f"gpu_files: cuDF does not read {source.name}: {reason}", hint=READ_THE_PATH)])
    return GpuFiles(replace(source, reader=CudfReader(source.name)))


def _reason_against(fragment: dataset.ParquetFileFragment) -> str | None:
    """Return why cuDF cannot read a file."""
    options = fragment.format.default_fragment_scan_options
    if options.decryption_properties is not None or options.parquet_decryption_config is not None:
        return "it is encrypted"
    if fragment.buffer is not None or not isinstance(fragment.filesystem, fs.LocalFileSystem):
        return "it is not a file of this machine"
    return None


def _with_footers(fragments: Sequence[dataset.ParquetFileFragment]) -> Sequence[dataset.ParquetFileFragment]:
    """Return files, or parts of them, once their footers have been read."""
    for fragment in fragments:
        fragment.ensure_complete_metadata()
    return fragments


def _reasons(
    files: ParquetFiles, fragments: Sequence[dataset.ParquetFileFragment], columns: Sequence[str]
) -> dict[str, str | None]:  # fmt: skip
    """Return for each column why Arrow must read it of some fragments, which have their footers; None if cuDF reads it."""
    return unite_reasons([judge_columns(fragment, columns, files.schema) for fragment in fragments], columns)


def _most_bytes(device: Device, gpu_memory: int | None) -> int:
    """Return the bytes of the card's memory that may be taken: what is free, or less if the caller says so."""
    free = device.free_memory()
    return free if gpu_memory is None else min(free, gpu_memory)


def _beside(there: ResidentTable | None, others: pa.Table | None, columns: Sequence[str]) -> ResidentTable | pa.Table:
    """Return the columns of two tables, of which one may be missing, in the order given."""
    if there is None or others is None:
        return there or others
    known: dict[str, AnyColumn] = {**there.columns, **dict(zip(others.column_names, others.columns, strict=True))}
    return ResidentTable(there.device, {name: known[name] for name in columns})
