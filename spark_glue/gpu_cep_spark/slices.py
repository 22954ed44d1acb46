"""Cut streams into slices of time that are matched apart.

Slice n owns the events from time ``n * length`` until before ``(n + 1) * length``. It reports the
matches that start in these. It therefore has copies of the events up to a window behind its own. If
a negation looks back, it also has those up to a window before. A slice of situations has a copy of
the last event before its own, however far back that is. This event shows whether a situation starts
with the first own event. See :mod:`gpu_cep_spark.numbers_of_events`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.bound import BoundQuery, CountWindow, TimeWindow
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.types import Kind
from gpu_cep.analysis.windows import bind_length, length_of
from gpu_cep.engine.answers import AnyPlan
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_spark.numbers_of_events import CELLS, PLACES, place_by_count

AUTO = "auto"
# The length in windows of a slice if the span of the times is not known (one event in so many is copied), and the shortest in any case.
WINDOWS, FEWEST_WINDOWS = 16, 4
# If the span of the times is known: slices for each partition of a shuffle, enough that hashing spreads them evenly.
SLICES_PER_PARTITION = 32
# The largest number and length of a slice, and the shortest length in whole ticks.
_MOST, _SHORTEST = 2**61, 4


@dataclass(frozen=True, slots=True)
class Slicing:
    """How streams are cut: slices are `length` ticks long.

    A slice holds the events up to `window` ticks behind it. If negations look
    back (`looks_back`), it also holds those up to `window` ticks before it. It
    holds at least `behind` events behind it and `before` events before it.
    """

    length: int | float
    window: int | float
    looks_back: bool
    behind: int = 0
    before: int = 0


def slicing_of(
    plan: AnyPlan, wanted: float | str | None, time_unit: str | None, span: Callable[[], int | float | None], partitions: int
) -> Slicing | None:
    """Return how to cut streams into slices of the length that is `wanted`, None if they stay whole.

    Parameters
    ----------
    plan
        The plan over whole streams.
    wanted
        A length of time, ``auto`` or None.
    time_unit
        What bare numbers count, as in :func:`gpu_cep.match`.
    span
        Returns the latest minus the earliest time, None if it is not known.
    partitions
        The number of partitions of a shuffle.

    Raises
    ------
    PatternError
        `wanted` is not a length of time, lacks a unit, or is shorter than the window.
    UnsupportedError
        `wanted` is a length, but streams of this query cannot be cut.
    """
    if wanted is None:
        return None
    reason = _reason_against(plan)
    if reason is not None and wanted == AUTO:
        return None
    if reason is not None:
        raise UnsupportedError([Diagnostic(f"slices={wanted!r} is not supported {reason}", hint="supported: slices='auto' or None")])
    query = plan.query
    match query.window:
        case TimeWindow(length=window):
            situations = isinstance(plan, IntervalPlan)
            # finding the event before a slice costs a pass over all events; streams with a key spread without slices
            if situations and wanted == AUTO and query.partition_by:
                return None
            if wanted != AUTO:
                length = _given_length(query, window, wanted, time_unit)
                return Slicing(length, window, _looks_back(plan), before=int(situations))
            known = span()
            length = _default_length(window, known, partitions)
            # with fewer slices than partitions nothing is gained if there are streams to spread
            if known is not None and known < partitions * length and plan.stream_keys:
                return None
            return Slicing(length, window, _looks_back(plan), before=int(situations))
        # never by "auto": in a stream with bursts, a count window may need many copies
        case CountWindow(events=events) if wanted != AUTO:
            before = events - 1 if _looks_back(plan) else 0
            return Slicing(_given_length(query, 0, wanted, time_unit), 0, looks_back=False, behind=events - 1, before=before)
    return None


def _reason_against(plan: AnyPlan) -> str | None:
    """Return why streams cannot be cut, None if they can."""
    match plan.query.window:
        case None:
            return "without a window"
        case TimeWindow(length=window) if not window <= _MOST // WINDOWS:
            return "with so long a window"
        case CountWindow(events=events) if events > _MOST:
            return "with so long a window"
    if isinstance(plan, IntervalPlan) and plan.query.gap is not None:
        return "with gap="
    return "with output='compressed'" if plan.settings.output == "compressed" else None


def _looks_back(plan: AnyPlan) -> bool:
    branches = () if isinstance(plan, IntervalPlan) else plan.branches
    return any(not negation.after for branch in branches for negation in branch.negations)


def _default_length(window: int | float, span: int | float | None, partitions: int) -> int | float:
    """Return the length of slices that ``auto`` takes.

    It is a number of windows. If the `span` of the times is known, it is a share of that, but at
    least a few windows.
    """
    if span is None:
        return WINDOWS * window or type(window)(WINDOWS)
    share = type(window)(span / (SLICES_PER_PARTITION * partitions))
    return min(max(share, FEWEST_WINDOWS * window), type(window)(_MOST)) or type(window)(WINDOWS)


def _given_length(query: BoundQuery, window: int | float, wanted: float | str, time_unit: str | None) -> int | float:
    """Return the length that the user wants, in ticks; it is at least the window."""
    given, faults = length_of(wanted), Faults()
    if given is None:
        hint = "write 'auto', None, a number, or text such as '30 minutes'"
        raise PatternError([Diagnostic(f"slices={wanted!r} is no length of time", hint=hint)])
    timestamp = query.schema.attributes[query.timestamp]
    length = bind_length("length of slices", given, timestamp, time_unit, faults, form="slices='{}'")
    if length is not None and not (length >= window and 0 < length <= _MOST):
        faults.error(f"slices={wanted!r} must be at least as long as the window, and longer than nothing")
    faults.raise_any(None)
    assert length is not None, "no length is a fault"
    return length if isinstance(length, float) else max(length, _SHORTEST)


def in_slices(df: DataFrame, keys: Sequence[str], time: Column, kind: Kind, slicing: Slicing) -> DataFrame:
    """Return each row of `df` once for each slice that holds it.

    The last column of the result is new: twice the slice's number, plus one in
    the slice's own rows. `time` is the column of times, of type `kind`, and
    `keys` are the columns of the streams' keys. A row without a time goes to
    some slice, where the engine reports it.
    """
    if slicing.before or slicing.behind:
        slicing = _align_to_cells(slicing)
        cell, *_ = _places(time, kind, replace(slicing, length=slicing.length / CELLS if kind is Kind.FLOAT else slicing.length // CELLS))
        placed = place_by_count(df, keys, cell, _places(time, kind, slicing), slicing.before, slicing.behind)
    else:
        placed = df.select("*", *(place.alias(name) for place, name in zip(_places(time, kind, slicing), PLACES, strict=True)))
    home, first, last = map(F.col, PLACES)
    held = placed.select(*df.columns, home, F.explode(F.sequence(first, last)).alias("held_by"))
    marked = 2 * F.col("held_by") + (home == F.col("held_by")).cast("long")
    return held.select(*df.columns, marked.alias(f"c{len(df.columns)}"))


def number_of(marked: Column) -> Column:
    """Return the slice's number, from the column that :func:`in_slices` adds."""
    return F.shiftright(marked, 1)


