"""Computed columns that are expressions of one event: the interpreter runs over all events once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpu_cep.analysis.bound import ComputedExpression
from gpu_cep.engine.arrow import arrow_array
from gpu_cep.engine.programs import assemble, evaluate, failure, load_bank, tabulator
from gpu_cep.errors import EventError
from gpu_cep.plan.programs import compile_program, leaves, mapped
from gpu_cep.plan.properties import place_leaves

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.engine.columns import EventColumns


def compute_expression(computed: ComputedExpression, columns: EventColumns) -> pa.Array:
    """The column over all events of `columns`.

    Raises
    ------
    EventError
        An integer overflowed, or the caller's function raised an exception.
    """
    layout, slots = place_leaves(leaves(computed.expression))
    program = compile_program(computed.expression, mapped(slots))
    table, _ = assemble([program], tabulator(columns))
    values, nulls, failed = evaluate(program, table, load_bank(columns, layout, np.arange(len(columns))))
    if failed >= 0:
        raise EventError(f"{failure(program)} in {computed.text} at input row {failed}")
    return arrow_array(values, nulls, computed.type)
