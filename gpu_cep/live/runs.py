"""Run a query as a stream does, over batches that come one after the other, or over events that are complete until a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gpu_cep.engine.accounting.match_budget import Spent
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.input.batch_readers import tables_of
from gpu_cep.engine.input.encodings import decode_schema
from gpu_cep.engine.input.read_tables import read_events, to_host
from gpu_cep.engine.input.times import lacks_times, type_times
from gpu_cep.engine.output.readers import reader_of
from gpu_cep.engine.slices.assembly import add_up
from gpu_cep.engine.slices.sliced_plan import SlicedPlan
from gpu_cep.engine.streaming.state import first_state
from gpu_cep.errors import FEWER_EVENTS, EventError, UnsupportedError, ending_in
from gpu_cep.live.clocks import is_due, ticks_of
from gpu_cep.live.plans import Arrival, plan_live
from gpu_cep.live.queries import LiveQuery
from gpu_cep.live.steps import certain_matches, push_events
from gpu_cep.queries.plans import as_query
from gpu_cep.queries.runs import MatchCall, open_source
from gpu_cep.queries.sliced_plans import refuse_large

# Events that are worth a run of the engine.
_WORTH_A_RUN = 1 << 16


def match_live(call: MatchCall, events: Any) -> pa.RecordBatchReader | None:
    """Return a reader of the matches of events that are complete until a time, or of batches; None for other events.

    Raises as :func:`match_until` and :func:`plan_batches`.
    """
    if call.complete_until is not None:
        return match_until(call, events).to_reader()
    live = plan_batches(call, events) if isinstance(events, pa.RecordBatchReader) else None
    return None if live is None else read_batches(live, events, call.threads, call.profile)


def plan_batches(call: MatchCall, reader: pa.RecordBatchReader) -> LiveQuery | None:
    """Return how a call's query is run over batches one after the other; None if the events must be read at once.

    Raises any error of the query.
    """
    schema = decode_schema(reader.schema)
    if lacks_times(schema, call.options):
        return None
    try:
        return plan_live(call.pattern, schema, call.options, call.settings, Arrival(late="error", in_order=True))
    except UnsupportedError:
        # if there is another reason, a run over all events says so
        return None


def read_batches(live: LiveQuery, reader: pa.RecordBatchReader, threads: int | None, profile: Profile | None) -> pa.RecordBatchReader:
    """Return a reader of the result, whose rows are found while batches are read.

    Rows come when their windows are over, in the order of first events; those of a run are in the order of results.
    Counts come once, at the end. Batches must be in order of time, or reading raises an EventError that names the row.
    """
    found = _results(live, reader, threads, profile)
    return reader_of(live.result, _total(live.sliced, found) if live.sliced is not None and live.sliced.totals else found)


def _total(sliced: SlicedPlan, counts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the sum of the counts of all runs."""
    total = next(counts)
    for more in counts:
        total = add_up(sliced, pa.concat_tables([total, more]))
    yield total


def _results(live: LiveQuery, reader: pa.RecordBatchReader, threads: int | None, profile: Profile | None) -> Iterator[pa.Table]:
    """Yield the matches, run by run."""
    state, resources, kept = first_state(live.kept), Resources(threads, profile, spent=Spent()), 0
    for events in tables_of(reader):
        with ending_in(EventError, "reading the events", FEWER_EVENTS):
            state = push_events(live, state, events.select(live.schema.names).cast(live.schema)).state
        # each event is looked at about twice, however long the window and however small the batches
        if len(state.times) - kept >= max(_WORTH_A_RUN, kept) and is_due(live, state.clock):
            state, found = certain_matches(live, state, resources)
            kept = len(state.times)
            yield found
    finished = replace(state, clock=replace(state.clock, finished=True))
    yield certain_matches(live, finished, resources)[1]


def match_until(call: MatchCall, events: Any) -> pa.Table:
    """Return the matches that are certain if events are complete until the call's time, that one included.

    Raises
    ------
    EventError
        The events have an error, or `complete_until` is no value of the timestamp column.
    UnsupportedError
        The query has no window, it cannot be known when its matches are certain, or the events that are read take more than `memory`.
    CepError
        Any other error of the query or of the run.
    """
    live, table = _plan_events(call, events)
    if call.memory is not None and not isinstance(events, pa.Table):
        refuse_large(table, call.memory)
    watermark = ticks_of(live, call.complete_until, "complete_until")
    state = push_events(live, first_state(live.schema), table).state
    known = replace(state, clock=replace(state.clock, watermark=watermark))
    return certain_matches(live, known, Resources(call.threads, call.profile))[1]


@ending_in(EventError, "reading the events", FEWER_EVENTS)
def _plan_events(call: MatchCall, events: Any) -> tuple[LiveQuery, pa.Table]:
    """Return a call's query, and the columns of the events that it reads."""
    arrival = Arrival(asked="complete_until=")
    source = open_source(events)
    if source is not None and not lacks_times(source.schema, call.options):
        live = plan_live(call.pattern, source.schema, call.options, call.settings, arrival)
        return live, source.read(live.schema.names).cast(live.schema)
    read = to_host(read_events(events if source is None else source))
    table = type_times(read, as_query(call.pattern), call.options)
    live = plan_live(call.pattern, table.schema, call.options, call.settings, arrival)
    return live, table.select(live.schema.names).cast(live.schema)
