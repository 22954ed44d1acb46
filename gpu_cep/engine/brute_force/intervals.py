"""Answer queries over situations by ``algorithm="brute_force"``.

The oracle finds the matches of small input; they are written in each form of output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.windows import length_of
from gpu_cep.engine.brute_force.events import refuse_more, scalars
from gpu_cep.engine.events.event_sequence import NO_POSITION, EventSequence
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.intervals.matches import IntervalMatches, SeenSituations, matched_situations, sort_matches
from gpu_cep.engine.intervals.results import IntervalResult, interval_table
from gpu_cep.engine.intervals.run import interval_counts
from gpu_cep.engine.intervals.situations import SituationRuns
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.oracle.intervals import IntervalMatch, matches
from gpu_cep.oracle.options import IntervalOptions
from gpu_cep.plan.interval_plan import IntervalPlan


def enumerate_situations(plan: IntervalPlan, query: IntervalQuery, options: Options, table: pa.Table | ResidentTable) -> pa.Table:
    """Return the result of a query over situations by brute force.

    Raises
    ------
    UnsupportedError
        A stream has too many situations; the message names the limit.
    MatchLimitExceeded
        There are more than `max_matches`.
    """
    columns = event_columns(plan, to_host(table))
    asked = IntervalOptions(
        timestamp=options.timestamp, partition_by=options.partition_by, order_by=options.order_by, detect=options.detect,
        allen=options.allen, time_unit=options.time_unit, gap=None if options.gap is None else length_of(options.gap),
        functions=scalars(plan, options.functions),
    )  # fmt: skip
    # the engine computes what it returns
    found = matches(replace(query, returns=()), _in_days(to_host(columns.table), options.timestamp), asked)
    refuse_more(plan, len(found))
    events, place = _order_events(plan, columns)
    runs, known = _flat_matches(plan, events, place, found)
    if plan.settings.output == "count":
        counts = np.bincount(runs.stream[known.members[0]], minlength=events.count)
        return interval_counts(plan, columns, events, runs.stream, runs.first, counts)
    ordered = sort_matches(plan, columns, events, runs, known)
    return interval_table(IntervalResult(plan, events, ordered, matched_situations(columns, events, runs, ordered, 1), threads=1))


def _in_days(table: pa.Table, timestamp: str) -> pa.Table:
    """Return the events with a date64 timestamp cast to date32, as the engine does."""
    column = table.schema.get_field_index(timestamp)
    if not pa.types.is_date64(table.schema.field(column).type):
        return table
    return table.set_column(column, timestamp, table.column(column).cast(pa.date32()))


def _order_events(plan: IntervalPlan, columns: EventColumns) -> tuple[EventSequence, Indices]:
    """Return the events stream after stream, and the position of each input row in that order."""
    times, keys = load_times(columns, plan.query.timestamp), encode_keys(columns, plan.query.partition_by)
    codes = np.zeros(len(columns), np.int32) if keys.codes is None else keys.codes
    ranks = rank_rows(columns, plan.query.order_by, np.arange(len(columns)))
    rows = np.lexsort([np.arange(len(columns)), *([ranks] if ranks.size else []), times, codes])
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    borders = offsets(np.bincount(codes, minlength=keys.count))
    return EventSequence(times[rows], codes[rows], keys.count, rows.astype(np.int32), borders), place


def _flat_matches(
    plan: IntervalPlan, events: EventSequence, place: Indices, found: Sequence[IntervalMatch]
) -> tuple[SituationRuns, IntervalMatches]:  # fmt: skip
    """Return the oracle's matches as the engine's, each with situations of its own."""
    names = [situation.name for situation in plan.query.variables]
    first = place[_each(found, names, lambda match, name: match.rows[name][0], np.int64)]
    last = place[_each(found, names, lambda match, name: match.rows[name][-1], np.int64)]
    start = _each(found, names, lambda match, name: match.lasts[name][0], events.times.dtype)
    is_open = _each(found, names, lambda match, name: match.lasts[name][1] is None, np.bool_)
    end = _each(found, names, lambda match, name: match.lasts[name][1] or 0, events.times.dtype)
    ended = np.where(is_open, NO_POSITION, 0)
    streams = np.zeros(len(events), np.int32) if events.streams is None else events.streams
    members = np.arange(first.size, dtype=np.int64).reshape(first.shape)
    flat: list[Any] = [array.ravel() for array in (streams[first], first, last, ended, start, end)]
    runs = SituationRuns(np.arange(len(names) + 1) * len(found), *flat)
    detected = np.array([match.at for match in found], events.times.dtype)
    return runs, IntervalMatches(members, first.min(axis=0), end.max(axis=0), detected, SeenSituations(last, is_open))


def _each(found: Sequence[IntervalMatch], names: Sequence[str], value: Callable[[IntervalMatch, str], Any], kind: npt.DTypeLike) -> Array:
    """Return `value` of each matched situation as an array [name, match]."""
    return np.array([value(match, name) for name in names for match in found], kind).reshape(len(names), len(found))
