"""Run a query over events of any form, once or by kind of row: at once, slice by slice, or batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.timeouts import by_kind
from gpu_cep.queries.row_plans import is_row_pattern
from gpu_cep.queries.runs import (
    MatchCall,
    as_reader,
    is_path,
    open_files,
    open_source,
    plan_events,
    read_rows,
    read_run,
    run_plan,
    run_row_pattern,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.engine.input.input_events import InputEvents
    from gpu_cep.engine.input.sources import Source
    from gpu_cep.engine.slices.sliced_plan import SlicedRun
    from gpu_cep.lang.row_patterns.ast import RowPatternQuery
    from gpu_cep.live.sliced_rows import RowSlices
    from gpu_cep.plan.interval_plan import AnyPlan

Result = TypeVar("Result")


def read_matches(call: MatchCall, events: Any) -> pa.RecordBatchReader:
    """Return a reader of the result, which is found when it is read; raises as :func:`gpu_cep.match`."""
    from gpu_cep.engine.output.readers import reader_of

    events = as_reader(events)
    if is_row_pattern(call.pattern):
        return _read_rows(call, call.pattern, events)
    reader = _read_live(call, events)
    if reader is not None:
        return reader
    readers = [_read_once(each, own) for each, own in _each_kind(call, events)]
    return readers[0] if len(readers) == 1 else reader_of(readers[0].schema, map(_table_of, chain.from_iterable(readers)))


def find_matches(call: MatchCall, events: Any) -> pa.Table:
    """Return the result as a table; raises as :func:`gpu_cep.match`."""
    import pyarrow as pa

    events = as_reader(events)
    if is_row_pattern(call.pattern):
        return _find_rows(call, call.pattern, events)
    if call.complete_until is not None:
        reader = _read_live(call, events)
        assert reader is not None, "events of any form are complete until a time"
        return reader.read_all()
    tables = [_find_once(each, own) for each, own in _each_kind(call, events)]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _find_rows(call: MatchCall, pattern: str | RowPatternQuery, events: Any) -> pa.Table:
    """Return the rows that MATCH_RECOGNIZE returns."""
    from gpu_cep.live.sliced_rows import match_row_slices

    sliced = _row_slices(call, pattern, events)
    return _rows_at_once(call, pattern, events) if sliced is None else match_row_slices(sliced)


def _read_rows(call: MatchCall, pattern: str | RowPatternQuery, events: Any) -> pa.RecordBatchReader:
    """Return a reader of the rows that MATCH_RECOGNIZE returns, batch by batch or slice by slice where that can be."""
    import pyarrow as pa

    from gpu_cep.live.sliced_rows import read_row_slices

    sliced = _row_slices(call, pattern, events)
    if sliced is not None:
        return read_row_slices(sliced)
    live = _read_live(call, events) if isinstance(events, pa.RecordBatchReader) else None
    return _rows_at_once(call, pattern, events).to_reader() if live is None else live


def _row_slices(call: MatchCall, pattern: str | RowPatternQuery, events: Any) -> RowSlices | None:
    """Return how rows are read in slices of time; None if they are read at once."""
    from gpu_cep.live.sliced_rows import decide_row_reading, make_row_run

    if call.complete_until is not None:
        hint = "push the rows into gpu_cep.stream(pattern, schema), and advance() it to that time"
        raise UnsupportedError([Diagnostic("complete_until= is not supported for MATCH_RECOGNIZE", hint=hint)])
    source = None if call.memory is None else open_source(events)
    if source is None or call.memory is None:
        return None
    reading = decide_row_reading(source, pattern, call.options, call.settings, call.memory)
    return None if reading is None else replace(make_row_run(reading, call.memory), threads=call.threads, profile=call.profile)


def _rows_at_once(call: MatchCall, pattern: str | RowPatternQuery, events: Any) -> pa.Table:
    """Return the rows that MATCH_RECOGNIZE returns over rows that are read at once."""
    if call.memory is not None and (is_path(events) or open_source(events) is not None):
        from gpu_cep.queries.sliced_plans import refuse_large

        events = read_rows(events, pattern, call.options)
        refuse_large(events, call.memory)
    return run_row_pattern(call, pattern, events)


def _read_live(call: MatchCall, events: Any) -> pa.RecordBatchReader | None:
    """Return a reader of what is certain of events that are complete until a time, or that come in batches; None for others."""
    from gpu_cep.live.runs import match_live

    return match_live(call, events)


def _each_kind(call: MatchCall, events: Any) -> Iterator[tuple[MatchCall, Any]]:
    """Yield a call for each kind of row that is asked for, and the events, which are read once if they can be read only once."""
    if not call.settings.timeouts:
        yield call, events
        return
    import pyarrow as pa

    kept = events.read_all() if isinstance(events, pa.RecordBatchReader) else events
    for settings in by_kind(call.settings):
        yield replace(call, settings=settings), kept


def _find_once(call: MatchCall, events: Any) -> pa.Table:
    """Return the result of a call for rows of one kind."""
    return _sliced_or_whole(call, events, _run_slices, run_plan)


def _run_slices(sliced: SlicedRun) -> pa.Table:
    from gpu_cep.queries.sliced_runs import run_slices

    return run_slices(sliced)


def _read_once(call: MatchCall, events: Any) -> pa.RecordBatchReader:
    """Return a reader of the result of a call for rows of one kind."""
    from gpu_cep.queries.sliced_runs import read_slices

    return _sliced_or_whole(call, events, read_slices, read_run)


def _sliced_or_whole(
    call: MatchCall, events: Any, of_slices: Callable[[SlicedRun], Result], of_whole: Callable[[AnyPlan, MatchCall, InputEvents], Result]
) -> Result:  # fmt: skip
    """Return what `of_slices` gives if files are read in slices, and else what `of_whole` gives."""
    source = open_files(events, call.memory)
    if source is not None:
        from gpu_cep.queries.sliced_plans import plan_slices

        sliced = plan_slices(call, source)
        if sliced is not None:
            return of_slices(sliced)
    plan, read = _plan_whole(call, events, source)
    return of_whole(plan, call, read)


def _plan_whole(call: MatchCall, events: Any, source: Source | None) -> tuple[AnyPlan, InputEvents]:
    """Return the plan over events that are read at once, and these events."""
    plan, read = plan_events(call, events if source is None else source)
    if call.memory is not None and (source is not None or is_path(events)):
        from gpu_cep.queries.sliced_plans import refuse_large

        refuse_large(read.table, call.memory)
    return plan, read


def _table_of(batch: pa.RecordBatch) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([batch])
