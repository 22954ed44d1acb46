"""Find from which states a match can still end, row by row, and where windows end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.automaton_tables import reach_tables
from gpu_cep.engine.row_patterns.neighbour_columns import Labels
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep.engine.row_patterns.pieces import is_cut
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.plan.row_patterns.automaton import ACCEPT
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.row_patterns.reach import (
    find_earliest_ends,
    limit_by_rows,
    limit_by_times,
    mark_reach,
    mark_wide_reach,
    mend_earliest_ends,
    mend_reach,
    mend_wide_reach,
)
from gpu_cep_kernels.row_patterns.tables import PartitionPieces, Reach

_NO_ENDS = np.empty((0, 0), np.int32)
_NO_LIMITS = np.empty(0, np.int64)
_NO_WORDS = np.empty((0, 0), np.uint8)


def find_reach(run: RowRun, pieces: PartitionPieces, labels: Labels, opened: npt.NDArray[np.bool_] | None = None) -> Reach:
    """Return from which states a match can still end: anywhere in the partition, or with a window in which row.

    `opened`: whether rows that are not known yet may come in the window that begins with each row (None: in none). The last row
    of such a window is the one behind the partition, and states from which these rows can be mapped lead to an end there.
    """
    plan, ordered, automaton, threads = run.plan, run.ordered, run.automaton, run.threads
    parts = stream_slices(pieces.offsets, threads)
    if plan.bound.window is not None:
        earliest = np.empty((len(ordered), len(automaton.ends)), np.int32)
        none = earliest[:0]
        spread(lambda span: find_earliest_ends(*span, pieces, labels, automaton, opened is not None, none, earliest), parts, threads)
        if is_cut(pieces):
            mend_earliest_ends(pieces, labels, automaton, earliest)
        limits = _limits(run, pieces, labels)
        return Reach(_NO_WORDS, earliest, limits if opened is None else _opened_limits(limits, opened, ordered))
    tables = reach_tables(plan.automaton, labels.dtype)
    width = tables.before.shape[1] if tables.wide else 1
    words = np.empty((len(ordered), width), tables.fits.dtype)
    mark: Any = mark_wide_reach if tables.wide else mark_reach
    given = tables if tables.wide else (*tables, words[:0, 0])
    spread(lambda span: mark(*span, pieces, labels, *given, words), parts, threads)
    if is_cut(pieces) and tables.wide:
        mend_wide_reach(pieces, labels, tables.fits, tables.before, tables.accepts, words, np.empty(width, np.uint64))
    elif is_cut(pieces):
        mend_reach(pieces, labels, tables.fits, tables.before, tables.accepts, words)
    return Reach(words, _NO_ENDS, _NO_LIMITS)


def _opened_limits(limits: Indices, opened: npt.NDArray[np.bool_], ordered: OrderedRows) -> Indices:
    """Return the last rows of windows, the row behind the partition for those in which others may come."""
    ends = np.repeat(ordered.offsets[1:], np.diff(ordered.offsets))
    return np.where(opened & (limits == ends - 1), ends, limits)


def _limits(run: RowRun, pieces: PartitionPieces, labels: Labels) -> Indices:
    """Return the last row of the window that begins with each row; the row before it if it lies in none, or no match begins there."""
    parts, threads = stream_slices(pieces.offsets, run.threads), run.threads
    limits = np.empty(len(run.ordered), np.int64)
    window = run.plan.bound.window
    if isinstance(window, CountWindow):
        rows = min(window.events, len(run.ordered))
        spread(lambda span: limit_by_rows(*span, pieces, rows, limits), parts, threads)
        return limits
    clock, starting = row_clock(run), starting_label(run.plan, labels.dtype)
    spread(lambda span: limit_by_times(*span, pieces, labels, starting, *clock, limits), parts, threads)
    return limits


def starting_label(plan: RowPlan, label: np.dtype[Any]) -> Any:
    """Return the label of all variables to which the first row of a match may be mapped."""
    starts = {*plan.automaton.starts_first, *plan.automaton.starts_later} - {ACCEPT}
    return label.type(sum(1 << variable for variable in {plan.automaton.variable[q] for q in starts}))


class WindowClock(NamedTuple):
    """Hold the times of the ordered rows, where they are missing (empty: nowhere), and the length of a window."""

    times: Any
    missing: npt.NDArray[np.bool_]
    length: Any


def row_clock(run: RowRun) -> WindowClock:
    """Return the clock of a window of time.

    Times are float64, or uint64 whose differences are right also where those of int64 overflow.
    """
    window, columns, ordered = run.plan.bound.window, run.columns, run.ordered
    assert isinstance(window, TimeWindow), "a window has a length"
    column = run.plan.bound.order_by[0].column
    times, nulls = ordered.take(columns.values(column)), columns.null_mask(column)
    missing = np.empty(0, np.bool_) if nulls is None else ordered.take(nulls)
    if times.dtype.kind == "f":
        return WindowClock(times.astype(np.float64, copy=False), missing, np.float64(window.length))
    return WindowClock(times.astype(np.int64, copy=False).view(np.uint64), missing, np.uint64(window.length))
