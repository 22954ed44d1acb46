"""Read which events of a slice are its own, and which are copies from its neighbours."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.engine.answers import AnyPlan
from gpu_cep.engine.events.own_events import OwnRows
from gpu_cep.engine.events.positions import positions_of_events
from gpu_cep.engine.input.event_columns import EventColumns


def separate_own_rows(plan: AnyPlan, table: pa.Table) -> tuple[pa.Table, OwnRows]:
    """Return the events with the number of their slice in the last column, and which of them are own.

    The last column of `table` holds twice the number, plus one for own events.
    If `plan` reports the ends of matches, two more columns hold each event's time and position.
    """
    last = table.num_columns - 1
    marked = table.column(last).to_numpy()
    events, marks = table.set_column(last, table.field(last), pa.array(marked >> 1)), (marked & 1).astype(np.bool_)
    if plan.ends:
        positions = positions_of_events(plan, EventColumns(events, plan.query, plan.dictionaries))
        for column, values in zip(plan.ends, positions, strict=True):
            events = events.append_column(plan.query.schema.names[column], pa.array(values))
    return events, OwnRows(marks)
