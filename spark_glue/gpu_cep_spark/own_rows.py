"""The events of slices as the engine takes them: which are own, and where they stand in their streams."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.engine.answers import AnyPlan
from gpu_cep.engine.events.own_events import OwnRows
from gpu_cep.engine.events.positions import positions_of_events
from gpu_cep.engine.input.event_columns import EventColumns


def separate_own_rows(plan: AnyPlan, table: pa.Table) -> tuple[pa.Table, OwnRows]:
    """The events with the numbers of their slices, and which are own; if `plan` reports ends of matches, with their places.

    The last column of `table` has twice the numbers, and one more for own events.
    """
    last = table.num_columns - 1
    marked = table.column(last).to_numpy()
    events, marks = table.set_column(last, table.field(last), pa.array(marked >> 1)), (marked & 1).astype(np.bool_)
    if plan.ends:
        positions = positions_of_events(plan, EventColumns(events, plan.query, plan.dictionaries))
        for column, values in zip(plan.ends, positions, strict=True):
            events = events.append_column(plan.query.schema.names[column], pa.array(values))
    return events, OwnRows(marks)
