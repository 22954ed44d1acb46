"""Put the results of many patterns into one table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np
import pyarrow as pa

from gpu_cep.engine.streaming.kinds import with_late
from gpu_cep.errors import LESS_MEMORY, CepError, MatchLimitExceeded, PatternError, ending_in

# The first column of the table.
PATTERN = "pattern"
# Tables from which their parts are joined: a column of many small chunks is slow to read.
_MANY_TABLES = 8


def check_columns(schemas: Mapping[str, pa.Schema]) -> None:
    """Raise PatternError unless results of these schemas, by the name of their pattern, fit one table behind a column ``pattern``."""
    for name, schema in schemas.items():
        if PATTERN in schema.names:
            raise PatternError(f"pattern {name!r}: its result has a column {PATTERN!r} already; name it otherwise, or give split=True")
    if schemas:
        same_columns(schemas)


def same_columns(schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the schema of a table for results of these schemas, by the name of their pattern; there is one at least.

    Raises
    ------
    PatternError
        They differ.
    """
    first = next(iter(schemas))
    for name, schema in schemas.items():
        if not _alike(schemas[first], schema):
            raise PatternError(
                f"the results of the patterns {first!r} and {name!r} have not the same columns: {_columns(schemas[first])}, and "
                f"{_columns(schema)}; give all the same RETURN, output='events' or 'count', or split=True for a table each"
            )
    nullable = {field.name for field in chain(*schemas.values()) if field.nullable}
    return pa.schema([field.with_nullable(field.name in nullable) for field in schemas[first]])


def _alike(left: pa.Schema, right: pa.Schema) -> bool:
    return [(field.name, field.type) for field in left] == [(field.name, field.type) for field in right]


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def one_table(found: Mapping[str, pa.Table], failed: Mapping[str, CepError]) -> pa.Table:
    """Return the results as one table, as :func:`join_results` does.

    Raises
    ------
    PatternError
        Their columns differ, or one has a column ``pattern`` already.
    CepError
        There is no result, since all patterns failed.
    MatchLimitExceeded
        The table does not fit in memory.
    """
    if not found:
        raise next(iter(failed.values()))
    check_columns({name: table.schema for name, table in found.items()})
    return join_results(found)


def join_results(found: Mapping[str, pa.Table]) -> pa.Table:
    """Return the results as one table, with the name of its pattern before each row; raises as :func:`one_table`."""
    schema = same_columns({name: table.schema for name, table in found.items()})
    with ending_in(MatchLimitExceeded, "building one table of the results", LESS_MEMORY):
        parts = [pa.Table.from_arrays(table.columns, schema=schema) for table in found.values()]
        whole = pa.concat_tables(parts).unify_dictionaries()
        names = pa.array(list(found), pa.string()).take(pa.array(np.repeat(np.arange(len(found)), [len(part) for part in parts])))
        whole = whole.add_column(0, pa.field(PATTERN, pa.string(), nullable=False), names)
        return whole.combine_chunks() if len(parts) > _MANY_TABLES else whole


def with_late_of_no_pattern(found: pa.Table, late: pa.Table) -> pa.Table:
    """Return a row for each late event, without a pattern, then those of a table of :func:`join_results`."""
    names = pa.chunked_array([pa.nulls(late.num_rows, pa.string()), *found.column(0).chunks])
    return with_late(found.remove_column(0), late).add_column(0, pa.field(PATTERN, pa.string()), names)
