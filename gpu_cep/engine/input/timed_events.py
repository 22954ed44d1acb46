"""Leave out the events without a timestamp, for queries that ask for that by ``nulls="drop"``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.row_numbers import Rows

AnyTable: TypeAlias = pa.Table | ResidentTable | PickedRows


def timed_events(query: BoundQuery, table: AnyTable) -> tuple[AnyTable, Rows | None]:
    """Return the events that `query` reads, and their row numbers in `table` (None: those of the result).

    These are all events, unless the query leaves out those whose timestamp is NULL or NaN. A table
    on a device stays there if it has none of them.
    """
    untimed = _untimed(query, table) if query.drops_untimed else None
    if untimed is None:
        return table, None
    kept: Rows = np.flatnonzero(~untimed)
    return to_host(table).take(kept), kept


def _untimed(query: BoundQuery, table: AnyTable) -> npt.NDArray[np.bool_] | None:
    """Return True for each event whose timestamp is NULL or NaN; None if there is no such event."""
    column = table.column(query.timestamp)
    times = column if isinstance(column, pa.ChunkedArray) else column.to_arrow()
    if not times.null_count and not pa.types.is_floating(times.type):
        return None
    missing: npt.NDArray[np.bool_] = pc.is_null(times, nan_is_null=True).to_numpy(zero_copy_only=False)
    return missing if missing.any() else None
