"""Estimate the memory that matches take, from the kernels' output to the finished table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Bound, Field
from gpu_cep.engine.accounting.match_budget import Footprint
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.picked_rows import PickedRows, TableColumns
from gpu_cep.engine.output.result_tables import carried_columns
from gpu_cep.engine.output.returns import read_leaves
from gpu_cep.plan.event_plan import Plan

# Bytes of a bound event: 8 as it is found, concatenated, sorted, and as an input row.
_EVENT = 4 * 8
# Bytes of a match: first and last event, place and rank in sorting, then stream and rows.
_MATCH = 10 * 8
# Bytes of a variable of a match: four copies of its int32 count, its offset as int64 and as int32.
_MATCH_VARIABLE = 4 * 4 + 8 + 4
# Bytes of a row of output="events": match_id, event_index, the int32 code of a variable, and where its name begins.
_EVENT_ROW = 8 + 8 + 4 + 4
# Bytes of the row at which a match of a row begins or ends.
_END = 8
# Bytes of where a text begins, if offsets are long.
_OFFSET = 8
# Bytes of a value of RETURN in its machine representation, with its NULL and its place.
_VALUE = 3 * 8
# Rows by whose codes the length of text is estimated.
_SAMPLE = 1 << 16


def result_footprint(plan: Plan, columns: EventColumns) -> Footprint:
    """Return the bytes that the plan's result takes at its peak, for each match and for each bound event.

    All copies on the way to the finished table are included.
    """
    base = Footprint(_MATCH + _MATCH_VARIABLE * len(plan.query.variables), _EVENT)
    match plan.settings.output:
        case "events":
            return Footprint(base.match, base.event + _event_row_bytes(plan, columns) + _carried_bytes(plan, columns))
        case "matches":
            named = sum(_row_bytes(columns, column) for column in (*plan.query.partition_by, *2 * (plan.query.timestamp,)))
            return _add_returns(plan, columns, Footprint(base.match + named, base.event), _carried_bytes(plan, columns))
        case "indices" | "compressed":
            return base
    return Footprint(0, 0)


def _event_row_bytes(plan: Plan, columns: EventColumns) -> int:
    """Return the bytes of a row of output="events" but for the event itself, with the longest name of a variable."""
    name = max((len(variable.name.encode()) for variable in plan.query.variables), default=0)
    ends = sum(_row_bytes(columns, column) for column in plan.ends)
    return _EVENT_ROW + name + (2 * (_END + ends) if plan.ends else 0)


def _carried_bytes(plan: Plan, columns: EventColumns) -> int:
    """Return the mean bytes of a whole event in the result."""
    return sum(_row_bytes(columns, plan.query.schema.index(name)) for name in carried_columns(plan, columns.schema))


def _add_returns(plan: Plan, columns: EventColumns, base: Footprint, carried: int) -> Footprint:
    """Return `base` with the values of RETURN's items on top.

    Without RETURN, whole events of `carried` bytes come on top.
    """
    if not plan.query.returns:
        return Footprint(base.match, base.event + carried)
    items = zip(plan.query.returns, plan.returns, strict=True)
    leaves = [leaf for item, planned in items for leaf in read_leaves(item.expression, planned)]
    lists = sum(_leaf_bytes(columns, leaf, carried) for leaf in leaves if isinstance(leaf, Binding))
    values = [_leaf_bytes(columns, leaf, carried) for leaf in leaves if not isinstance(leaf, Binding)]
    # aggregates read the whole binding, one aggregate after the other
    scratch = max((_leaf_bytes(columns, leaf, carried) for leaf in leaves if isinstance(leaf, Aggregation)), default=0)
    return Footprint(base.match + sum(values) + _VALUE * len(plan.returns), base.event + lists + scratch)


def _leaf_bytes(columns: EventColumns, leaf: Bound, carried: int) -> int:
    """Return the bytes of a value that a leaf of a RETURN item reads; a whole event has `carried` bytes."""
    match leaf:
        case Binding(column=None):
            return carried
        case Binding(column=int() as column):
            return _row_bytes(columns, column)
        case Field(column=column) | Aggregation(column=int() as column):
            return _row_bytes(columns, column) + _VALUE
    return _VALUE


def _row_bytes(columns: EventColumns, column: int) -> int:
    """Return the mean bytes of a column's value, rounded up.

    A computed column counts as the largest of the columns that it is computed from.
    """
    attributes = len(columns.query.schema.attributes)
    if column >= attributes:
        return max(_row_bytes(columns, source) for source in columns.query.computed[column - attributes].columns)
    # all rows tell it of picked ones, too, which need not be gathered for that
    picked = columns.table if isinstance(columns.table, PickedRows) else None
    whole: TableColumns = columns if picked is None or column >= len(picked.columns.schema) else picked.columns
    return whole.once("mean bytes", (column,), lambda: _mean_bytes(whole, column))


def _mean_bytes(columns: TableColumns, column: int) -> int:
    values = columns.table.column(column)
    if not pa.types.is_dictionary(values.type):
        return -(-int(values.nbytes) // max(1, len(values)))
    code = int(values.type.index_type.bit_width) // 8
    return code if pa.types.is_dictionary(columns.schema.field(column).type) else code + _decoded_bytes(values)


def _decoded_bytes(values: pa.ChunkedArray) -> int:
    """Return the mean bytes of the text that a dictionary column stands for, rounded up, by some of its rows."""
    stride = max(1, len(values) // _SAMPLE)
    sampled = [(chunk.dictionary, chunk.indices.take(pa.array(np.arange(0, len(chunk), stride)))) for chunk in values.chunks]
    lengths = [pc.sum(pc.take(pc.binary_length(texts), codes)).as_py() or 0 for texts, codes in sampled]
    return _OFFSET - (-sum(lengths) // max(1, sum(len(codes) for _, codes in sampled)))
