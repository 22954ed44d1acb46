"""Read the timestamp column as numbers, and raise an error if one is NULL or NaN."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.options import Options
from gpu_cep.engine.input.encodings import columns_short_of_codes, has_plain_types, inspect_dictionaries
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.input.schema_memo import SchemaMemo
from gpu_cep.errors import EventError
from gpu_cep.lang.ast import Query
from gpu_cep.lang.ast_intervals import IntervalQuery

# What a query can do about events without a timestamp.
DROP = "nulls='drop' (--nulls drop on the command line) leaves these events out"


def load_times(columns: EventColumns, column: int, remedy: str = DROP) -> Array:
    """Return the timestamp column as int64 or float64.

    Raises
    ------
    EventError
        A timestamp is NULL or NaN; the message ends with the `remedy`.
    """
    # joined as an Arrow array, which results are taken from, too
    columns.values(column)
    return load_pieces_of_times(columns, column, remedy).whole


def load_pieces_of_times(columns: EventColumns, column: int, remedy: str = DROP) -> Pieces:
    """Do as :func:`load_times`, but in the pieces in which the column came."""
    refuse_missing(columns, column, "NULL", columns.null_count(column), remedy)
    pieces = columns.pieces(column)
    if pieces.dtype.kind == "i":
        return pieces.astype(np.int64)
    refuse_missing(columns, column, "NaN", sum(int(np.isnan(values).sum()) for values in pieces.arrays), remedy)
    return pieces.astype(np.float64)


def has_missing_times(columns: EventColumns, column: int) -> bool:
    """Return whether a timestamp is NULL or NaN."""

    def found() -> bool:
        times = columns.arrow(column)
        return bool(times.null_count) or (pa.types.is_floating(times.type) and bool(np.isnan(columns.values(column)).any()))

    return columns.once("missing times", (column,), found)


def type_times(table: pa.Table, query: Query | IntervalQuery, options: Options) -> pa.Table:
    """Return a table with a type for its timestamps if none has a value, as behind a header of CSV.

    They become what the query can be read over: timestamps if its window has a unit, else integers.
    """
    if not lacks_times(table.schema, options):
        return table
    place = table.schema.get_field_index(options.timestamp)
    counted = query.within is None or query.within.unit in (None, "events")
    kind = pa.int64() if counted or options.time_unit is not None else pa.timestamp("us")
    return table.set_column(place, table.schema.field(place).with_type(kind), pa.nulls(table.num_rows, kind))


def lacks_times(schema: pa.Schema, options: Options) -> bool:
    """Return whether the timestamps have no type, since none has a value."""
    place = schema.get_field_index(options.timestamp)
    return place >= 0 and bool(pa.types.is_null(schema.field(place).type))


def is_ready(events: object, options: Options) -> bool:
    """Return whether events are a table that is read as it is: nothing is decoded, and its timestamps have a type."""
    if not isinstance(events, pa.Table):
        return False
    ready = _known_ready.of(options.timestamp, events.schema, lambda own: not lacks_times(own, options) and has_plain_types(own))
    return ready and not inspect_dictionaries(events) and not columns_short_of_codes(events)


# Over few events to look at the type of each column takes a sixtieth of the time. To look through many schemas takes longer.
_known_ready: SchemaMemo[str, bool] = SchemaMemo(64, metadata=False)


def refuse_missing(columns: EventColumns, column: int, what: str, count: int, remedy: str = DROP) -> None:
    """Raise EventError if `count`, the number of timestamps that are `what` (NULL or NaN), is not 0."""
    if count:
        raise missing_times(columns.name(column), what, count, len(columns), remedy)


def missing_times(name: str, what: str, count: int, events: int, remedy: str = DROP) -> EventError:
    """Return the error that `count` of the timestamps in the column `name` are `what` (NULL or NaN)."""
    told = f"timestamp column {name!r} holds {count:,} {what}{'s' if count > 1 else ''}, of {events:,} events"
    return EventError(f"{told}; {remedy}")
