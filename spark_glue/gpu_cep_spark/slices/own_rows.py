"""Add what a plan over slices reads of their events, and tell which of these are the slice's own, and what settles matches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.engine.events.own_events import OwnRows
from gpu_cep.engine.events.positions import positions_of_events
from gpu_cep.engine.events.settling import Borders
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep_spark.slices.marks import APART_BIT, FLAG_BITS, OWN_BIT


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
    return with_positions(plan, events), OwnRows(own), Borders(OwnRows((marked & APART_BIT).astype(np.bool_)), OwnRows(own))


def with_number(plan: AnyPlan, events: pa.Table, number: int) -> pa.Table:
    """Return the events of one slice with its number behind their columns, if the plan reads that."""
    if plan.slice_key is None:
        return events
    return events.append_column(plan.query.schema.names[plan.slice_key], pa.chunked_array([np.full(events.num_rows, number, np.int64)]))


def with_positions(plan: AnyPlan, events: pa.Table) -> pa.Table:
    """Return the events with their times and positions behind their columns, if the plan reports the ends of matches."""
    if not plan.ends:
        return events
    positions = positions_of_events(plan, EventColumns(events, plan.query, plan.dictionaries, threads=1))
    for column, values in zip(plan.ends, positions, strict=True):
        events = events.append_column(plan.query.schema.names[column], pa.chunked_array([values]))
    return events
