"""Match row patterns over files slice of time by slice of time, as a stream does whose rows come in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.options import Options
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.row_numbers import Rows
from gpu_cep.engine.input.sources import Source
from gpu_cep.engine.input.ticks import preceding
from gpu_cep.engine.input.time_cut import FileSlice, TimeCut
from gpu_cep.engine.output.readers import reader_of
from gpu_cep.engine.row_patterns.ordering import order_rows
from gpu_cep.engine.slices.budget import AT_ONCE, FileReading, bring_into_slices, bytes_of, choose_cut
from gpu_cep.engine.slices.loading import load_ahead
from gpu_cep.engine.slices.untimed import refuse_known_missing
from gpu_cep.engine.streaming.kept_events import add_events
from gpu_cep.engine.streaming.row_patterns import marked
from gpu_cep.engine.streaming.state import StreamState, first_state
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.live.clocks import times_of
from gpu_cep.live.plans import Arrival, plan_live
from gpu_cep.live.queries import LiveQuery
from gpu_cep.live.steps import certain_matches
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.row_plans import bind_rows, columns_of_rows
from gpu_cep.queries.sliced_plans import LONG_WINDOW, refuse_beyond
from gpu_cep_kernels.compile.launch import threads_of


@dataclass(frozen=True, slots=True, eq=False)
class RowReading:
    """A row pattern, its plan over files that are cut, and how these are read."""

    live: LiveQuery
    plan: EventPlan
    choice: FileReading


@dataclass(frozen=True, slots=True, eq=False)
class RowSlices:
    """A row pattern, the files that it is asked of, and the slices of time into which they are cut."""

    live: LiveQuery
    files: GroupedFiles
    cut: TimeCut
    threads: int | None = None
    profile: Profile | None = None


def decide_row_reading(
    source: Source, pattern: str | RowPatternQuery, options: Options, settings: Settings, memory: int
) -> RowReading | None:  # fmt: skip
    """Return how files are read for a row pattern within `memory` bytes; None if they fit, or cannot be read by row groups.

    Raises
    ------
    UnsupportedError
        The rows do not fit, and the pattern cannot be matched slice by slice, or a window is longer than what fits.
    CepError
        Any error of the query, and EventError if the files cannot be read or a row has no time.
    """
    names = columns_of_rows(pattern, source.schema, options)
    ordered = bind_rows(pattern, source.schema, options).order_by
    files = source.group(names, source.schema.names[ordered[0].column] if ordered else names[0], None)
    if files is None or AT_ONCE * bytes_of(files.groups) <= memory:
        return None
    live = plan_live(pattern, source.schema, options, settings, Arrival(late="error", in_order=True, asked="little memory="))
    if not isinstance(live.window, TimeWindow):
        message = "little memory= with WITHIN a number of rows is not supported"
        raise UnsupportedError([Diagnostic(message, hint="give WITHIN a length of time, or leave memory= out")])
    plan = _timed(live)
    refuse_known_missing(plan, files)
    choice = choose_cut(files, plan, memory)
    refuse_beyond(memory, choice.needed, LONG_WINDOW)
    return RowReading(live, plan, choice)


def make_row_run(reading: RowReading, memory: int) -> RowSlices:
    """Return the run over the slices that were decided on; raises as :func:`decide_row_reading`."""
    choice = bring_into_slices(reading.choice, reading.plan)
    refuse_beyond(memory, choice.needed, LONG_WINDOW)
    assert choice.cut is not None, "files that do not fit are cut"
    return RowSlices(reading.live, choice.files, choice.cut)


def _timed(live: LiveQuery) -> EventPlan:
    """Return the plan of the conditions on single rows with the window of the row pattern, by which files are cut."""
    assert isinstance(live.plan, EventPlan), "rows are labelled as events are"
    return replace(live.plan, query=replace(live.plan.query, window=live.window))


def match_row_slices(run: RowSlices) -> pa.Table:
    """Return the rows that MATCH_RECOGNIZE returns over all rows of the files, in the order of partitions."""
    found = pa.concat_tables(_found(run))
    assert run.live.rows is not None, "the query is a row pattern"
    bound, labels = run.live.rows.bound, run.live.rows.labels
    if not bound.partition_by:
        return found
    # the keys are the first columns of a result
    place = {column: number for number, column in enumerate(bound.partition_by)}
    columns = [
        found.column(place[column]) if column in place else pa.nulls(len(found), field.type) for column, field in enumerate(run.live.schema)
    ]
    rows = pa.Table.from_arrays(columns, schema=run.live.schema)
    columns_of_keys = EventColumns(rows, labels.query, labels.dictionaries, threads=run.threads)
    order = order_rows(replace(bound, order_by=()), columns_of_keys, threads_of(run.threads))
    return found if order.rows is None else found.take(pa.array(order.rows))


def read_row_slices(run: RowSlices) -> pa.RecordBatchReader:
    """Return a reader of the rows that MATCH_RECOGNIZE returns, as slices make them certain."""
    return reader_of(run.live.result, _found(run))


def _found(run: RowSlices) -> Iterator[pa.Table]:
    """Yield the rows of the result that each slice makes certain; the next slice is read while one is matched.

    Raises
    ------
    EventError
        The files cannot be read, or a row has no time.
    CepError
        Any other error of a run.
    """
    places, state = _places(run), first_state(run.live.kept)
    if run.profile is not None:
        rows = run.files.groups.rows
        run.profile.add_slices(len(places), sum(int(rows[own].sum()) for own in places), int(rows.sum()))
    loads = load_ahead(run.files, places)
    try:
        for own in run.cut.slices:
            # a part is not held while the next one is awaited
            state = _with_rows(run.live, state, next(loads).part, own)
            state, found = certain_matches(run.live, state, Resources(run.threads, run.profile))
            yield found
    finally:
        loads.close()
        run.files.close()


def _places(run: RowSlices) -> list[Rows]:
    """Return the places of the row groups of each slice; rows behind it are read with their own slice."""
    earliest = run.files.groups.earliest
    return [own.groups if own.end is None else own.groups[earliest[own.groups] < own.end] for own in run.cut.slices]


def _with_rows(live: LiveQuery, state: StreamState, part: PartOfFiles, own: FileSlice) -> StreamState:
    """Return the state with the rows of a slice, after which rows are known up to its end."""
    assert part.numbers is not None, "the rows of slices are numbered"
    table = part.table.select(live.schema.names).cast(live.schema)
    times = times_of(live, table)
    inside = np.flatnonzero(TimeSlice(own.begin, own.end).holds(times))
    if len(inside) < len(times):
        table, times = table.take(pa.array(inside)), times[inside]
    clock = replace(state.clock, finished=True) if own.end is None else replace(state.clock, watermark=preceding(own.end))
    return replace(add_events(state, marked(table), times, part.numbers[inside]), clock=clock)
