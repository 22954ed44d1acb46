"""Add up the counts of a stream's slices that a task has matched, so that Spark gets a row for each stream and not for each slice."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.answers import answer_schema
from gpu_cep.plan.interval_plan import AnyPlan

_MOST = (1 << 63) - 1


def adds_up(plan: AnyPlan) -> bool:
    """Return whether tasks add up what a plan counts in slices; where matches of slices may overlap, that is for assembly."""
    return plan.settings.output == "count" and plan.slice_key is not None and not plan.ends


def schema_in_slices(plan: AnyPlan, events: pa.Schema) -> pa.Schema:
    """Return the schema of what tasks give of a plan over slices; counts that are added up have no number of a slice."""
    found = answer_schema(plan, events)
    return found.remove(_place_of_number(plan, found)) if adds_up(plan) else found


def add_up(plan: AnyPlan, counts: pa.Table) -> pa.Table:
    """Return the counts of slices without the slices' numbers, those of one stream added up.

    They stay apart where their sum might not fit in 64 bits.
    """
    counts = counts.remove_column(_place_of_number(plan, counts.schema))
    places = [str(place) for place in range(counts.num_columns)]
    *keys, last = places
    if not counts.num_rows or int(pc.max(counts.columns[-1]).as_py()) > _MOST // counts.num_rows:
        return counts
    sums = counts.rename_columns(places).group_by(keys, use_threads=False).aggregate([(last, "sum")])
    return pa.table([*(sums.column(key) for key in keys), sums.column(f"{last}_sum")], names=counts.schema.names)


def _place_of_number(plan: AnyPlan, found: pa.Schema) -> int:
    assert plan.slice_key is not None, "the plan is over slices"
    return int(found.get_field_index(plan.query.column_name(plan.slice_key)))
