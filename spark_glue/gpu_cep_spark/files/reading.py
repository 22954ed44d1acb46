"""Read the pieces of files that a task matches, with Arrow: row groups, columns and rows that the query needs."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.event_files import reading, shorten_name
from gpu_cep.engine.input.parquet_files import ParquetFiles
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.input.readers import BY_ARROW, read_part
from gpu_cep.engine.input.row_groups import limits_of
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.input.wanted_events import Wanted
from gpu_cep.engine.input.wanted_texts import rows_of_texts
from gpu_cep.engine.slices.loading import rows_at, rows_between
from gpu_cep.errors import EventError
from gpu_cep_spark.files.footers import Fingerprint, fingerprint, fragment_of, said_by_folders
from gpu_cep_spark.files.key_buckets import KeyBucket

if TYPE_CHECKING:
    from pyarrow.dataset import Expression

READ_ROWS, READ_GROUPS, READ_BYTES = "rows read", "row groups read", "bytes read"


@dataclass(frozen=True, slots=True)
class FilePart:
    """Row groups of one file; `folders` are the values of columns that the names of its folders hold."""

    path: str
    known: Fingerprint
    groups: tuple[int, ...]
    folders: Mapping[str, pa.Scalar]


class Outside(NamedTuple):
    """A row group of so many `rows` with events before or behind a share, of which none is later than `latest`."""

    part: FilePart
    latest: Tick
    rows: int


@dataclass(frozen=True, slots=True)
class Share:
    """A piece as a task gets it: what to read, when matches start, and the times beyond which no event matters.

    `portions` are what is read at a time. `number` numbers the slices of a query over slices. `reached` is the latest time of an
    event of earlier slices' matches. If there is a `bucket`, the task keeps only its streams. `earlier` are the row groups in which
    the last event of a stream before the share may be, the latest ones first, and `later` those with events behind it, the earliest ones
    first; none if such events bear on no match.
    """

    number: int
    portions: tuple[tuple[FilePart, ...], ...]
    own: TimeSlice
    low: Tick | None
    high: Tick | None
    reached: Tick | None
    bucket: KeyBucket | None
    earlier: tuple[Outside, ...] = ()
    later: tuple[Outside, ...] = ()

    @property
    def parts(self) -> Iterator[FilePart]:
        """Return the row groups of all portions, file by file."""
        return chain.from_iterable(self.portions)


@dataclass(frozen=True, slots=True)
class Reading:
    """How tasks read files.

    Parameters
    ----------
    schema
        The columns that are read, as files call them.
    columns
        The name in the files of each column of the events.
    timestamp
        The number of the column of times among these.
    wanted
        The events that count, by the names of the files, near to others or not; None for all.
    condition
        The rows that the DataFrame keeps; None for all.
    shares
        What each task reads, pickled.
    to_card
        Whether cuDF reads them to the task's card, where it reads as Arrow does.
    """

    schema: pa.Schema
    columns: tuple[str, ...]
    timestamp: int
    wanted: Wanted | None
    condition: Expression | None
    shares: tuple[bytes, ...]
    to_card: bool = False


def shares_of(what: Reading, batches: Iterable[pa.RecordBatch]) -> Iterator[Share]:
    """Yield the shares whose numbers are in the first column of `batches`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            share: Share = pickle.loads(what.shares[number])
            yield share


def read_share(what: Reading, share: Share, profile: Profile, *, timed: bool) -> Iterator[pa.Table]:
    """Yield the events of a share portion by portion, in columns called c0, c1, …, also those of streams that are not in its bucket.

    If `timed`, events without a time are left out.

    Raises
    ------
    EventError
        A file has changed or gone since the query was made, or cannot be read; the message names it.
    """
    refuse_changed(share.parts)
    schema = None
    for parts in share.portions:
        events = _read(what, parts, profile)
        # text may come as dictionaries from some row groups only
        schema = schema or events.schema
        same = events if events.schema == schema else events.cast(schema)
        held = [_near(same, what.timestamp, share.low, share.high, timed=timed)]
        del events
        # not held while it is worked on
        yield held.pop()
    # a file that was replaced meanwhile has another footer
    refuse_changed(share.parts)


def read_outside(what: Reading, groups: Sequence[Outside], least: Tick | None, most: Tick | None, profile: Profile) -> pa.Table:
    """Return the events of row groups between two times (None: no bound), in columns called as :func:`read_share` does.

    Raises as that.
    """
    parts = _by_file([each.part for each in groups])
    refuse_changed(parts)
    events = _near(_read(what, parts, profile), what.timestamp, least, most, timed=True)
    refuse_changed(parts)
    return events


def _by_file(parts: Sequence[FilePart]) -> list[FilePart]:
    """Return the same row groups, those of a file together, so that it is opened once."""
    groups: dict[str, list[int]] = {}
    for part in parts:
        groups.setdefault(part.path, []).extend(part.groups)
    return [replace(part, groups=tuple(sorted(groups[part.path]))) for part in {part.path: part for part in parts}.values()]


