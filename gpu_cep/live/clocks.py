"""Read the times of a stream in ticks, move its watermark, and say which events are late and when a run is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.readable import readable_value
from gpu_cep.engine.input.ticks import Tick, preceding
from gpu_cep.engine.input.times import DROP, load_times
from gpu_cep.engine.streaming.state import Clock, Times
from gpu_cep.errors import EventError, PatternError
from gpu_cep.live.queries import LiveQuery


def times_of(live: LiveQuery, events: pa.Table) -> Times:
    """Return the times of events, in ticks."""
    columns, column = EventColumns(events, live.plan.query, live.plan.dictionaries, threads=1), live.plan.query.timestamp
    # row patterns have no nulls='drop'
    remedy = DROP if live.rows is None else f"push only rows that have a {columns.name(column)}"
    return load_times(columns, column, remedy)


def ticks_of(live: LiveQuery, time: Any, argument: str) -> Tick:
    """Return a value of the timestamp column in ticks; `argument` gives it.

    Raises
    ------
    EventError
        It is no such value, or the ticks do not hold all of it.
    """
    place = live.plan.query.timestamp
    field = live.schema.field(place)
    plain = _at_midnight(field, time.as_py() if isinstance(time, pa.Scalar) else time)
    told = f"{argument}: {time!r} is no value of the column {field.name!r} of type {field.type}"
    _refuse_other_clock(field, plain, told)
    if isinstance(plain, Real) and plain != plain:
        raise EventError(told)
    if isinstance(plain, (Real, Decimal)) and _is_calendar(field.type):
        # Arrow would take it for ticks since 1970
        raise EventError(f"{told}; expected {_calendar_form(field.type)}")
    try:
        value = pa.array([plain]).cast(field.type) if isinstance(plain, str) else pa.array([plain], field.type)
        whole = _holds_all(value, plain)
    except (pa.ArrowException, TypeError, OverflowError, ValueError) as fault:
        remedy = f"; expected {_calendar_form(field.type)}" if _is_calendar(field.type) else ""
        raise EventError(f"{told}{remedy}") from fault
    if not whole:
        raise EventError(f"{told}, which holds a part of it")
    columns = [value if number == place else pa.nulls(1, each.type) for number, each in enumerate(live.schema)]
    ticks: Tick = times_of(live, pa.Table.from_arrays(columns, schema=live.schema))[0].item()
    return ticks


def _is_calendar(arrow: pa.DataType) -> bool:
    """Return whether a column holds points in time of the calendar, and no numbers."""
    return bool(pa.types.is_timestamp(arrow) or pa.types.is_date(arrow))


def _calendar_form(arrow: pa.DataType) -> str:
    """Return what a time of a column of dates or timestamps is given as."""
    if pa.types.is_date(arrow):
        return "a date, or text such as '2026-01-31'"
    zone = "Z" if arrow.tz else ""
    return f"a datetime{' with a zone' if zone else ''}, or text such as '2026-01-31 08:00:00{zone}'"


def _at_midnight(field: pa.Field, time: Any) -> Any:
    """Return a day as its first moment if the column holds timestamps, as SQL compares the two; any other time as it is."""
    is_day = isinstance(time, date) and not isinstance(time, datetime)
    return datetime(time.year, time.month, time.day) if is_day and pa.types.is_timestamp(field.type) else time


def _refuse_other_clock(field: pa.Field, time: Any, told: str) -> None:
    """Raise EventError if a time has a zone and the column has none, or the other way round: Arrow would take UTC for it."""
    zone = getattr(time, "tzinfo", None)
    if isinstance(time, date) and pa.types.is_timestamp(field.type) and (zone is None) != (field.type.tz is None):
        remedy = "it has no zone; give it one, as in datetime(…, tzinfo=UTC)" if zone is None else "it has a zone; leave that out"
        raise EventError(f"{told}: {remedy}")


def _holds_all(value: pa.Array, plain: Any) -> bool:
    """Return whether an array holds the whole time `plain` of which it was made: Arrow cuts off parts of a tick."""
    if isinstance(plain, date):
        # pandas counts nanoseconds, which Arrow looks for only where it is told to
        own = pa.array([plain], pa.timestamp("ns") if getattr(plain, "nanosecond", 0) else None)
        return bool(value.cast(own.type).equals(own))
    in_ticks = pa.types.is_integer(value.type) or pa.types.is_temporal(value.type)
    return not in_ticks or not isinstance(plain, (Real, Decimal)) or bool(plain % 1 == 0)


def moved_clock(live: LiveQuery, clock: Clock, times: Times, *, pushed: int, late: int) -> Clock:
    """Return the clock once so many events have been pushed, of which `late` were late; `times` are those of the others."""
    own = [] if clock.latest is None else [clock.latest]
    latest = max([*own, times.max().item()]) if len(times) else clock.latest
    watermark = _moved_watermark(live, clock.watermark, times)
    return replace(clock, pushed=clock.pushed + pushed, late=clock.late + late, watermark=watermark, latest=latest)


def _moved_watermark(live: LiveQuery, watermark: Tick | None, times: Times) -> Tick | None:
    """Return the watermark once events have come."""
    if not len(times):
        return watermark
    latest: Tick = times.max().item()
    # further events of the latest time may come
    behind = preceding(latest) if live.in_order else latest - live.lateness
    if live.in_order and behind == latest:
        # the first of all times: nothing can be before it
        return watermark
    return behind if watermark is None else max(watermark, behind)


def idle_watermark(live: LiveQuery, clock: Clock, seconds: float) -> Tick | None:
    """Return the watermark after `seconds` without an event; it moves with the clock once `idle` has passed.

    Raises
    ------
    EventError
        The stream was made without `idle`.
    """
    if live.idle is None:
        raise EventError("advance() needs a time, or a stream that was made with idle='30 seconds' or so")
    if clock.latest is None or seconds < live.idle.seconds:
        return clock.watermark
    passed: Tick = seconds * live.idle.ticks_per_second
    moved = clock.latest - live.lateness + (passed if isinstance(clock.latest, float) else int(passed))
    return moved if clock.watermark is None else max(clock.watermark, moved)


def is_due(live: LiveQuery, clock: Clock) -> bool:
    """Return whether the watermark has moved so far that the engine runs."""
    if clock.watermark is None or clock.answered is None:
        return clock.watermark is not None
    moved = clock.watermark - clock.answered
    return moved > 0 and (live.every is None or moved >= live.every)


def refuse_other_clocks(live: Mapping[str, LiveQuery]) -> None:
    """Raise PatternError if queries, by name, do not go by one watermark."""
    clocks = {name: (_time_of(each), each.plan.query.drops_untimed, each.lateness, each.every) for name, each in live.items()}
    first = next(iter(clocks))
    for name, own in clocks.items():
        if own != clocks[first]:
            told = f"the patterns {first!r} and {name!r} differ in timestamp=, nulls= or time_unit="
            raise PatternError(f"{told}; a stream has one watermark")


def _time_of(live: LiveQuery) -> str:
    """Return the name of the column of timestamps."""
    return live.plan.query.schema.names[live.plan.query.timestamp]


def refuse_late(live: LiveQuery, clock: Clock, late: npt.NDArray[np.int64]) -> None:
    """Raise EventError if late events are an error."""
    if not live.refuses_late:
        return
    if live.in_order:
        told = f"events: row {late[0]:,} is of an earlier time than a row of a batch before it"
        raise EventError(f"{told}; result='reader' reads batches in order of time: sort them, or give them as one table")
    first = f"event {late[0]:,} is late" if len(late) == 1 else f"{len(late):,} events are late, the first of them event {late[0]:,}"
    told = f"{first}: the watermark is at {_written(live, clock.watermark)}"
    raise EventError(f"{told}; give a longer lateness=, or drop late events by late='drop'")


def _written(live: LiveQuery, tick: Tick | None) -> str:
    """Return a time as text: a timestamp in the zone of its column, in UTC if that cannot tell it, any other as a number of ticks."""
    kind = live.schema.field(live.plan.query.timestamp).type
    return str(readable_value(pa.scalar(tick).cast(kind))) if pa.types.is_timestamp(kind) else f"{tick} ticks"
