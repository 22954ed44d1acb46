"""Write moments, which are times of the engine, as values of the timestamp column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.arrow_arrays import arrow_array
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.errors import EventError


def times_of(columns: EventColumns, values: Array, missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Return machine times as an array of the timestamp column's type, NULL where `missing`.

    Raises
    ------
    EventError
        The end of a situation that a gap ended lies outside the type.
    """
    query = columns.query
    name, data_type = columns.name(query.timestamp), query.schema.attributes[query.timestamp].type
    nulls = np.zeros(len(values), np.bool_) if missing is None else missing
    try:
        return arrow_array(values, nulls, data_type).cast(columns.schema.field(query.timestamp).type)
    except pa.ArrowInvalid as fault:
        raise EventError(f"column {name!r}: {fault}") from fault
