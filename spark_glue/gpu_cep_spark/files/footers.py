"""Read the footers of the files of a scan, on the driver or, of many files, by a job."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpu_cep.engine.input.at_once import each_at_once
from gpu_cep.engine.input.device.flat_columns import ColumnJudgement, judge_columns
from gpu_cep.engine.input.event_files import reading, shorten_name
from gpu_cep.engine.input.judged_groups import unite_holds, wanted_groups
from gpu_cep.engine.input.machine_values import Flags
from gpu_cep.engine.input.near_groups import near_groups
from gpu_cep.engine.input.parquet_files import ParquetFiles, pick_groups
from gpu_cep.engine.input.row_groups import RowGroups, read_row_groups, unite_row_groups
from gpu_cep.engine.input.wanted_events import Near, Wanted
from gpu_cep.errors import EventError
from gpu_cep_spark.files.places import NoScanError, open_place
from gpu_cep_spark.files.scans import FileScan
from gpu_cep_spark.files.types import reason_against

if TYPE_CHECKING:
    from pyarrow import dataset

# Of more files a job reads the footers, so many in each task.
MOST_ON_DRIVER, IN_ONE_TASK = 512, 128
# A footer ends with its length in four bytes, and four bytes that say what kind of file it is.
_TAIL = 8


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells a file from one that has taken its place: its bytes, and a checksum of its footer."""

    size: int
    footer: int


@dataclass(frozen=True, slots=True)
class Footers:
    """What the footers of a scan say.

    `groups` are the row groups that may have an event which bears on a match, with their times, of `number` row groups with `rows` rows
    in all. `keys` has, for each key column that is asked for, the same row groups with the bounds of the key in place of times.
    `holds` says which of them may have an event of each variable near which others must be (None: all are needed).
    `judged` says for each file which columns cuDF reads as Arrow does, if that is asked for.
    """

    groups: RowGroups
    keys: tuple[RowGroups, ...]
    prints: tuple[Fingerprint, ...]
    number: int
    rows: int
    holds: Mapping[int, Flags] | None = None
    judged: tuple[Mapping[str, ColumnJudgement], ...] = ()


@dataclass(frozen=True, slots=True)
class _Request:
    """What is read of footers: the scan, the column of times, the keys whose bounds are asked for, and the events that are wanted.

    `judges`: whether columns are judged by whether cuDF reads them as Arrow does.
    """

    scan: FileScan
    timestamp: str
    keys: tuple[str, ...]
    wanted: Wanted | None
    judges: bool


def read_footers(
    session: Any, scan: FileScan, timestamp: str, keys: tuple[str, ...], wanted: Wanted | None, *, judges: bool = False
) -> Footers:
    """Return what the footers of all files say of the row groups that may have a wanted event (None: of all).

    Raises
    ------
    EventError
        A file is not there, or has no footer; the message names it. Files elsewhere are not as large as Spark has listed them.
    NoScanError
        Spark may read other values from a file than Arrow does.
    """
    request, number = _Request(scan, timestamp, keys, wanted, judges), len(scan.paths)
    if number <= MOST_ON_DRIVER:
        parts = each_at_once(lambda place: _of_file(request, place), range(number))
    else:
        parts = _by_job(session, request, number)
    fault = next((part for part in parts if isinstance(part, str)), None)
    if fault is not None:
        raise NoScanError(fault)
    found = _unite([part for part in parts if isinstance(part, Footers)])
    size = sum(known.size for known in found.prints)
    if scan.size not in (None, size):
        seen = f"{shorten_name(scan.paths[0])} and the others of its scan have {size:,} bytes as Arrow finds them"
        raise EventError(f"events: {seen}, and {scan.size:,} as Spark does; scan='spark' reads what Spark finds")
    return found if wanted is None or wanted.near is None or found.holds is None else _near(found, found.holds, wanted.near)


def _near(found: Footers, holds: Mapping[int, Flags], near: Near) -> Footers:
    """Return the same without row groups that are far from what a match needs."""
    marks = near_groups(found.groups, near.length, [[holds[number] for number in branch] for branch in near.branches])
    places = np.flatnonzero(marks)
    return replace(found, groups=found.groups.take(places), keys=tuple(each.take(places) for each in found.keys), holds=None)


def fingerprint(path: str) -> Fingerprint:
    """Return what tells a file from another in its place.

    Raises
    ------
    EventError
        It is not there, or is no Parquet file.
    """
    with reading(path), _open(path) as file:
        size = int(file.size())
        if size < _TAIL:
            raise EventError(f"events: cannot read {shorten_name(path)}: it is no Parquet file, since it has no footer")
        file.seek(size - _TAIL)
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - _TAIL - length))
        return Fingerprint(size, zlib.crc32(file.read()))


