"""Check row patterns of SQL, and define the command that answers statements in which they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer

from gpu_cep import api
from gpu_cep.cli.files import events_from, table_target
from gpu_cep.cli.options import QUERY, AsJson, Limit, MatchesOut, named_files, query_text
from gpu_cep.cli.outcome import USAGE_FAULT, fail, print_warnings, report_faults, say
from gpu_cep.cli.progress import watch
from gpu_cep.cli.tables import count_of, print_json_lines, print_rows
from gpu_cep.cli.whole_files import PIPE
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.keywords import read_keywords
from gpu_cep.queries.row_plans import check_row_settings, check_rows, is_row_pattern, make_row_plan

if TYPE_CHECKING:
    from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
    from gpu_cep.engine.input.sources import Source

TimeUnit: Any = QUERY["time_unit"]


def sql(
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="A file with a statement of SQL, or the statement itself.")],
    tables: Annotated[list[str] | None, typer.Argument(metavar="[NAME=FILE]...", help="The tables that it names.")] = None,
    time_unit: TimeUnit = None,
    out: MatchesOut = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Answer a statement of SQL, also with MATCH_RECOGNIZE in it (needs the extra 'sql')."""
    from gpu_cep.sql_answers import sql

    if out is not None and limit is not None:
        fail("--limit is for what is printed, and -o writes all rows: leave one of them out", USAGE_FAULT)
    text, files = query_text(statement, "STATEMENT"), named_files(tables or ())
    with report_faults(text), print_warnings():
        target = None if out is None else table_target(out)
        with watch("answering"):
            found = sql(text, {name: events_from([file]) for name, file in files.items()}, time_unit=time_unit)
        if target is not None:
            target.write(found)
            say(f"{out}: {count_of(found.num_rows, 'row')}", {"out": out, "rows": found.num_rows}, as_json=as_json, aside=out == PIPE)
        elif as_json:
            print_json_lines(found, "row", limit)
        else:
            print_rows(found, "row", limit)


def bound_rows(schema: pa.Schema, text: str, asked: Mapping[str, Any]) -> BoundRowPattern:
    """Return MATCH_RECOGNIZE bound to rows of a schema; raises as matching does before it reads anything."""
    options, settings = read_keywords(asked)
    check_row_settings(settings)
    plan = make_row_plan(text, schema, options)
    check_rows(plan, schema)
    return plan.bound


def check_query(events: Source | pa.Table | None, text: str, asked: Mapping[str, Any]) -> None:
    """Raise the errors of a query, over events if there are any."""
    if not is_row_pattern(text):
        api.explain(None if events is None else no_rows(events.schema), text, **asked)
    elif events is not None:
        bound_rows(events.schema, text, asked)
