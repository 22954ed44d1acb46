"""Cut streams into slices of time that are matched apart.

Slice n owns the events from time ``n * length`` until before ``(n + 1) * length``. It reports the
matches that start in these. It therefore has copies of the events up to a window behind its own. If
a negation looks back, it also has those up to a window before. A slice of situations has a copy of
the last event before its own, however far back that is. This event shows whether a situation starts
with the first own event. See :mod:`gpu_cep_spark.slices.numbers_of_events`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.types import Kind
from gpu_cep_spark.slices.marks import APART_BIT, EACH, FLAG_BITS, OWN_BIT
from gpu_cep_spark.slices.numbers_of_events import CELLS, PLACES, place_by_count

# The largest length of a slice, and the largest number: marks have bits behind it.
LONGEST, _LARGEST = 2**61, 2**60
# The shortest length of a slice in whole ticks.
SHORTEST = 8


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


def in_slices(df: DataFrame, keys: Sequence[str], time: Column, kind: Kind, slicing: Slicing) -> DataFrame:
    """Return each row of `df` once for each slice that holds it.

    The last column of the result is new: the row's mark (:mod:`gpu_cep_spark.slices.marks`).
    `time` is the column of times, of type `kind`, and `keys` are the columns of
    the streams' keys. A row without a time goes to some slice, where the engine
    reports it.
    """
    mark = f"c{len(df.columns)}"
    if slicing.before or slicing.behind:
        slicing = _align_to_cells(slicing)
        cell, *_ = slices_of(time, kind, replace(slicing, length=slicing.length / CELLS if kind is Kind.FLOAT else slicing.length // CELLS))
        return _repeat(place_by_count(df, keys, cell, slices_of(time, kind, slicing), slicing.before, slicing.behind), df.columns, mark)
    if kind is Kind.FLOAT:
        placed = df.select("*", *(place.alias(name) for place, name in zip(slices_of(time, kind, slicing), PLACES, strict=True)))
        return _repeat(placed, df.columns, mark)
    return _with_neighbours(df, time, kind, slicing, mark)


def _repeat(placed: DataFrame, columns: Sequence[str], mark: str) -> DataFrame:
    """Return each row once for each slice from its first to its last."""
    home, first, last = map(F.col, PLACES)
    held = placed.select(*columns, home, first, F.explode(F.sequence(first, last)).alias("held_by"))
    flags = APART_BIT * (first == home).cast("long") + OWN_BIT * (home == F.col("held_by")).cast("long")
    return held.select(*columns, (EACH * F.col("held_by") + flags).alias(mark))


def _with_neighbours(df: DataFrame, time: Column, kind: Kind, slicing: Slicing, mark: str) -> DataFrame:
    """Return each row once for its own slice, and once for each slice beside that with a copy.

    A slice is at least as long as the window, so that there are no others. Spark compiles this, which it does not do for an array
    of slices.
    """
    home, first, last = slices_of(time, kind, slicing)
    own = EACH * home + APART_BIT * (first == home).cast("long") + OWN_BIT
    marks = [own.alias("own"), F.when(first < home, EACH * first).alias("before")]
    if slicing.looks_back:
        marks.append(F.when(last > home, EACH * last).alias("behind"))
    placed = df.select("*", *marks)
    held = placed.unpivot([*df.columns], [*placed.columns[len(df.columns) :]], "place", mark).drop("place")
    return held.filter(F.col(mark).isNotNull())


def number_of(marked: Column) -> Column:
    """Return the slice's number, from the column that :func:`in_slices` adds."""
    return F.shiftright(marked, FLAG_BITS)


def slices_of(time: Column, kind: Kind, slicing: Slicing) -> tuple[Column, Column, Column]:
    """Return a row's own slice, and the first and the last slice that hold it, by the column `time` of type `kind` alone.

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
        bounded = F.greatest(F.lit(-float(_LARGEST)), F.least(F.lit(float(_LARGEST)), at / F.lit(slicing.length)))
        return F.floor(bounded)

    home = number(moment)
    return home, number(moment - F.lit(window)), number(moment + F.lit(window)) if slicing.looks_back else home
