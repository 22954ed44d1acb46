"""The events of slices as the engine takes them: which are own, and where they stand in their streams."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.engine.answers import AnyPlan, plan_of_events
from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.places import positions_of_events
from gpu_cep.engine.slices import OwnRows


def with_own_rows(plan: AnyPlan, table: pa.Table) -> tuple[pa.Table, OwnRows]:
    """The events, of which the last column marks the slices' own, and these; if `plan` reports ends of matches, with their places."""
    labelling, last = plan_of_events(plan), table.num_columns - 1
    marks, events = table.column(last).to_numpy(), table.remove_column(last)
    if labelling.ends:
        positions = positions_of_events(labelling, EventColumns(events, labelling.query, labelling.dictionaries))
        for column, values in zip(labelling.ends, positions, strict=True):
            events = events.append_column(labelling.query.schema.names[column], pa.array(values))
    return events, OwnRows(marks)
