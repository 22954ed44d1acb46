"""Take the events that have arrived in a bucket: judge which are late, and leave out those that no match has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.streaming.event_tags import bindable_rows
from gpu_cep.errors import EventError
from gpu_cep_spark.streaming import state
from gpu_cep_spark.streaming.packing import read_chunk, read_column, write_chunk
from gpu_cep_spark.streaming.runs import naming_rule, shared_events
from gpu_cep_spark.streaming.state import Chunk, New, Numbers
from gpu_cep_spark.streaming.work import LiveGroup, LiveWork
from gpu_cep_spark.tasks.worker import as_events


def take_in_time(work: LiveWork, group: LiveGroup, arrived: Sequence[bytes] | None, watermark: int) -> New:
    """Return the events that are after the watermark, in chunks.

    Raises
    ------
    EventError
        An event is late, and that is an error.
    """
    if arrived is None:
        return New((), 0, watermark, 0)
    needs_all = work.whole is None and len(work.groups) == 1
    if needs_all and (as_they_came := _take_as_they_came(group, arrived, watermark)) is not None:
        return as_they_came
    tables = [read_chunk(chunk) for chunk in arrived]
    events = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    times = _ticks(events.column(group.timestamp))
    in_time = times > watermark
    late = len(times) - int(np.count_nonzero(in_time))
    if late and work.live.refuses_late:
        which = "1 event is late: its time is" if late == 1 else f"{late:,} events are late: their times are"
        told = f"{which} not after the watermark, {watermark} microseconds since 1970"
        raise EventError(f"{told}; give withWatermark() a longer delay, or drop late events by late='drop'")
    if not needs_all:
        return _take_bindable(work, group, events, times, in_time, watermark)
    if late:
        events, times = events.filter(pa.array(in_time)), times[in_time]
    return New(_joined(events), late, int(times.max(initial=watermark)), len(times))


def _take_as_they_came(group: LiveGroup, arrived: Sequence[bytes], watermark: int) -> New | None:
    """Return the chunks that have arrived as they are; None if a small one is to be joined to others, or an event is late."""
    if len(arrived) > 1 and min(map(len, arrived)) < state.LARGE:
        return None
    times = [_ticks(read_column(chunk, group.timestamp)) for chunk in arrived]
    if any(own.min(initial=watermark + 1) <= watermark for own in times):
        return None
    chunks = tuple(Chunk(packed, len(own)) for packed, own in zip(arrived, times, strict=True))
    return New(chunks, 0, max(int(own.max(initial=watermark)) for own in times), sum(map(len, times)))


def _ticks(times: pa.ChunkedArray) -> Numbers:
    """Return Spark's timestamps in ticks."""
    return np.asarray(times.cast(pa.int64()).to_numpy(), np.int64)


def _joined(events: pa.Table) -> tuple[Chunk, ...]:
    """Return events as one chunk; none if there are none."""
    return (Chunk(write_chunk(events.combine_chunks()), events.num_rows),) if events.num_rows else ()


def _take_bindable(
    work: LiveWork, group: LiveGroup, events: pa.Table, times: Numbers, in_time: npt.NDArray[np.bool_], watermark: int
) -> New:  # fmt: skip
    """Return the events that may be in a match, as one chunk, since Spark has filtered none, or not for this group alone.

    Late events come as a whole, if they are to be rows and stand behind the columns of the group.
    """
    kept, times, returned = events.filter(pa.array(in_time)), times[in_time], None
    if work.whole is not None and group is work.groups[0]:
        *_, name = events.column_names
        whole = events.column(name).filter(pa.array(~in_time)).combine_chunks()
        returned = pa.Table.from_arrays(whole.flatten(), names=work.whole.names).cast(work.whole)
        kept = kept.drop_columns([name])
    late = int(np.count_nonzero(~in_time))
    bound = kept.take(pa.array(_bindable(group, kept)))
    return New(_joined(bound), late, int(times.max(initial=watermark)), len(times), returned)


def _bindable(group: LiveGroup, events: pa.Table) -> Numbers:
    """Return the rows of the events that some query may bind."""
    if not group.is_shared:
        live = group.first.live
        with naming_rule(group.first):
            return bindable_rows(live.labelling, as_events(events, live.schema, group.codes))
    chosen = np.zeros(events.num_rows, np.bool_)
    for _, own in shared_events(group, events):
        chosen[own.rows] = True
        if chosen.all():
            break
    return np.flatnonzero(chosen)
