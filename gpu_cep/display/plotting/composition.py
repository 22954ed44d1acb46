"""Compose the scene that shows a match."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import ConditionKind
from gpu_cep.analysis.options import Options
from gpu_cep.display.plotting.found import FoundEvents, FoundSituations
from gpu_cep.display.plotting.scene import Bar, EventMarks, Scene, UnboundEvents
from gpu_cep.display.plotting.time_axis import Ticks, TimeAxis, time_axis
from gpu_cep.display.plotting.view import View, series_in_view, view_around
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.readable import check_zones, readable_texts
from gpu_cep.engine.input.times import load_times
from gpu_cep.lang.ast import Query
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.format import format_definition, format_pattern
from gpu_cep.plan.event_plan import Plan

# Of more events that a match passes over, so many are drawn, evenly spread.
MOST_PASSED = 1_000


def compose(
    found: FoundSituations | FoundEvents, query: Query | IntervalQuery, plan: Plan, table: pa.Table, options: Options, margin: float
) -> Scene:  # fmt: skip
    """Return the scene of a match of `query` with a `margin` around it.

    `plan` gives the streams and the order of the events of `table`.

    Raises
    ------
    UnsupportedError
        The match begins or ends at infinity.
    EventError
        The zone of the times is unknown.
    """
    columns = EventColumns(table, plan.query, threads=1)
    check_zones(pa.schema([table.schema.field(columns.name(column)) for column in (plan.query.timestamp, *plan.stream_keys)]))
    times: Ticks = load_times(columns, plan.query.timestamp)
    bound = times[found.all_rows]
    first = int(found.all_rows[bound.argmin()])
    start, end = bound.min().item(), bound.max().item() if isinstance(found, FoundEvents) else found.detected
    view = view_around(plan, columns, times, first, (start, end), margin)
    name, kind = columns.name(plan.query.timestamp), columns.type(plan.query.timestamp)
    axis = time_axis(name, kind, options.time_unit, (view.low, view.high), (start, _text(columns, plan.query.timestamp, first)))
    tracks: tuple[Bar | EventMarks, ...]
    if isinstance(found, FoundSituations):
        assert isinstance(query, IntervalQuery), "situations are what such a query finds"
        tracks, passed, detected = tuple(_bars(found, query, times, axis)), None, _place(axis, times, found.detected)
    else:
        tracks, passed, detected = tuple(_marks(found, plan, view)), _passed(found, view), None
    hidden = options.type_column if isinstance(found, FoundEvents) else None
    keys = [f"{columns.name(column)} = {_text(columns, column, first)}" for column in plan.stream_keys]
    return Scene(
        title=" · ".join([f"match {found.number:,}, one of {found.count:,}", *keys]),
        subtitle=format_pattern(query),
        axis=axis.label,
        zone=_zone(axis),
        view=axis.places(np.array([view.low, view.high], times.dtype)),
        times=axis.places(view.ticks),
        series=tuple(series_in_view(plan, columns, view, len(tracks), hidden)),
        tracks=tracks,
        passed=passed,
        detected=detected,
    )


def _bars(found: FoundSituations, query: IntervalQuery, times: Ticks, axis: TimeAxis) -> Iterator[Bar]:
    for situation, defined in zip(found.situations, query.situations, strict=True):
        end = found.detected if situation.end is None else situation.end
        start = times[situation.row].item()
        yield Bar(
            defined.name, format_definition(defined), _place(axis, times, start), _place(axis, times, end), situation.end is None
        )  # fmt: skip


def _marks(found: FoundEvents, plan: Plan, view: View) -> Iterator[EventMarks]:
    properties = [condition for condition in plan.query.conditions if condition.kind is ConditionKind.PROPERTY]
    for number, (variable, rows) in enumerate(zip(plan.query.positives, found.rows, strict=True)):
        text = " AND ".join(condition.text for condition in properties if condition.variables == (number,))
        yield EventMarks(variable.name, text, np.flatnonzero(np.isin(view.rows, rows)))


def _passed(found: FoundEvents, view: View) -> UnboundEvents | None:
    """Return the events between the first and the last that the match binds and that it does not bind, None if there are none."""
    bound = np.flatnonzero(np.isin(view.rows, found.all_rows))
    between = np.setdiff1d(np.arange(bound[0], bound[-1]), bound)
    drawn = np.linspace(0, len(between) - 1, min(len(between), MOST_PASSED)).astype(np.int64)
    return UnboundEvents(len(between), between[drawn]) if len(between) else None


def _place(axis: TimeAxis, times: Ticks, tick: float) -> np.generic:
    """Return the position of a time on the axis."""
    place: np.generic = axis.places(np.array([tick], times.dtype))[0]
    return place


def _text(columns: EventColumns, column: int, row: int) -> str:
    """Return one value of a column as text."""
    text = readable_texts(columns.take(column, pa.array([row])).cast(pa.string()))[0].as_py()
    return "NULL" if text is None else str(text)


def _zone(axis: TimeAxis) -> tzinfo | None:
    """Return the time zone of the axis, None if its times have none."""
    if axis.zone is None:
        return None
    zone: tzinfo | None = pa.scalar(0, pa.timestamp("s", axis.zone)).as_py().tzinfo
    return zone
