"""Read which events of a slice are its own, which are copies from its neighbours, and what these bear on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.engine.events.own_events import OwnRows
from gpu_cep.engine.events.positions import positions_of_events
from gpu_cep.engine.events.settling import Borders
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep_spark.slice_marks import APART_BIT, FLAG_BITS, OWN_BIT


def separate_own_rows(plan: AnyPlan, table: pa.Table) -> tuple[pa.Table, OwnRows, Borders | None]:
    """Return the events with the number of their slice in the last column, which of them are own, and what settles matches.

    The last column of `table` holds marks. If `plan` reports the ends of matches, two more columns
    hold each event's time and position, and their slice settles which are kept as far as it can.
    """
    last = table.num_columns - 1
    marked = table.column(last).to_numpy()
    events, own = table.set_column(last, table.field(last), pa.array(marked >> FLAG_BITS)), (marked & OWN_BIT).astype(np.bool_)
    if not plan.ends:
        return events, OwnRows(own), None
    positions = positions_of_events(plan, EventColumns(events, plan.query, plan.dictionaries))
    for column, values in zip(plan.ends, positions, strict=True):
        events = events.append_column(plan.query.schema.names[column], pa.array(values))
    return events, OwnRows(own), Borders(OwnRows((marked & APART_BIT).astype(np.bool_)), OwnRows(own))
