"""Put late events beside the matches, as rows of another kind."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.engine.output.kinds import KIND
from gpu_cep.errors import Diagnostic, PatternError
from gpu_cep.plan.timeouts import MATCH

EVENT, LATE = "event", "late"


def refuse_taken_names(matches: pa.Schema, *, of_kinds: bool) -> None:
    """Raise PatternError if matches have a column with a name that is needed for late events; `of_kinds` if they say their kind."""
    needed = (EVENT,) if of_kinds else (KIND, EVENT)
    taken = [name for name in needed if name in matches.names]
    if taken:
        hint = "name it otherwise with AS, or rename the column"
        raise PatternError([Diagnostic(f"late='rows' adds a column {name!r}, which matches have already", hint=hint) for name in taken])


def kinds_schema(matches: pa.Schema, events: pa.Schema) -> pa.Schema:
    """Return the schema of matches and late events: the kind of a row, the columns of matches, and the late event.

    Matches that say their kind say it first.
    """
    optional = [field.with_nullable(True) for field in matches if field.name != KIND]
    return pa.schema([pa.field(KIND, pa.string(), nullable=False), *optional, pa.field(EVENT, pa.struct(list(events)))])


def with_late(matches: pa.Table, late: pa.Table) -> pa.Table:
    """Return a row for each late event, then one for each match; what a row of its kind has not is NULL.

    Matches that say their kind, as they do beside timeouts, say it first.
    """
    schema = kinds_schema(matches.schema, late.schema)
    event = pa.chunked_array(late.to_struct_array().chunks, schema.field(EVENT).type)
    kinds, own = pa.repeat(MATCH, matches.num_rows), matches
    if KIND in matches.column_names[:1]:
        kinds, own = matches.column(KIND), matches.remove_column(0)
    first = [pa.repeat(LATE, late.num_rows), *(pa.nulls(late.num_rows, field.type) for field in own.schema), event]
    then = [kinds, *own.columns, pa.nulls(matches.num_rows, event.type)]
    return pa.concat_tables([pa.Table.from_arrays(columns, schema=schema) for columns in (first, then)])
