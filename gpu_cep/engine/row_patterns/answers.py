"""Answer MATCH_RECOGNIZE over a table: order the rows, label them, find the matches, compute the measures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from gpu_cep.engine.accounting.profile import UNREAD, Profile
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.output.row_patterns import row_pattern_schema
from gpu_cep.engine.row_patterns.columns import row_columns
from gpu_cep.engine.row_patterns.found import RowMatches
from gpu_cep.engine.row_patterns.matching import match_partitions
from gpu_cep.engine.row_patterns.measures import MeasureSource, measure_array
from gpu_cep.engine.row_patterns.ordering import order_rows
from gpu_cep.engine.row_patterns.places import PlaceFinder, reads_all_rows
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.engine.row_patterns.shown import ShownRows, covered_rows, shown_rows, with_unmatched
from gpu_cep.engine.row_patterns.totals import with_fixed_counts
from gpu_cep.errors import MatchLimitExceeded, ending_in
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.compile.large import compile_beside
from gpu_cep_kernels.compile.launch import spread, threads_of
from gpu_cep_kernels.row_patterns.search import search_row_matches
from gpu_cep_kernels.row_patterns.walk import walk_row_matches

# Rows of matches whose measures are computed together: some arrays of 8 bytes for each of them.
_MOST_ROWS = 1 << 25


@ending_in(MatchLimitExceeded, "matching", "match fewer rows at a time, whole partitions of them")
def answer_row_pattern(
    plan: RowPlan, table: pa.Table, max_steps: int | None = None, *, threads: int | None = None,
    profile: Profile | None = None, ties: tuple[int, ...] = (),
) -> pa.Table:  # fmt: skip
    """Return the rows of a row pattern: its keys, its measures and, with ALL ROWS, the other columns.

    Parameters
    ----------
    plan
        The plan of the row pattern, bound to the columns of `table`; it says whether a card labels the rows.
    table
        The rows, on the host.
    max_steps
        The most steps of a search whose conditions read the match; None for any number.
    threads
        How many threads share the partitions; None for all that the process may use.
    profile
        Receives the counts of rows, partitions, matches and, of a search, steps; and the seconds of each stage.
    ties
        The columns that order rows which ORDER BY leaves equal, before their numbers do.

    Raises
    ------
    EventError
        AFTER MATCH SKIP TO leads to the first row of a match, or to a variable that has none; or an integer overflows.
    MatchLimitExceeded
        The search made more than ``max_steps``, or there is too little memory.
    EngineUnavailable
        A card is asked for, and cannot be used.
    """
    threads = threads_of(threads)
    profile = UNREAD if profile is None else profile
    if plan.search is not None:
        compile_beside((walk_row_matches if plan.automaton.leaves_no_choice else search_row_matches,), threads)
    with profile.stage("columns"):
        columns = row_columns(plan, table, threads)
    with profile.stage("order"):
        ordered = order_rows(plan.bound, columns, threads, ties)
    run = RowRun(plan, columns, ordered, threads)
    matches = match_partitions(run, max_steps, profile)
    for name, count in (("rows", len(ordered)), ("partitions", len(ordered.offsets) - 1), ("matches", len(matches))):
        profile.add(name, count)
    if plan.search is not None:
        profile.add("steps", matches.steps)
    with profile.stage("results"):
        unmatched = np.flatnonzero(~covered_rows(matches, len(ordered))) if plan.bound.query.rows == "with unmatched" else None
        return returned_rows(run, matches, unmatched)


def returned_rows(run: RowRun, matches: RowMatches, unmatched: Indices | None = None) -> pa.Table:
    """Return the rows of the result that matches show, and those of no match (None: these are not asked for)."""
    run = replace(run, plan=with_fixed_counts(run.plan, run.columns))
    plan = run.plan
    if unmatched is not None:
        return _rows_of(run, with_unmatched(shown_rows(plan, matches), unmatched))
    parts = matches.parts(_MOST_ROWS) if reads_all_rows(plan, matches) else [matches]
    found = [_rows_of(run, shown_rows(plan, part)) for part in parts]
    return pa.concat_tables(found) if found else no_rows(row_pattern_schema(plan.bound, run.columns.schema))


def _rows_of(run: RowRun, shown: ShownRows) -> pa.Table:
    """Return the rows of the result that some matches show."""
    plan, columns, ordered, threads = run.plan, run.columns, run.ordered, run.threads
    schema = row_pattern_schema(plan.bound, columns.schema)
    source = MeasureSource(columns, ordered, PlaceFinder(plan, shown, threads))
    source.finder.prepare()
    numbers = pa.array(ordered.numbers(shown.rows))
    keys, others = plan.bound.key_columns, plan.bound.returned_columns
    fields = [schema.field(len(keys) + number) for number in range(len(plan.measures))]
    taken = [partial(columns.take, each, numbers) for each in (*keys, *others)]
    measured = [partial(measure_array, to.name, each, source, to.type) for each, to in zip(plan.measures, fields, strict=True)]
    found = spread(lambda column: column(), [*taken[: len(keys)], *measured, *taken[len(keys) :]], threads)
    return pa.table(found, schema=schema)
