"""Gather what the page of a report shows of a run of MATCH_RECOGNIZE."""

from __future__ import annotations

import time
from inspect import cleandoc
from typing import Any

import pyarrow as pa

from gpu_cep.display.match_view import short_texts
from gpu_cep.display.plotting.waterfall import waterfall
from gpu_cep.display.reporting.page import Content
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.input.readable import check_zones
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.lang.row_patterns.format import format_row_pattern
from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
from gpu_cep.queries.row_plans import as_row_pattern, check_row_settings, make_row_plan
from gpu_cep.queries.runs import MatchCall, read_rows, run_row_pattern

_UNDRAWN = "<p>Row patterns are not drawn: the plan is in words.</p>"
_NO_PLAN = "<p>The definition was run, which has no plan.</p>"


def row_pattern_content(events: Any, call: MatchCall, pattern: str | RowPatternQuery, profile: Profile, rows: int) -> Content:
    """Run MATCH_RECOGNIZE, the `pattern` of a call as text or as a tree, and return the content of its page.

    The page holds at most `rows` rows of the result.
    The call's `profile`, an empty one, receives what was counted. Raises as :func:`gpu_cep.queries.runs.run_row_pattern`.
    """
    options, settings = call.options, call.settings
    check_row_settings(settings)
    query, table = as_row_pattern(pattern), read_rows(events, pattern, options)
    check_zones(table.schema)
    begin = time.perf_counter()
    found = run_row_pattern(call, pattern, table)
    seconds = time.perf_counter() - begin
    planned = settings.algorithm != "brute_force"
    plan = make_row_plan(pattern, table.schema, options, settings) if planned else None
    shown, counts = found.slice(0, rows), dict(profile.counts) or None
    matches = {} if counts is None else {"matches": counts["matches"]}
    return Content(
        query=cleandoc(pattern) if isinstance(pattern, str) else format_row_pattern(query),
        counts={"rows": table.num_rows, **matches, "rows in the result": found.num_rows},
        total=found.num_rows,
        noun="row",
        nouns="rows",
        seconds=seconds,
        plan=str(RowPatternExplanation(query, plan, counts)),
        drawing=_UNDRAWN if planned else _NO_PLAN,
        waterfall=None if counts is None else waterfall(profile).svg,
        stages=dict(profile.seconds),
        shown=shown,
        short=pa.Table.from_arrays([short_texts(column.combine_chunks()) for column in shown.columns], shown.column_names),
        timelines=(),
        lack="matches of rows are not drawn",
    )
