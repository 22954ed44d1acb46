"""Answer MATCH_RECOGNIZE over slices of time, and put their rows together.

A slice has the rows of its own, those of a window behind them, and as many before them as the pattern reads by PREV. It finds the
match that begins at each of its own rows, which no other row changes. With SKIP TO NEXT ROW these are the result. With SKIP
PAST LAST ROW they are candidates: which of them are matches depends on where the one before ends, maybe in the slice
before. A slice leaves out those to which the search comes from none of the rows at which it may enter the slice. Ways
from different rows soon meet. So few candidates are left that are no matches, and one task follows the way through all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.engine.accounting.profile import UNREAD, Profile
from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.row_patterns.answers import returned_rows
from gpu_cep.engine.row_patterns.columns import row_columns
from gpu_cep.engine.row_patterns.found import RowMatches
from gpu_cep.engine.row_patterns.matching import match_partitions
from gpu_cep.engine.row_patterns.ordering import OrderedRows, order_rows
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.engine.row_patterns.shown import shown_rows
from gpu_cep.lang.row_patterns.ast import Skip
from gpu_cep.plan.row_patterns.planner import plan_row_pattern
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep.plan.settings import DEFAULT_SETTINGS, Settings
from gpu_cep_kernels.row_patterns.matches import follow_targets

ENDS = tuple(pa.field(name, pa.int64()) for name in ("first time", "first place", "last time", "last place"))
"""The columns behind the rows of candidates: of the first and the last row the time, and the place among the rows of that time."""


def skips_rows(bound: BoundRowPattern) -> bool:
    """Return whether a match begins behind the one before, so that what slices find are candidates."""
    skip = bound.query.skip
    return skip is None or skip.to == "PAST LAST ROW"


def answer_slices(
    bound: BoundRowPattern, table: pa.Table, own: Flags, settings: Settings = DEFAULT_SETTINGS, *, threads: int,
    profile: Profile | None = None, ties: tuple[int, ...] = (),
) -> pa.Table:  # fmt: skip
    """Return the rows of the result that the matches of slices show, with :data:`ENDS` behind them if they are candidates.

    Parameters
    ----------
    bound
        The row pattern, bound to the columns of `table`. PARTITION BY is the number of the slice. Its window is one of time.
    table
        The rows of slices.
    own
        Whether a row belongs to its slice, and is no copy.
    profile
        Receives the counts of the slices' own rows and of copies, of matches or candidates, and the seconds of each stage.
    settings, threads, ties
        As :func:`gpu_cep.engine.row_patterns.answers.answer_row_pattern` takes them.

    Raises
    ------
    EventError, MatchLimitExceeded
        As :func:`gpu_cep.engine.row_patterns.answers.answer_row_pattern`.
    """
    plan = plan_row_pattern(replace(bound, query=replace(bound.query, skip=Skip("NEXT ROW", None))), settings)
    profile = UNREAD if profile is None else profile
    with profile.stage("columns"):
        columns = row_columns(plan, table, threads)
    with profile.stage("order"):
        ordered = order_rows(bound, columns, threads, ties)
    profile.add("rows", int(np.count_nonzero(own)))
    profile.add("copies", int(np.count_nonzero(~own)))
    run = RowRun(plan, columns, ordered, threads)
    matches = match_partitions(run, settings.max_steps, profile)
    with profile.stage("results"):
        if skips_rows(bound):
            return _candidates(run, matches, own, profile)
        chosen = matches.chosen(ordered.take(own)[matches.firsts])
        profile.add("matches", len(chosen))
        return returned_rows(run, chosen)


def _candidates(run: RowRun, matches: RowMatches, own: Flags, profile: Profile) -> pa.Table:
    """Return the rows of the matches to which the search may come, with :data:`ENDS` behind them."""
    plan, bound, ordered = run.plan, run.plan.bound, run.ordered
    kept = ordered.take(own)[matches.firsts]
    times = ordered.take(run.columns.values(bound.order_by[0].column)).astype(np.int64)
    kept &= _reached(plan, ordered, matches, times, ordered.take(own))[matches.firsts]
    chosen = matches.chosen(kept)
    profile.add("candidates", len(chosen))
    found = returned_rows(run, chosen)
    owners = np.arange(len(chosen)) if bound.query.rows == "one" else shown_rows(plan, chosen).owners
    places = _places_at_times(ordered, times)
    lasts = chosen.firsts + chosen.lengths - 1
    ends = (values[rows][owners] for rows in (chosen.firsts, lasts) for values in (times, places))
    return pa.Table.from_arrays([*found.columns, *map(pa.array, ends)], schema=pa.schema([*found.schema, *ENDS]))


def _reached(plan: RowPlan, ordered: OrderedRows, matches: RowMatches, times: Indices, own: Flags) -> Flags:
    """Return to which rows the search may come, from wherever the match before the slice ends."""
    window = plan.bound.window
    assert isinstance(window, TimeWindow), "rows are cut into slices by a window of time"
    rows = np.arange(len(ordered))
    targets = rows + 1
    targets[matches.firsts] += matches.lengths - 1
    first_own = np.minimum.reduceat(np.where(own, rows, len(rows)), ordered.offsets[:-1]) if len(rows) else rows
    starts = np.repeat(times[np.minimum(first_own, len(rows) - 1)], np.diff(ordered.offsets)) if len(rows) else times
    # a match from before ends at most a window behind the first row of its own; the search goes on with the row behind
    near = times.view(np.uint64) - starts.view(np.uint64) <= np.uint64(window.length)
    reached: Flags = own & np.concatenate([[True], near[:-1] | ~own[:-1]])[: len(rows)]
    reached[first_own[first_own < len(rows)]] = True
    follow_targets(targets, reached)
    return reached


def _places_at_times(ordered: OrderedRows, times: Indices) -> Indices:
    """Return the place of each row among those of its slice and time."""
    rows = np.arange(len(times))
    begins = np.concatenate([[True], times[1:] != times[:-1]])[: len(times)]
    begins[ordered.offsets[:-1]] = True
    return rows - np.maximum.accumulate(np.where(begins, rows, 0))


def take_matches(rows: pa.Table) -> pa.Table:
    """Return the rows of the candidates that are matches, without :data:`ENDS`; a match begins behind the one before."""
    first_time, first_place, last_time, last_place = (column.to_numpy() for column in rows.columns[-len(ENDS) :])
    count = rows.num_rows
    order = np.lexsort([np.concatenate([first_place, last_place]), np.concatenate([first_time, last_time])])
    ranks = np.empty(2 * count, np.int64)
    moments = np.stack([np.concatenate([first_time, last_time]), np.concatenate([first_place, last_place])])[:, order]
    ranks[order] = np.concatenate([np.zeros(min(count, 1), np.int64), np.cumsum((moments[:, 1:] != moments[:, :-1]).any(axis=0))])
    # the rows of a candidate have one first row
    firsts, examples, owners = np.unique(ranks[:count], return_index=True, return_inverse=True)
    targets = np.searchsorted(firsts, ranks[count:][examples], side="right")
    reached = np.arange(len(firsts)) == 0
    follow_targets(targets, reached)
    return rows.select(range(rows.num_columns - len(ENDS))).filter(pa.array(reached[owners]))
