"""Take the events that have arrived in a bucket: judge which are late, and leave out those that no match has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.streaming.event_tags import bindable_rows
from gpu_cep.errors import EventError
from gpu_cep_spark.streaming.packing import read_chunk, write_chunk
from gpu_cep_spark.streaming.runs import naming_rule, shared_events
from gpu_cep_spark.streaming.state import New, Numbers
from gpu_cep_spark.streaming.work import LiveGroup, LiveWork
from gpu_cep_spark.tasks.worker import as_events


def take_in_time(work: LiveWork, group: LiveGroup, arrived: Sequence[bytes] | None, watermark: int) -> New:
    """Return the events that are after the watermark, as one chunk.

    Raises
    ------
    EventError
        An event is late, and that is an error.
    """
    if arrived is None:
        return New(None, 0, 0, watermark, 0)
    tables = [read_chunk(chunk) for chunk in arrived]
    events = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    times = events.column(group.timestamp).cast(pa.int64()).to_numpy()
    in_time = times > watermark
    late = len(times) - int(np.count_nonzero(in_time))
    if late and work.live.refuses_late:
        which = "1 event is late: its time is" if late == 1 else f"{late:,} events are late: their times are"
        told = f"{which} not after the watermark, {watermark} microseconds since 1970"
        raise EventError(f"{told}; give withWatermark() a longer delay, or drop late events by late='drop'")
    if work.whole is not None or len(work.groups) > 1:
        return _take_bindable(work, group, events, times, in_time, watermark)
    if late == len(times):
        return New(None, 0, late, watermark, 0)
    if late:
        events, times = events.filter(pa.array(in_time)), times[in_time]
    chunk = arrived[0] if len(tables) == 1 and not late else write_chunk(events.combine_chunks())
    return New(chunk, len(times), late, int(times.max()), len(times))


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
    chosen = _bindable(group, kept)
    chunk = write_chunk(kept.take(pa.array(chosen)).combine_chunks()) if len(chosen) else None
    late = int(np.count_nonzero(~in_time))
    return New(chunk, len(chosen), late, int(times.max(initial=watermark)), len(times), returned)


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
