"""Put the results of many patterns into one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa

from gpu_cep.engine.answers import answer_schema
from gpu_cep.errors import LESS_MEMORY, CepError, MatchLimitExceeded, PatternError, ending_in
from gpu_cep.rule_sets.plans import PlannedRule

# The first column of the table.
PATTERN = "pattern"
# Tables from which their parts are joined: a column of many small chunks is slow to read.
_MANY_TABLES = 8


def check_one_schema(planned: Iterable[PlannedRule], schema: pa.Schema) -> None:
    """Raise PatternError unless the results of all planned rules have the same columns, none of which is called ``pattern``.

    The plans are for events of `schema`.
    """
    same_columns({each.name: answer_schema(each.plan, schema) for each in planned})


def same_columns(schemas: Mapping[str, pa.Schema], *, named: bool = True) -> pa.Schema | None:
    """Return the schema of a table for results of these schemas, by the name of their pattern, without the column ``pattern``.

    The result is None if there are none. With `named`, that column is to stand before theirs.

    Raises
    ------
    PatternError
        They differ, or one has a column ``pattern`` beside that of the name.
    """
    first = next(iter(schemas), None)
    if first is None:
        return None
    for name, schema in schemas.items():
        if named and PATTERN in schema.names:
            raise PatternError(f"pattern {name!r}: its result has a column {PATTERN!r} already; name it otherwise, or give split=True")
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


def one_table(found: Mapping[str, pa.Table], failed: Mapping[str, CepError], *, named: bool = True) -> pa.Table:
    """Return the results as one table, with the name of its pattern before each row; `named` is as for :func:`same_columns`.

    Raises
    ------
    PatternError
        Their columns differ.
    CepError
        There is no result, since all patterns failed.
    MatchLimitExceeded
        The table does not fit in memory.
    """
    schema = same_columns({name: table.schema for name, table in found.items()}, named=named)
    if schema is None:
        raise next(iter(failed.values()))
    with ending_in(MatchLimitExceeded, "building one table of the results", LESS_MEMORY):
        parts = [pa.Table.from_arrays(table.columns, schema=schema) for table in found.values()]
        whole = pa.concat_tables(parts).unify_dictionaries()
        names = pa.array(list(found), pa.string()).take(pa.array(np.repeat(np.arange(len(found)), [len(part) for part in parts])))
        whole = whole.add_column(0, pa.field(PATTERN, pa.string(), nullable=False), names)
        return whole.combine_chunks() if len(parts) > _MANY_TABLES else whole