def _read(what: Reading, parts: Sequence[FilePart], profile: Profile) -> pa.Table:
    """Return the rows of a portion that the DataFrame keeps, and few others that the query does not want."""
    with reading(name_of(parts)):
        files, wanted = files_of(what, parts), _all_wanted(what)
        read = _rows_of_texts if _picks_texts(what, files) else _whole_groups
        table = read(what, files, wanted, profile)
    return _kept(what, table).select(list(what.columns)).rename_columns([f"c{place}" for place in range(len(what.columns))])


def name_of(parts: Sequence[FilePart]) -> str:
    """Return the name by which errors call the files of some row groups."""
    return shorten_name(parts[0].path) + (f" or {len(parts) - 1:,} others" if len(parts) > 1 else "")


def files_of(what: Reading, parts: Sequence[FilePart]) -> ParquetFiles:
    """Return some row groups as files that are read in the types of the DataFrame."""
    return ParquetFiles(what.schema, tuple(fragment_of(part.path, said_by_folders(part.folders), part.groups) for part in parts))


def _picks_texts(what: Reading, files: ParquetFiles) -> bool:
    """Return whether rows are dropped by their texts alone as soon as they are read, so that they take no memory."""
    return what.wanted is not None and bool(what.wanted.texts) and what.condition is None and files.all_timed(what.wanted)


def _rows_of_texts(what: Reading, files: ParquetFiles, wanted: Wanted | None, profile: Profile) -> pa.Table:
    """Return the rows whose texts the query wants, of row groups that are read one after the other, small ones together."""
    assert wanted is not None, "there are texts that are wanted"
    kept = []
    for table, groups in files.read_in_turns(what.schema.names, wanted):
        _count_read(profile, table, groups)
        kept.append(rows_of_texts(table, wanted.texts))
        # not held while the next is read
        del table
    return pa.concat_tables(kept) if kept else no_rows(what.schema)


def _whole_groups(what: Reading, files: ParquetFiles, wanted: Wanted | None, profile: Profile) -> pa.Table:
    """Return all rows of the row groups that may have one that the query and the DataFrame's filter want."""
    part = read_part(BY_ARROW, files, what.schema.names, wanted)
    groups = sum(fragment.num_row_groups for fragment in files.fragments) if part.groups is None else part.groups.read
    _count_read(profile, part.table, groups)
    return part.table


def _count_read(profile: Profile, table: pa.Table, groups: int) -> None:
    """Add what was read to the profile."""
    profile.add(READ_ROWS, table.num_rows)
    profile.add(READ_BYTES, table.nbytes)
    profile.add(READ_GROUPS, groups)


def _all_wanted(what: Reading) -> Wanted | None:
    """Return which rows must be read, by the query and by the DataFrame's filter."""
    if what.wanted is None:
        return None if what.condition is None else Wanted(what.condition, None, {})
    return what.wanted if what.condition is None else what.wanted._replace(condition=what.wanted.condition & what.condition)


def _kept(what: Reading, table: pa.Table) -> pa.Table:
    """Return the rows that the DataFrame's filter keeps."""
    if what.condition is None:
        return table
    # filters compare plain text
    return table.cast(what.schema).filter(what.condition)


def _near(events: pa.Table, timestamp: int, least: Tick | None, most: Tick | None, *, timed: bool) -> pa.Table:
    """Return the events whose times are within two bounds (None: no bound), and those without a time unless `timed`."""
    if least is None and most is None and not timed:
        return events
    times, known = _ticks(events.column(timestamp))
    return rows_at(events, _rows_near(times, known, least, most, timed=timed))


def _rows_near(times: Any, known: Any, least: Tick | None, most: Tick | None, *, timed: bool) -> Any:
    """Return the rows whose times are within two bounds, and those without a time unless `timed`."""
    lowest, highest = limits_of(times)
    low, high = lowest if least is None else least, highest if most is None else most
    if known is None:
        return rows_between(Pieces.of([times]), low, high)
    near = (times >= low) & (times <= high)
    return near & known if timed else near | ~known


def _ticks(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return times as int64 or float64, and which are not NULL or NaN; None in their place if all are."""
    if pa.types.is_floating(column.type):
        times = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
        known = ~np.isnan(times)
        return times, None if known.all() else known
    whole = (column.cast(pa.int32()) if pa.types.is_date32(column.type) else column).cast(pa.int64())
    if not column.null_count:
        # filling would copy
        return whole.to_numpy(), None
    return whole.fill_null(0).to_numpy(), column.is_valid().to_numpy()


def refuse_changed(parts: Iterable[FilePart]) -> None:
    """Raise EventError if a file is not the one whose footer the driver has read."""
    for path, known in {part.path: part.known for part in parts}.items():
        if fingerprint(path) != known:
            told = "it has changed since the query was made; make the DataFrame and the query anew"
            raise EventError(f"events: cannot read {shorten_name(path)}: {told}")