def _places(time: Column, kind: Kind, slicing: Slicing) -> tuple[Column, Column, Column]:
    """Return a row's own slice, and the first and the last slice that hold it, by its time alone.

    A row without a time has no copies.
    """
    home, first, last = _of_floats(time, slicing) if kind is Kind.FLOAT else _of_ticks(_ticks(time, kind), slicing)
    return home, F.when(time.isNull(), home).otherwise(first), F.when(time.isNull(), home).otherwise(last)


def _align_to_cells(slicing: Slicing) -> Slicing:
    """Return the same slicing with the length rounded up to whole cells."""
    length = slicing.length
    return replace(slicing, length=length if isinstance(length, float) else -(-length // CELLS) * CELLS)


def _ticks(time: Column, kind: Kind) -> Column:
    """Return times as integers, in the ticks that windows are measured in; 0 for NULL."""
    ticks = {Kind.DATE: F.unix_date, Kind.TIMESTAMP: F.unix_micros}.get(kind)
    return F.coalesce((time if ticks is None else ticks(time)).cast("long"), F.lit(0).cast("long"))


def _of_ticks(ticks: Column, slicing: Slicing) -> tuple[Column, Column, Column]:
    """Return the own, first and last slice of integer times, exact for every int64."""
    length, window = F.lit(slicing.length).cast("long"), F.lit(slicing.window).cast("long")
    behind = F.pmod(ticks, length)
    # `div` rounds towards zero; this rounds down
    home = F.call_function("div", ticks, length) - ((ticks < 0) & (behind > 0)).cast("long")
    first = home - (behind < window).cast("long")
    last = home + (behind >= length - window).cast("long") if slicing.looks_back else home
    return home, first, last


def _of_floats(time: Column, slicing: Slicing) -> tuple[Column, Column, Column]:
    """Return the own, first and last slice of float times.

    Rounded arithmetic is monotonic, so a slice still holds all events from its first to its last.
    The window is longer by one float, because rounding may shorten the distance of two times.
    """
    window = math.nextafter(slicing.window, math.inf)
    moment = F.coalesce(time.cast("double"), F.lit(0.0))

    def number(at: Column) -> Column:
        bounded = F.greatest(F.lit(-float(_MOST)), F.least(F.lit(float(_MOST)), at / F.lit(slicing.length)))
        return F.floor(bounded)

    home = number(moment)
    return home, number(moment - F.lit(window)), number(moment + F.lit(window)) if slicing.looks_back else home
