"""Match the events of Parquet files that tasks read themselves: no shuffle, and no row goes through the JVM."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from gpu_cep.choices import Scan
from gpu_cep.engine.input.device.flat_columns import tell_readers, unite_reasons
from gpu_cep.engine.input.event_filter import wanted_events
from gpu_cep.engine.input.wanted_events import Wanted
from gpu_cep.engine.slices.budget import IN_SLICES
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.files.footers import Footers, read_footers
from gpu_cep_spark.files.pieces import FilePieces, Numbers, Piece, Workers, divide
from gpu_cep_spark.files.places import NoCardError, NoScanError
from gpu_cep_spark.files.reading import FilePart, Outside, Reading, Share
from gpu_cep_spark.files.scans import FileScan, find_scan, scan_of_paths
from gpu_cep_spark.jobs import Job, keys_of_shuffle
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery, SlicedQuery
from gpu_cep_spark.narrowing.rare_choice import columns_compared
from gpu_cep_spark.slice_matching import match_slices
from gpu_cep_spark.slices.shuffle_tasks import cores_of, shuffle_partitions
from gpu_cep_spark.slices.statistics import sample_filters
from gpu_cep_spark.tasks.worker_memory import WORKING
from gpu_cep_spark.whole_matching import match_whole

# Of fewer rows, reading footers takes as long as it spares.
FEWEST_ROWS = 1 << 16
# Bytes in memory that a task reads at a time where it drops most rows of them.
PORTION = 1 << 26


@dataclass(frozen=True, slots=True, eq=False)
class DividedFiles:
    """The files of a DataFrame, which of their events are wanted (None: all), and the pieces in which tasks match them."""

    scan: FileScan
    wanted: Wanted | None
    footers: Footers
    pieces: FilePieces
    # whether tasks read them by cuDF to a card
    to_card: bool = False

    @property
    def told(self) -> str:
        """Return what is read, in words."""
        footers, groups = self.footers, self.footers.groups
        left_out = f", without {footers.number - len(groups):,} in which no event bears on a match" if len(groups) < footers.number else ""
        told = f"{len(self.scan.paths):,} files with {footers.number:,} row groups and {footers.rows:,} rows{left_out}"
        return "; ".join(filter(None, (f"{self.pieces.told}, of {told}", self._readers)))

    @property
    def _readers(self) -> str:
        """Return who reads which columns, in words; nothing if Arrow reads all."""
        reasons = unite_reasons(self.footers.judged, self.scan.schema.names) if self.to_card else {}
        return tell_readers([name for name, reason in reasons.items() if reason is None], reasons)


class ScanRequest(NamedTuple):
    """Say what a call asks of who reads its events.

    These are its keywords `scan` and `slices`, and whether its DataFrame is known to read files as they are (`from_paths`).
    """

    scan: Scan
    slices: float | str | None
    from_paths: bool


def find_pieces(job: Job, request: ScanRequest) -> DividedFiles:
    """Return the files that the job's DataFrame reads, divided for its tasks.

    ``scan="files"`` takes files even if it does not pay, and also those that are not on this machine; ``scan="gpu_files"`` takes
    those of this machine, if cuDF can read them for each task.

    Raises
    ------
    NoScanError
        Spark must read the events, or does so better; the message says why.
    NoCardError
        Arrow must read the files; the message says why.
    EventError
        A file cannot be read.
    """
    always, to_card = request.scan != "auto", request.scan == "gpu_files"
    scan = _scan(job, from_paths=request.from_paths, remote=request.scan == "files")
    plan, session = job.query.plan, job.df.sparkSession
    keys = tuple(scan.columns[key] for key in keys_of_shuffle(plan))
    bounded = tuple(key for key in keys if key not in scan.folders)
    wanted = wanted_events(plan, _named(scan))
    footers = read_footers(session, scan, scan.columns[plan.query.timestamp], bounded, wanted, judges=to_card)
    if not always and footers.rows < FEWEST_ROWS:
        raise NoScanError(f"its files have fewer than {FEWEST_ROWS:,} rows")
    share = partial(_share_sent, job, wanted, scan)
    workers = Workers(cores_of(session) or max(1, shuffle_partitions(session)), _most_of_task(job, to_card=to_card))
    pieces = divide(plan, scan, footers, keys, workers, share, whole=request.slices is None)
    if to_card and (reason := _reason_against_card(scan, pieces)) is not None:
        raise NoCardError(reason)
    return DividedFiles(scan, wanted, footers, pieces, to_card)


def _most_of_task(job: Job, *, to_card: bool) -> int | None:
    """Return the most bytes of events that a task may hold, by what the call allows; None if it does not say."""
    card = job.query.settings.gpu_memory if to_card else None
    allowed = [most // share for most, share in ((job.memory, WORKING), (card, IN_SLICES)) if most is not None]
    return min(allowed, default=None)


def _reason_against_card(scan: FileScan, pieces: FilePieces) -> str | None:
    """Return why cuDF cannot read for the tasks what they match; None if it can."""
    if scan.condition is not None:
        return "the DataFrame filters rows, which is done on the host"
    if any(piece.bucket is not None for piece in pieces.pieces):
        return f"there are {pieces.told} and keep some, which is done on the host"
    if any(len(piece.earlier) or len(piece.later) for piece in pieces.pieces):
        return "situations reach from slice to slice, which are put together on the host"
    return None


def _share_sent(job: Job, wanted: Wanted | None, scan: FileScan) -> float:
    """Return the share of the rows that Spark would shuffle, by a sample of the files; where that is not possible, the least: none."""
    filters = [each for each in (scan.condition, None if wanted is None else wanted.condition) if each is not None]
    if not filters:
        return 1.0
    plan = job.query.plan
    read = set(scan.filtered)
    if isinstance(plan, EventPlan) and wanted is not None:
        read.update(columns_compared(plan, _named(scan), range(len(plan.query.variables))))
    folders = {path: {name: values[place] for name, values in scan.folders.items()} for place, path in enumerate(scan.paths)}
    sample = sample_filters(job.df, {0: reduce(and_, filters)}, sorted(read), folders)
    return 0.0 if sample is None else sample.any / sample.rows


def _scan(job: Job, *, from_paths: bool, remote: bool) -> FileScan:
    """Return the scan that the columns of a query are."""
    names = job.query.events.names
    if from_paths and not isinstance(job.df.sparkSession, SparkSession):
        return scan_of_paths(job.df, names)
    return find_scan(job.df, names, remote=remote)


def match_files(job: Job, found: DividedFiles) -> DataFrame:
    """Return the matches; tasks read the files."""
    query, pieces = job.query, found.pieces
    tasks = job.df.sparkSession.range(0, len(pieces.pieces), 1, max(1, len(pieces.pieces)))
    files = reading_of(query, found)
    if pieces.timed and _needs_assembly(query.settings):
        return match_slices(job, tasks, SlicedQuery.of_one_slice(query), {}, files)
    return match_whole(job, tasks, {}, files, timed=pieces.timed)


def _needs_assembly(settings: Settings) -> bool:
    """Return whether what a slice reports of a stream depends on other slices."""
    return settings.output == "events" or settings.after_match == "skip_past_last"


def reading_of(query: NarrowQuery, found: DividedFiles) -> Reading:
    """Return how tasks read the events of a query, a share for each piece."""
    plan, scan = query.plan, found.scan
    shares = tuple(
        pickle.dumps(_share(number, piece, scan, found.footers)) for number, piece in enumerate(found.pieces.pieces)
    )  # fmt: skip
    # what others must be near to may be in another share, and the driver has left out what is far from it
    alone = None if found.wanted is None else found.wanted._replace(near=None)
    return Reading(scan.schema, scan.columns, plan.query.timestamp, alone, scan.condition, shares, found.to_card)


def _named(scan: FileScan) -> pa.Schema:
    """Return the columns of the DataFrame, as files call them."""
    return pa.schema([scan.schema.field(name) for name in scan.columns])


def _share(number: int, piece: Piece, scan: FileScan, footers: Footers) -> Share:
    """Return a piece as a task gets it: of streams in a bucket, in portions, since most rows of each are dropped at once."""
    groups = footers.groups
    through = np.cumsum(groups.size[piece.places]) if piece.bucket else np.zeros(len(piece.places), np.int64)
    portions = _runs(piece.places, through // PORTION)
    parts = tuple(tuple(_parts(places, scan, footers)) for places in portions)
    earlier, later = (tuple(_one_by_one(places, scan, footers)) for places in (piece.earlier, piece.later))
    return Share(number, parts, piece.own, piece.low, piece.high, piece.reached, piece.bucket, earlier, later)


def _parts(places: Numbers, scan: FileScan, footers: Footers) -> Iterator[FilePart]:
    """Yield the row groups at some places file by file."""
    for own in _runs(places, footers.groups.file[places]):
        yield _part(int(footers.groups.file[own[0]]), footers.groups.group[own].tolist(), scan, footers)


def _one_by_one(places: Numbers, scan: FileScan, footers: Footers) -> Iterator[Outside]:
    """Yield the row groups at some places, each with its latest time."""
    chosen = footers.groups.take(places)
    for file, group, latest, rows in zip(*(each.tolist() for each in (chosen.file, chosen.group, chosen.latest, chosen.rows)), strict=True):
        yield Outside(_part(file, [group], scan, footers), latest, rows)


def _runs(values: Numbers, marks: Numbers) -> list[Numbers]:
    """Return the values in runs of equal marks."""
    return [run for run in np.split(values, np.flatnonzero(np.diff(marks)) + 1) if len(run)]


def _part(file: int, groups: Sequence[int], scan: FileScan, footers: Footers) -> FilePart:
    return FilePart(scan.paths[file], footers.prints[file], tuple(groups), {name: values[file] for name, values in scan.folders.items()})