def _open(path: str) -> pa.NativeFile:
    system, inside = open_place(path)
    return system.open_input_file(inside)


def fragment_of(
    path: str, folder: dataset.Expression | None = None, groups: Sequence[int] | None = None
) -> dataset.ParquetFileFragment:  # fmt: skip
    """Return a file, or some of its row groups, as a part of a data set; `folder` says what the names of folders hold."""
    from pyarrow import dataset

    system, inside = open_place(path)
    whole = dataset.ParquetFileFormat().make_fragment(inside, system, folder)
    return whole if groups is None else pick_groups(whole, groups)


def said_by_folders(folders: Mapping[str, pa.Scalar]) -> dataset.Expression | None:
    """Return what holds for all rows of a file by the names of its folders."""
    from pyarrow.dataset import field

    found: Any = None
    for name, value in folders.items():
        said = field(name) == value if value.is_valid else field(name).is_null()
        found = said if found is None else found & said
    return found


def _kept(fragment: dataset.ParquetFileFragment, scan: FileScan) -> dataset.ParquetFileFragment:
    """Return the row groups that may have a row which the DataFrame's filter keeps."""
    own = fragment.physical_schema
    converted = any(field.name in own.names and own.field(field.name).type != field.type for field in scan.schema)
    return fragment if scan.condition is None or converted else fragment.subset(scan.condition, schema=scan.schema)


def _of_file(request: _Request, place: int) -> Footers | str:
    """Return what the footer of one file says, or why Spark may read it otherwise."""
    scan, path = request.scan, request.scan.paths[place]
    known = fingerprint(path)
    with reading(path):
        fragment = fragment_of(path, said_by_folders({name: values[place] for name, values in scan.folders.items()}))
        fragment.ensure_complete_metadata()
        reason = reason_against(fragment.metadata, scan.types, frozenset(scan.folders))
        if reason is not None:
            return f"of {shorten_name(path)}, {reason}"
        fragment = _kept(fragment, scan)
        number, size = fragment.num_row_groups, sum(group.num_rows for group in fragment.row_groups)
        fragment, holds = _wanted(fragment, scan, request.wanted)
        read = [name for name in scan.schema.names if name not in scan.folders]
        groups, *keys = (read_row_groups([fragment], scan.schema, name, read, place) for name in (request.timestamp, *request.keys))
        judged = (judge_columns(fragment, scan.schema.names, scan.schema),) if request.judges else ()
    return Footers(groups, tuple(keys), (known,), number, size, holds, judged)


def _wanted(
    fragment: dataset.ParquetFileFragment, scan: FileScan, wanted: Wanted | None
) -> tuple[dataset.ParquetFileFragment, Mapping[int, Flags] | None]:  # fmt: skip
    """Return the row groups that may have a wanted event, and which may have one of each variable that others must be near to.

    None in place of the second: row groups that are far from these are needed, too.
    """
    if wanted is None or not ParquetFiles(scan.schema, (fragment,)).all_timed(wanted):
        return fragment, None
    found = wanted_groups(fragment, scan.schema, scan.schema.names, wanted)
    return fragment if found.numbers is None else pick_groups(fragment, found.numbers), found.holds


def _by_job(session: Any, request: _Request, number: int) -> list[Footers | str]:
    """Return what :func:`_of_file` does for all files, part by part; the tasks of a job read the footers."""
    payload = pickle.dumps(request)

    # nested, so that it travels by value
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from gpu_cep_spark.files.footers import footers_of_parts

        for batch in batches:
            yield footers_of_parts(payload, batch)

    tasks = -(-number // IN_ONE_TASK)
    found = session.range(0, tasks, 1, tasks).mapInArrow(read, "place bigint, footers binary").toArrow()
    in_order = found.sort_by("place")
    return [part for footers in in_order.column("footers").to_pylist() for part in pickle.loads(footers)]


def footers_of_parts(payload: bytes, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the numbers of parts in `batch`, each with what the footers of that part of the files say."""
    request: _Request = pickle.loads(payload)
    numbers = batch.column(0).to_pylist()
    parts = [range(number * IN_ONE_TASK, min((number + 1) * IN_ONE_TASK, len(request.scan.paths))) for number in numbers]
    found = [pickle.dumps(each_at_once(lambda place: _of_file(request, place), part)) for part in parts]
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), pa.array(found, pa.binary())], ["place", "footers"])


def _unite(parts: list[Footers]) -> Footers:
    keys = tuple(unite_row_groups(same) for same in zip(*(part.keys for part in parts), strict=True))
    return Footers(
        unite_row_groups([part.groups for part in parts]), keys, tuple(known for part in parts for known in part.prints),
        sum(part.number for part in parts), sum(part.rows for part in parts), unite_holds([part.holds for part in parts]),
        tuple(each for part in parts for each in part.judged),
    )  # fmt: skip
