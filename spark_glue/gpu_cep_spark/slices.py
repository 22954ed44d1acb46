"""Streams cut by time: slice n holds the events from ``n * length`` until before ``(n + 1) * length``, and copies from beside it.

A slice reports the matches that start in its own events. It therefore has
copies of all events up to a window behind them, and of a window before them
where a negation looks back. Situations are cut so, too: one that starts with
the first event of a slice is told from one that goes on by the event before,
however far back that is (:mod:`gpu_cep_spark.numbers_of_events`).
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
# Where nothing is known of the times slices are so many windows long: one event in so many is copied. In no case are they chosen shorter
# than so few.
WINDOWS, FEWEST_WINDOWS = 16, 4
# Where it is known how far times are apart, there are so many slices for each partition of a shuffle: chance then spreads them evenly.
SLICES_PER_PARTITION = 32
# Numbers of slices are whole numbers up to here, and so are their lengths, which are no shorter than so many ticks.
_MOST, _SHORTEST = 2**61, 4


@dataclass(frozen=True, slots=True)
class Slicing:
    """How streams are cut: into slices of `length` ticks.

    They hold what comes up to a `window` behind them, and before them if
    matches `look_back`; and in any case so many events `behind` and `before`.
    """

    length: int | float
    window: int | float
    looks_back: bool
    behind: int = 0
    before: int = 0


def slicing_of(
    plan: AnyPlan, wanted: float | str | None, time_unit: str | None, span: Callable[[], int | float | None], partitions: int
) -> Slicing | None:
    """How `plan` is answered slice by slice, of the length that is `wanted`; None where its streams stay whole.

    Parameters
    ----------
    plan
        The plan over whole streams.
    wanted
        A length of time, ``auto`` or None.
    time_unit
        The ticks of a timestamp that is a number.
    span
        Says how far apart the earliest and the latest time are, if that is known.
    partitions
        How many partitions a shuffle makes.

    Raises
    ------
    PatternError
        `wanted` is no length of time, or shorter than the window.
    UnsupportedError
        A length is wanted, but streams cannot be cut.
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
            # to look for the events before costs a pass over all events, which a key may spare
            if situations and wanted == AUTO and query.partition_by:
                return None
            if wanted != AUTO:
                length = _given_length(query, window, wanted, time_unit)
                return Slicing(length, window, _looks_back(plan), before=int(situations))
            known = span()
            length = _default_length(window, known, partitions)
            # so few slices divide no stream among the partitions, and many streams divide themselves
            if known is not None and known < partitions * length and plan.stream_keys:
                return None
            return Slicing(length, window, _looks_back(plan), before=int(situations))
        # slices of a stream with bursts may need many copies of these: none is cut unasked
        case CountWindow(events=events) if wanted != AUTO:
            before = events - 1 if _looks_back(plan) else 0
            return Slicing(_given_length(query, 0, wanted, time_unit), 0, looks_back=False, behind=events - 1, before=before)
    return None


def _reason_against(plan: AnyPlan) -> str | None:
    """Why streams cannot be cut, if they cannot."""
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
    """So many windows; where the `span` of times is known, its share, but not too few windows."""
    if span is None:
        return WINDOWS * window or type(window)(WINDOWS)
    share = type(window)(span / (SLICES_PER_PARTITION * partitions))
    return min(max(share, FEWEST_WINDOWS * window), type(window)(_MOST)) or type(window)(WINDOWS)


def _given_length(query: BoundQuery, window: int | float, wanted: float | str, time_unit: str | None) -> int | float:
    given, faults = length_of(wanted), Faults()
    if given is None:
        hint = "write 'auto', None, a number of ticks, or text such as '30 minutes'"
        raise PatternError([Diagnostic(f"slices={wanted!r} is no length of time", hint=hint)])
    length = bind_length("length of slices", given, query.schema.attributes[query.timestamp], time_unit, faults)
    if length is not None and not (length >= window and 0 < length <= _MOST):
        faults.error(f"slices={wanted!r} must be at least as long as the window, and longer than nothing")
    faults.raise_any(None)
    assert length is not None, "no length is a fault"
    return length if isinstance(length, float) else max(length, _SHORTEST)


def in_slices(df: DataFrame, keys: Sequence[str], time: Column, kind: Kind, slicing: Slicing) -> DataFrame:
    """Each row of `df`, whose time is in the column `time`, once for each slice of its stream that holds it; `keys` tell streams apart.

    A column comes behind the others: twice the slice's number, and one more in
    the slice's own rows. A row without a time goes to any slice.
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
    """The slice's number, of the column that :func:`in_slices` adds."""
    return F.shiftright(marked, 1)


def _places(time: Column, kind: Kind, slicing: Slicing) -> tuple[Column, Column, Column]:
    """By time, the slice that a row belongs to, and the first and the last that hold it; a row without a time has no copies."""
    home, first, last = _of_floats(time, slicing) if kind is Kind.FLOAT else _of_ticks(_ticks(time, kind), slicing)
    return home, F.when(time.isNull(), home).otherwise(first), F.when(time.isNull(), home).otherwise(last)


def _align_to_cells(slicing: Slicing) -> Slicing:
    """The same in slices that are not shorter, and so many cells long."""
    length = slicing.length
    return replace(slicing, length=length if isinstance(length, float) else -(-length // CELLS) * CELLS)


def _ticks(time: Column, kind: Kind) -> Column:
    """Times as whole numbers of the ticks that windows are bound in."""
    ticks = {Kind.DATE: F.unix_date, Kind.TIMESTAMP: F.unix_micros}.get(kind)
    return F.coalesce((time if ticks is None else ticks(time)).cast("long"), F.lit(0).cast("long"))


def _of_ticks(ticks: Column, slicing: Slicing) -> tuple[Column, Column, Column]:
    """The places, exactly for every int64."""
    length, window = F.lit(slicing.length).cast("long"), F.lit(slicing.window).cast("long")
    behind = F.pmod(ticks, length)
    # `div` rounds to zero
    home = F.call_function("div", ticks, length) - ((ticks < 0) & (behind > 0)).cast("long")
    first = home - (behind < window).cast("long")
    last = home + (behind >= length - window).cast("long") if slicing.looks_back else home
    return home, first, last


def _of_floats(time: Column, slicing: Slicing) -> tuple[Column, Column, Column]:
    """The places by rounded arithmetic: it is monotonic, so a slice holds all from its first event to its last.

    Whatever time is within the window of another once differences are rounded
    is within the next longer window of it exactly.
    """
    window = math.nextafter(slicing.window, math.inf)
    moment = F.coalesce(time.cast("double"), F.lit(0.0))

    def number(at: Column) -> Column:
        bounded = F.greatest(F.lit(-float(_MOST)), F.least(F.lit(float(_MOST)), at / F.lit(slicing.length)))
        return F.floor(bounded)

    home = number(moment)
    return home, number(moment - F.lit(window)), number(moment + F.lit(window)) if slicing.looks_back else home
