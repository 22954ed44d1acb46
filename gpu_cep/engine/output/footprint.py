"""What matches will take in memory, from the kernel's buffers to the finished table."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.analysis.bound import Aggregation, Binding, Bound, Field
from gpu_cep.engine.accounting.budget import Footprint
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.output.result_tables import carried_columns
from gpu_cep.plan.event_plan import Plan

# Four 8-byte numbers of each bound event live at a time: as found, concatenated, sorted, and as bindings in input rows.
_EVENT = 4 * 8
# First and last event of a match, its place and its rank while matches are sorted; then its stream and rows.
_MATCH = 10 * 8
# Per variable of a match: four copies of its count (int32), and its places in the binding twice (int64 and int32).
_MATCH_VARIABLE = 4 * 4 + 8 + 4
# The columns match_id, variable and event_index of output="events", with the numbers they are made from.
_EVENT_ROW = 7 * 8
# A value of RETURN in its machine representation, with its NULL and its place.
_VALUE = 3 * 8


def result_footprint(plan: Plan, columns: EventColumns) -> Footprint:
    """The footprint of the form of `output` that the plan asks for, all copies on the way included."""
    base = Footprint(_MATCH + _MATCH_VARIABLE * len(plan.query.variables), _EVENT)
    carried = sum(_row_bytes(columns, plan.query.schema.index(name)) for name in carried_columns(plan, columns.table.schema))
    match plan.settings.output:
        case "events":
            return Footprint(base.match, base.event + _EVENT_ROW + carried)
        case "matches":
            named = sum(_row_bytes(columns, column) for column in (*plan.query.partition_by, *2 * (plan.query.timestamp,)))
            return _with_returns(plan, columns, Footprint(base.match + named, base.event), carried)
        case "indices" | "compressed":
            return base
    return Footprint(0, 0)


def _with_returns(plan: Plan, columns: EventColumns, base: Footprint, carried: int) -> Footprint:
    """`base` and the values of RETURN's items, or without RETURN the whole events."""
    if not plan.query.returns:
        return Footprint(base.match, base.event + carried)
    items = zip(plan.query.returns, plan.returns, strict=True)
    leaves = [leaf for item, planned in items for leaf in ((item.expression,) if planned is None else planned.ints + planned.floats)]
    lists = sum(_leaf_bytes(columns, leaf, carried) for leaf in leaves if isinstance(leaf, Binding))
    values = [_leaf_bytes(columns, leaf, carried) for leaf in leaves if not isinstance(leaf, Binding)]
    # aggregates read the whole binding, one aggregate after the other
    scratch = max((_leaf_bytes(columns, leaf, carried) for leaf in leaves if isinstance(leaf, Aggregation)), default=0)
    return Footprint(base.match + sum(values) + _VALUE * len(plan.returns), base.event + lists + scratch)


def _leaf_bytes(columns: EventColumns, leaf: Bound, carried: int) -> int:
    """Bytes of each value that a leaf of an item reads."""
    match leaf:
        case Binding(column=None):
            return carried
        case Binding(column=int() as column):
            return _row_bytes(columns, column)
        case Field(column=column) | Aggregation(column=int() as column):
            return _row_bytes(columns, column) + _VALUE
    return _VALUE


def _row_bytes(columns: EventColumns, column: int) -> int:
    """Mean bytes of a column's value, rounded up; those of a computed column as of the largest it is computed from."""
    attributes = len(columns.query.schema.attributes)
    if column >= attributes:
        return max(_row_bytes(columns, source) for source in columns.query.computed[column - attributes].columns)
    values = columns.table.column(column)
    if pa.types.is_dictionary(values.type):
        return int(values.type.index_type.bit_width) // 8
    return -(-int(values.nbytes) // max(1, len(values)))
