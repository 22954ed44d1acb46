"""Define the command that tells how far starts came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_cep.cli.files import events_from, table_target
from gpu_cep.cli.options import BOUNDS, OUTPUT, QUERY, AsJson, EventsArgument, Limit, MatchesOut, TimestampFormat, takes
from gpu_cep.cli.outcome import USAGE_FAULT, fail, say
from gpu_cep.cli.progress import watch
from gpu_cep.cli.tables import count_of, print_json_lines, print_rows
from gpu_cep.cli.whole_files import PIPE
from gpu_cep.progress_tables import progress as progress_table

# It decides which of the matches are kept, and each start has one row.
_OF_STARTS = {name: kind for name, kind in QUERY.items() if name != "after_match"}


@takes(_OF_STARTS | BOUNDS | {"memory": OUTPUT["memory"]})
def progress(
    text: str,
    events: EventsArgument,
    asked: Mapping[str, Any],
    timestamp_format: TimestampFormat = None,
    out: MatchesOut = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Tell for each start how far it came: when it reached each variable, and whether the match was completed."""
    refuse_limit_of_file(out, limit)
    target = None if out is None else table_target(out)
    with watch("matching") as profile:
        given = events_from(events, asked.get("timestamp", "ts"), timestamp_format)
        found = progress_table(given, text, profile=profile, **asked)
    if target is not None:
        target.write(found)
        rows = int(found.num_rows)
        say(f"{out}: {count_of(rows, 'row')}", {"out": out, "rows": rows}, as_json=as_json, aside=out == PIPE)
    elif as_json:
        print_json_lines(found, "row", limit)
    else:
        print_rows(found, "row", limit)


def refuse_limit_of_file(out: str | None, limit: int | None) -> None:
    """End the command if what is written to a file is to be cut."""
    if out is not None and limit is not None:
        fail("--limit is for what is printed, and -o writes all rows: leave one of them out", USAGE_FAULT)
