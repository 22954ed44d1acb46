"""Divide the row groups of a scan into pieces that tasks match apart: slices of time, or whole streams by their keys.

Streams are whole in the row groups of a piece, or each task reads all row groups and keeps some streams of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine.events.own_events import WHOLE, TimeSlice
from gpu_cep.engine.input.row_groups import RowGroups
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.input.time_cut import FileSlice, Most, SliceReach, TimeCut, cut_by_budget, cut_by_number, longest_turn
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep_spark.files.footers import Footers
from gpu_cep_spark.files.key_buckets import KeyBucket
from gpu_cep_spark.files.places import NoScanError
from gpu_cep_spark.files.readings import refuse_readings
from gpu_cep_spark.files.scans import FileScan
from gpu_cep_spark.slices.choice import FEWEST_WINDOWS, looks_back, reason_against_times

Numbers = npt.NDArray[np.int64]

# Rows of a task at least while a core waits. Further tasks have at least the rows that are read and matched in the time that a task
# takes by itself, and a core has at most so many pieces.
FEWEST_ROWS, ROWS_OF_START, PIECES_PER_CORE = 200_000, 1_000_000, 4
# Rows that the busiest core reads in slices for each row of its share: gladly, and at most. More take longer than Spark's scan.
CHEAP, DEAREST = 1.35, 1.8
# Bytes in memory of the columns that a piece reads, if nobody says how much a worker may take; and how many times as many a slice may
# hold where smaller ones read too much twice.
USUAL_BYTES, LARGER = 1 << 28, 4
# Several tasks that read rows twice take hardly less time than one that reads all, if they take this share of its time or more.
HARDLY_LESS = 0.75
# In the time to read a row: to read one and drop it by its key, and to match one where conditions between neighbours decide.
_SHARED_READING, _NEIGHBOURS = 1.4, 1.5
_NONE: Numbers = np.empty(0, np.int64)
# The share of the rows of one core that the largest group of streams may have.
_LARGEST = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """What a task reads and matches: row groups, by their places among all of the scan.

    Matches start in `own`; no event earlier than `low` or later than `high` bears on them. Those of earlier pieces have no event
    later than `reached`. Only the events of the streams in `bucket` are kept (None: all). `earlier` are the row groups in which the
    last event of a stream before the piece may be, the latest ones first, and `later` those with events behind `high`, the earliest ones
    first; none if such events bear on no match.
    """

    places: Numbers
    own: TimeSlice = WHOLE
    low: Tick | None = None
    high: Tick | None = None
    reached: Tick | None = None
    bucket: KeyBucket | None = None
    earlier: Numbers = field(default_factory=lambda: _NONE)
    later: Numbers = field(default_factory=lambda: _NONE)


@dataclass(frozen=True, slots=True, eq=False)
class FilePieces:
    """All pieces; `timed` if they are slices of time. `told` says in words how the files are divided."""

    pieces: tuple[Piece, ...]
    timed: bool
    told: str


class Workers(NamedTuple):
    """How many tasks run at a time, and the most bytes of events that each may hold (`size`; None if nobody says)."""

    cores: int
    size: int | None


class _Division(NamedTuple):
    """What is divided, and for whom.

    `wanted`: the number of pieces that are read and matched soonest. `most`: the bytes that a slice may hold.
    `share`: returns the share of the rows that Spark would shuffle. `whole`: whether streams must stay whole.
    """

    plan: AnyPlan
    groups: RowGroups
    cores: int
    wanted: int
    most: int
    share: Callable[[], float]
    whole: bool


def divide(
    plan: AnyPlan, scan: FileScan, footers: Footers, keys: Sequence[str], workers: Workers, share: Callable[[], float], *, whole: bool
) -> FilePieces:  # fmt: skip
    """Return the pieces by which a query is answered.

    Parameters
    ----------
    plan
        The plan over whole streams.
    keys
        The columns whose values identify a stream; `footers` has the bounds of those that are not in the names of folders.
    workers
        Who reads the pieces.
    share
        Returns the share of the rows that Spark would shuffle.
    whole
        Whether streams must stay whole.

    Raises
    ------
    NoScanError
        The files cannot be divided, or tasks would read too much several times.
    """
    groups, (cores, size) = footers.groups, workers
    if not groups.rows.sum():
        return FilePieces((), timed=False, told="no piece")
    wanted, held = wanted_pieces(int(groups.rows.sum()), cores), int(groups.size.sum())
    division = _Division(plan, groups, cores, wanted, USUAL_BYTES if size is None else size, share, whole)
    if wanted == 1 and held <= division.most:
        return _one_piece(groups)
    clusters = _clusters(scan, footers, keys)
    if clusters is not None and _is_balanced(clusters, groups.rows, cores):
        return _by_key(clusters, groups, max(wanted, -(-held // division.most)))
    try:
        return _by_time(division)
    except NoScanError as fault:
        if not keys:
            return _undivided(division, f"{fault}, and the query has no keys")
        try:
            return _by_bucket(division)
        except NoScanError as other:
            raise NoScanError(f"{fault}, its files are not clustered by a key, and {other}") from None


def _one_piece(groups: RowGroups, why: str = "") -> FilePieces:
    """Return one piece of all row groups; `why` says in words why there is no other."""
    return FilePieces((Piece(np.arange(len(groups))),), timed=False, told=f"one piece{why}")


def _in_one_piece(division: _Division, turn: float, others: str) -> FilePieces | None:
    """Return one piece, unless the `others`, which take the share `turn` of its time, take much less; None if they do.

    None, too, if all events are more bytes than a slice may hold, or if rows are made of matches: that may take longer than
    all else, and cores share it.
    """
    if division.plan.settings.output != "count" or turn < HARDLY_LESS or int(division.groups.size.sum()) > division.most:
        return None
    return _one_piece(division.groups, f", since {others} would take {turn:.2f} × its time")


def turn_of_buckets(plan: AnyPlan, cores: int) -> float:
    """Return the time of tasks that each read all rows and match some of the streams, as a share of that of one task for all.

    It was measured where conditions between neighbours decide. Elsewhere it is the share of matching, as if reading took no time.
    """
    if isinstance(plan, EventPlan) and _neighbours_decide(plan):
        return (_SHARED_READING + _NEIGHBOURS / cores) / (1 + _NEIGHBOURS)
    return 1 / cores


def _neighbours_decide(plan: EventPlan) -> bool:
    """Return whether conditions between neighbours decide the matches: no event may repeat a variable or enter the next one."""
    variables = plan.query.variables
    repeated = [v for branch in plan.branches for v in branch.positives[:-1] if variables[v].minimum != variables[v].maximum]
    return "lift" in plan.pruning and not repeated and all(branch.lifted is not None for branch in plan.branches)


def wanted_pieces(rows: int, cores: int) -> int:
    """Return in how many pieces so many rows are read and matched soonest, if that does not read too much twice."""
    return max(1, min(cores, rows // FEWEST_ROWS), min(PIECES_PER_CORE * cores, rows // ROWS_OF_START))


def _reason_against_slices(division: _Division) -> str | None:
    if division.whole:
        return "slices=None leaves streams whole"
    window = division.plan.query.window
    if not isinstance(window, TimeWindow) and window is not None:
        return "a window of events cannot be cut by times"
    reason = reason_against_times(division.plan)
    return None if reason is None else f"a query {reason} cannot be cut by times"


def _clusters(scan: FileScan, footers: Footers, keys: Sequence[str]) -> Numbers | None:
    """Return for each row group the number of its cluster; no stream has events in two. None if none is known."""
    in_folders = [scan.folders[key] for key in keys if key in scan.folders]
    if in_folders:
        return _same_values(in_folders)[footers.groups.file]
    known = [_apart(bounds) for bounds in footers.keys]
    return max((each for each in known if each is not None), key=lambda each: int(each.max(initial=0)), default=None)


def _same_values(columns: Sequence[pa.Array]) -> Numbers:
    """Return numbers that are equal where the values of all columns are, NULLs being equal."""
    codes = [np.asarray(column.dictionary_encode("encode").indices) for column in columns]
    _, found = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    return found.reshape(-1).astype(np.int64)


def _apart(bounds: RowGroups) -> Numbers | None:
    """Return numbers of row groups that are equal where the ranges of a key overlap; None if a range is not known."""
    if not bounds.known.all() or bounds.missing.any():
        return None
    order = np.argsort(bounds.earliest, kind="stable")
    highest = np.maximum.accumulate(bounds.latest[order]) if len(order) else bounds.latest
    begins = np.concatenate([np.zeros(min(1, len(order)), np.bool_), bounds.earliest[order][1:] > highest[:-1]])
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(begins)
    return found


def _is_balanced(clusters: Numbers, rows: Numbers, cores: int) -> bool:
    """Return whether no cluster has much more rows than a core's share."""
    held = np.bincount(clusters, weights=rows)
    return bool(held.max(initial=0) * cores <= _LARGEST * held.sum())


