"""Match row patterns over rows that keep coming: report the matches that are certain, and keep the rows that others depend on.

The search goes through each partition as it does over all rows. It stops at the first row of which it is not certain which match
begins there, and goes on from there at the next run. Rows that are not known yet may fit any variable. So a match is certain
once no way to match that is preferred to it could take such a row: with its last row if it is reluctant or cannot be
longer, with the row that ends its run, or when its window is over. The row at which the search stops has a window
that is not over. Rows are kept from it on, and before it as many as the pattern reads by PREV.

What is known of a partition stands in columns beside its rows, so that rows and marks are kept, saved and given up together:
whether the search has passed the row, whether a match has it, and the number of matches of the partition so far.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.row_patterns.answers import returned_rows
from gpu_cep.engine.row_patterns.columns import row_columns
from gpu_cep.engine.row_patterns.found import SearchProgress
from gpu_cep.engine.row_patterns.matching import find_certain_matches
from gpu_cep.engine.row_patterns.ordering import OrderedRows, order_rows
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.engine.row_patterns.shown import covered_rows
from gpu_cep.engine.streaming.certainty import earliest_open
from gpu_cep.engine.streaming.kept_events import count_until, few_chunks
from gpu_cep.engine.streaming.state import StreamState, Times
from gpu_cep.plan.row_patterns.certainty import rows_before
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.compile.launch import threads_of

MARKS = (pa.field("passed", pa.bool_()), pa.field("matched", pa.bool_()), pa.field("matches", pa.int64()))


class Marks(NamedTuple):
    """What is known of rows: whether the search has passed them, whether a match has them, and how many matches came before."""

    passed: npt.NDArray[np.bool_]
    matched: npt.NDArray[np.bool_]
    matches: Indices


def marked_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the rows that are kept."""
    return pa.schema([*schema, *MARKS])


def marked(rows: pa.Table) -> pa.Table:
    """Return rows that have come with their marks."""
    return with_marks(rows, new_marks(rows.num_rows))


def new_marks(rows: int, *, passed: bool = False) -> Marks:
    """Return the marks of so many rows that have come, or that the search has `passed` and no match depends on."""
    return Marks(np.full(rows, passed), np.zeros(rows, np.bool_), np.zeros(rows, np.int64))


def certain_rows(
    plan: RowPlan, state: StreamState, until: Tick | None, threads: int | None, max_steps: int | None, profile: Profile | None
) -> tuple[StreamState, pa.Table]:  # fmt: skip
    """Return the state that later matches depend on, and the rows of the result that have become certain.

    `until`: the time up to which rows are known; None: no row comes any more.
    """
    threads = threads_of(threads)
    known = len(state.times) if until is None else count_until(state, until)
    rows, marks = without_marks(state.events.slice(0, known))
    columns = row_columns(plan, rows, threads, state.numbers[:known])
    ordered = order_rows(plan.bound, columns, threads)
    given = marks if ordered.rows is None else _picked(marks, ordered.rows)
    run, begun = RowRun(plan, columns, ordered, threads), _begun(ordered, given)
    opened = None if until is None else _opened(plan, ordered, state.times[:known], until)
    matches = find_certain_matches(run, begun, opened, max_steps)
    left = np.arange(len(ordered)) >= _of_rows(begun.firsts, ordered)
    covered = covered_rows(matches, len(ordered)) | given.matched
    unmatched = np.flatnonzero(~covered & ~given.passed & ~left) if plan.bound.query.rows == "with unmatched" else None
    found = returned_rows(run, matches, unmatched)
    if profile is not None:
        profile.add("rows", len(ordered) - int(given.passed.sum()))
        profile.add("matches", len(matches))
    if until is None:
        return replace(state, events=state.events.slice(0, 0), times=state.times[:0], numbers=state.numbers[:0]), found
    counts = begun.counts + np.diff(np.searchsorted(matches.firsts, ordered.offsets))
    kept = np.arange(len(ordered)) >= _of_rows(begun.firsts - rows_before(plan), ordered)
    return _kept(state, rows, ordered, Marks(~left, covered, _of_rows(counts, ordered)), kept), found


def _begun(ordered: OrderedRows, marks: Marks) -> SearchProgress:
    """Return where the search of each partition goes on."""
    firsts = ordered.offsets[:-1]
    if not firsts.size:
        return SearchProgress(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return SearchProgress(firsts + np.add.reduceat(marks.passed, firsts, dtype=np.int64), np.maximum.reduceat(marks.matches, firsts))


def _opened(plan: RowPlan, ordered: OrderedRows, times: Times, until: Tick) -> npt.NDArray[np.bool_]:
    """Return whether further rows may come in the window that begins with each ordered row."""
    match plan.bound.window:
        case TimeWindow(length=length):
            return np.asarray(ordered.take(times) >= earliest_open(until, length))
        case CountWindow(events=rows):
            return _of_rows(ordered.offsets[1:], ordered) - np.arange(len(ordered)) < rows
    raise AssertionError("a row pattern without a window is refused")


def _of_rows(values: Indices, ordered: OrderedRows) -> Indices:
    """Return the value of its partition for each row."""
    return np.repeat(values, np.diff(ordered.offsets))


def _kept(state: StreamState, rows: pa.Table, ordered: OrderedRows, marks: Marks, kept: npt.NDArray[np.bool_]) -> StreamState:
    """Return the state with only those of the known rows that are `kept`, in the order of time, with their marks."""
    places = ordered.numbers(np.flatnonzero(kept))
    order = np.argsort(places)
    places = places[order]
    own = with_marks(rows.take(pa.array(places)), _picked(marks, np.flatnonzero(kept)[order]))
    known = rows.num_rows
    return replace(
        state,
        events=few_chunks(pa.concat_tables([own, state.events.slice(known)])),
        times=np.concatenate([state.times[places], state.times[known:]]),
        numbers=np.concatenate([state.numbers[places], state.numbers[known:]]),
    )


def _picked(marks: Marks, rows: Indices) -> Marks:
    return Marks(marks.passed[rows], marks.matched[rows], marks.matches[rows])


def with_marks(rows: pa.Table, marks: Marks) -> pa.Table:
    """Return rows with their marks behind them."""
    return pa.Table.from_arrays([*rows.columns, *map(pa.array, marks)], schema=marked_schema(rows.schema))


def without_marks(kept: pa.Table) -> tuple[pa.Table, Marks]:
    """Return rows without the marks behind them, and these."""
    width = kept.num_columns - len(MARKS)
    marks = (kept.column(number).to_numpy() for number in range(width, kept.num_columns))
    return kept.select(range(width)), Marks(*marks)
