"""Decide whether files are read at once or in slices of time, by the memory that there is."""

from __future__ import annotations

from typing import NamedTuple

from gpu_cep.engine.accounting.host_memory import free_memory
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.row_groups import RowGroups
from gpu_cep.engine.input.time_cut import Most, SliceReach, TimeCut, cut_by_budget
from gpu_cep.engine.slices.in_order import SPANS_PER_SLICE, TimeSample, bring_in_order, sample_times, spans_for
from gpu_cep.engine.slices.sliced_plan import reach_of
from gpu_cep.plan.interval_plan import AnyPlan

# Share of the free memory that events may take if the caller does not say how much.
SHARE = 0.5
# The same of events that would have to be written in order first.
LAST_SHARE = 0.9
# Bytes at the peak for each byte of events: events that are read at once, or of a slice, beside which the next one is read.
AT_ONCE, IN_SLICES = 3, 4
# The most rows that slices may read together, for each row that there is.
MOST_OVERLAP = 3.0
# Bytes of events in a slice that is worked on quickly: its arrays are allocated anew from memory that was just given back.
# If slices of this size read more than so many rows for each row, larger ones are taken.
QUICK, LITTLE_OVERLAP = 1 << 26, 1.15


class Rewrite(NamedTuple):
    """How files are written in the order of time before they are cut: in so many `spans`, by a sample of their times."""

    sample: TimeSample
    spans: int


class FileReading(NamedTuple):
    """How files are read: in the slices of `cut`, or at once (None). `needed`: the bytes that this takes at the peak.

    `files` are the files, or others that hold the same events in order.
    `allowed` is how many bytes may be taken. If there is a `rewrite`, :func:`bring_into_slices` makes the slices.
    """

    files: GroupedFiles
    cut: TimeCut | None
    needed: int
    allowed: int = 0
    rewrite: Rewrite | None = None

    @property
    def rows_of_a_slice(self) -> int:
        """Return about the most rows that a slice has."""
        groups = self.files.groups
        if self.cut is not None:
            return max(int(groups.rows[each.groups].sum()) for each in self.cut.slices)
        return int(groups.rows.sum()) * self.allowed // max(1, IN_SLICES * bytes_of(groups))

    @property
    def told(self) -> str:
        """Return how the files are read, in words."""
        at_once = f"the events would take about {mebibytes(AT_ONCE * bytes_of(self.files.groups))} at once"
        allowed = f"of {mebibytes(self.allowed)} that they may take"
        if self.rewrite is not None:
            spans = f"{self.rewrite.spans:,} spans"
            return f"files are written in the order of time first, in {spans}, and read in slices: {at_once}, {allowed}"
        if self.cut is None:
            return f"files are read at once: that takes about {mebibytes(self.needed)}, {allowed}"
        cut = self.cut
        slices = f"{len(cut.slices):,} slices of time of at most {mebibytes(cut.largest)}, which hold {cut.overlap:.2f} × the rows"
        return f"files are read in {slices}: {at_once}, {allowed}"


def choose_cut(files: GroupedFiles, plan: AnyPlan, memory: int | None) -> FileReading:
    """Return how files are to be read within `memory` bytes; None stands for a share of what is free.

    Files that lie in no order of time must be written in order first if they do not fit.

    Raises
    ------
    EventError
        Files cannot be read.
    """
    needed, free = AT_ONCE * bytes_of(files.groups), free_memory()
    allowed = _allowed(memory, free)
    if needed <= allowed:
        return FileReading(files, None, needed, allowed)
    reach, most = reach_of(plan), allowed // IN_SLICES
    cut = _quick_cut(files.groups, reach, most)
    if cut.overlap <= MOST_OVERLAP and cut.largest <= most:
        return FileReading(files, cut, IN_SLICES * cut.largest, allowed)
    if memory is None and needed <= LAST_SHARE * free:
        return FileReading(files, None, needed, int(LAST_SHARE * free))
    return _in_order(files, plan, allowed, needed)


def _in_order(files: GroupedFiles, plan: AnyPlan, allowed: int, needed: int) -> FileReading:
    """Return the choice for files that must be written in order first; they are read at once if windows are too long for that."""
    query, reach, most = plan.query, reach_of(plan), allowed // IN_SLICES
    timestamp, size, rows = query.column_name(query.timestamp), bytes_of(files.groups), int(files.groups.rows.sum())
    sample = sample_times(files, timestamp)
    # a slice has a window and at least a span
    least = sample.most_within(reach) * size // max(1, rows) + most // SPANS_PER_SLICE
    if least > most or int(files.groups.size.max(initial=0)) > allowed // 2:
        return FileReading(files, None, needed, allowed)
    return FileReading(files, None, IN_SLICES * least, allowed, Rewrite(sample, spans_for(size, most, rows)))


def bring_into_slices(choice: FileReading, plan: AnyPlan) -> FileReading:
    """Return the choice with its slices; files that must be are written in order for it, to temporary files.

    Raises
    ------
    EventError
        Files cannot be read or written.
    """
    if choice.rewrite is None:
        return choice
    sample, spans = choice.rewrite
    ordered = bring_in_order(choice.files, plan, sample, choice.allowed, spans)
    cut = _quick_cut(ordered.groups, reach_of(plan), choice.allowed // IN_SLICES)
    return FileReading(ordered, cut, IN_SLICES * cut.largest, choice.allowed)


def _quick_cut(groups: RowGroups, reach: SliceReach, most: int) -> TimeCut:
    """Return slices of at most so many bytes: small ones, or larger ones if these overlap less."""
    size = min(QUICK, most)
    cut = cut_by_budget(groups, reach, Most(size))
    while cut.overlap > LITTLE_OVERLAP and size < most:
        size = min(2 * size, most)
        cut = cut_by_budget(groups, reach, Most(size))
    return cut


def fit_at_once(groups: RowGroups, memory: int | None) -> bool:
    """Return whether row groups may be read at once within `memory` bytes; None stands for a share of what is free."""
    return AT_ONCE * bytes_of(groups) <= _allowed(memory, free_memory())


def _allowed(memory: int | None, free: int) -> int:
    return int(SHARE * free) if memory is None else memory


def bytes_of(groups: RowGroups) -> int:
    """Return the bytes that row groups take in memory."""
    return int(groups.size.sum())


def mebibytes(number: int) -> str:
    """Return a number of bytes as text that `memory=` takes, rounded up."""
    return f"{max(1, -(-number // 2**20))}MiB"