def _by_key(clusters: Numbers, groups: RowGroups, wanted: int) -> FilePieces:
    """Return about `wanted` pieces of whole clusters, of about as many rows each."""
    held = np.bincount(clusters, weights=groups.rows)
    before = np.cumsum(held) - held
    of_cluster = np.floor(before * wanted / max(1.0, held.sum())).astype(np.int64)
    numbers = of_cluster[clusters]
    pieces = tuple(Piece(np.flatnonzero(numbers == number)) for number in np.unique(numbers).tolist())
    return FilePieces(pieces, timed=False, told=f"{len(pieces):,} pieces by key")


def _by_bucket(division: _Division) -> FilePieces:
    """Return pieces of all row groups and of some streams each, as many for each core as let a task hold :data:`LARGER` slices.

    It is one piece of all streams if that takes hardly longer.

    Raises
    ------
    NoScanError
        Spark's shuffle takes less time.
    """
    # of rows without a column that is read, the sizes are 0
    cores = min(division.wanted, division.cores)
    turns = max(1, -(-int(division.groups.size.sum()) // (cores * LARGER * division.most)))
    tasks = cores * turns
    refuse_readings(turns, cores, division.share(), f"{tasks:,} tasks by a hash of keys would each read all rows")
    alone = _in_one_piece(division, turn_of_buckets(division.plan, cores), f"{tasks:,} by a hash of keys")
    if alone is not None:
        return alone
    everything = np.arange(len(division.groups))
    pieces = tuple(Piece(everything, bucket=KeyBucket(number, tasks)) for number in range(tasks))
    return FilePieces(pieces, timed=False, told=f"{tasks:,} pieces by a hash of keys, which each read all rows")


def _undivided(division: _Division, fault: str) -> FilePieces:
    """Return one piece of all events, if Spark, too, would match them in one task; `fault` says in words why there are no more.

    Raises
    ------
    NoScanError
        Spark cuts the stream into slices, or its shuffle takes less time, or the events are more than a worker may hold.
    """
    size = int(division.groups.size.sum())
    if not _is_whole_anyway(division):
        raise NoScanError(fault)
    if size > LARGER * division.most:
        raise NoScanError(f"{fault}; one task would hold {size:,} bytes, and may hold {LARGER * division.most:,}")
    refuse_readings(1, division.cores, division.share(), f"{fault}; one task would read all rows")
    return _one_piece(division.groups, f", since {fault}")


def _is_whole_anyway(division: _Division) -> bool:
    """Return whether a stream without keys is in one task where Spark reads it, too: it is not cut, or its window is too long for that."""
    if _reason_against_slices(division) is not None:
        return True
    window, groups = division.plan.query.window, division.groups
    assert isinstance(window, TimeWindow), "checked before"
    held = groups.rows > 0
    span = groups.latest[held].max().item() - groups.earliest[held].min().item()
    return bool(FEWEST_WINDOWS * window.length >= span)


def _by_time(division: _Division) -> FilePieces:
    """Return slices of time, as many as are wanted if that does not read too much twice.

    It is one piece of all times if that takes hardly longer.

    Raises
    ------
    NoScanError
        The query cannot be cut, or slices take longer than Spark's scan, or are larger than a worker may hold.
    """
    reason = _reason_against_slices(division)
    if reason is not None:
        raise NoScanError(reason)
    plan, groups, cores = division.plan, division.groups, division.cores
    assert isinstance(plan.query.window, TimeWindow), "checked before"
    reads_outside = isinstance(plan, IntervalPlan)
    reach = SliceReach(plan.query.window.length, looks_back(plan))
    cut = choose_cut(groups, reach, min(division.wanted, cores) if reads_outside else division.wanted, cores, division.most)
    turn = cut.longest_turn(cores) / int(groups.rows.sum())
    alone = _in_one_piece(division, turn, f"{len(cut.slices):,} slices of time")
    if alone is not None:
        return alone
    pieces = tuple(map(_timed, (each for each in cut.slices if len(each.groups))))
    told = f"{len(pieces):,} slices of time, which read {cut.overlap:.2f} × the rows"
    if not reads_outside:
        return FilePieces(pieces, timed=True, told=told)
    known, told = _with_outside(plan, groups, pieces), f"{told}, and back to the event before of each stream"
    if plan.query.partition_by:
        # a stream that begins in a slice has it read all before; without keys an event before is in the row group before
        _refuse_outside(known, groups, min(division.wanted, cores), division.share())
    return FilePieces(known, timed=True, told=f"{told}, and on to one behind" if _ends_by_gaps(plan) else told)


def _ends_by_gaps(plan: AnyPlan) -> bool:
    """Return whether an event behind a slice, however late it comes, shows that a situation has ended; early detection does not wait."""
    return isinstance(plan, IntervalPlan) and plan.query.gap is not None and not plan.query.early


def _with_outside(plan: AnyPlan, groups: RowGroups, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return slices of situations with the row groups that have events outside them."""
    found = tuple(replace(piece, earlier=_earlier(groups, piece.own.begin)) for piece in pieces)
    return tuple(replace(piece, later=_later(groups, piece.high)) for piece in found) if _ends_by_gaps(plan) else found


def _refuse_outside(pieces: Sequence[Piece], groups: RowGroups, cores: int, share: float) -> None:
    """Raise NoScanError if slices that each read all outside them take longer than Spark's shuffle."""
    rows = [int(groups.rows[np.concatenate([piece.places, piece.earlier, piece.later])].sum()) for piece in pieces]
    most = longest_turn(rows, cores) / int(groups.rows.sum())
    told = f"{len(pieces):,} slices of time may have a core read all rows {most:.1f} times, as far as streams go"
    refuse_readings(most, cores, share, told)


def _earlier(groups: RowGroups, begin: Tick | None) -> Numbers:
    """Return the row groups that may have an event before a time, by their latest time, in descending order."""
    if begin is None:
        return _NONE
    found = np.flatnonzero((groups.rows > 0) & (groups.earliest < begin))
    return found[np.argsort(groups.latest[found], kind="stable")[::-1]]


def _later(groups: RowGroups, high: Tick | None) -> Numbers:
    """Return the row groups that may have an event behind a time, by their earliest time."""
    if high is None:
        return _NONE
    found = np.flatnonzero((groups.rows > 0) & (groups.latest > high))
    return found[np.argsort(groups.earliest[found], kind="stable")]


def choose_cut(groups: RowGroups, reach: SliceReach, wanted: int, cores: int, most: int) -> TimeCut:
    """Return the slices that cores read and match soonest.

    These are as many as are `wanted`, or fewer that read less twice, each of at most `most` bytes. If such slices take longer than
    Spark's scan, they may be some times as large.

    Raises
    ------
    NoScanError
        All slices take longer than Spark's scan, or are larger; the message says why.
    """
    at_once = min(wanted, cores)
    numbers = sorted({min(wanted, cores * each) for each in range(1, PIECES_PER_CORE + 1)}, reverse=True)
    cuts = [*(cut_by_number(groups, reach, number) for number in numbers), cut_by_budget(groups, reach, Most(most))]
    costs = {cut: cut.longest_turn(at_once) * at_once / int(groups.rows.sum()) for cut in cuts}
    for allowed in (most, LARGER * most):
        held = [cut for cut in cuts if cut.largest <= allowed and costs[cut] <= DEAREST]
        if held:
            return next((cut for cut in held if costs[cut] <= CHEAP), min(held, key=costs.__getitem__))
    raise NoScanError(_reason_against_cuts(min(cuts, key=costs.__getitem__), min(costs.values()), at_once, most))


def _reason_against_cuts(cut: TimeCut, cost: float, at_once: int, most: int) -> str:
    """Return why Spark's scan is better than the slices that are read soonest."""
    if cost <= DEAREST:
        return f"a slice of time would hold {cut.largest:,} bytes, and a worker may hold {most:,}; smaller row groups help"
    if len(cut.slices) < at_once:
        return f"its row groups can be cut into {len(cut.slices)} slices of time only; smaller row groups give more"
    return f"times overlap so much that cores would read {cost:.1f} × their share of the rows in slices"


def _timed(cut: FileSlice) -> Piece:
    """Return a slice as a piece, with bounds that no event which bears on its matches is beyond."""
    low = None if cut.begin is None else cut.low
    high = None if cut.end is None else cut.high
    reached = None if cut.begin is None else cut.reached
    return Piece(cut.groups, TimeSlice(cut.begin, cut.end), low, high, reached)
