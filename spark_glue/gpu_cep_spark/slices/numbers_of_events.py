"""Place rows in slices that hold copies of a given number of events before and behind their own.

These events may be far away in time. Slices are therefore divided into cells,
and the events of each cell are counted. The counts say which cells hold the
events that a slice needs; these cells are copied whole. Slices without events
of their own are dropped, and the others of each stream are renumbered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

# A slice is divided into two to this power cells.
_POWER = 3
CELLS = 1 << _POWER
OTHER_EVENTS = "the events are read twice, and were others the second time; persist them, or use slices=None"
# The columns with the slice that a row belongs to, and the first and the last slice that hold the row.
PLACES = ("home", "first", "last")


def place_by_count(
    df: DataFrame, keys: Sequence[str], cell: Column, places: tuple[Column, Column, Column], before: int, behind: int
) -> DataFrame:
    """Return the rows of `df` with their own slice and the slices with a copy, as :data:`PLACES`.

    Slices get copies of `before` events before their own, and of `behind` events behind them.
    `places` are the same columns by time alone; their copies are made, too. `cell` is a row's cell
    number.
    """
    home, first, last = places
    located = df.select("*", cell.alias("cell"), (home - first).alias("earlier"), (last - home).alias("later"))
    known = _known_cells(located, keys, before, behind)
    # the cells are broadcast, so that the rows are not shuffled
    streams = [F.col(key).eqNullSafe(F.col(name)) for key, name in zip(keys, _names(keys), strict=True)]
    placed = located.join(F.broadcast(known), reduce(and_, streams, F.col("cell") == F.col("number")), "left")
    found = (
        F.coalesce(F.col("home"), F.raise_error(F.lit(OTHER_EVENTS)).cast("long")),
        F.least(F.col("first"), F.col("home") - F.col("earlier")),
        F.greatest(F.col("last"), F.col("home") + F.col("later")),
    )
    return placed.select(*df.columns, *(place.alias(name) for place, name in zip(found, PLACES, strict=True)))


def _names(keys: Sequence[str]) -> list[str]:
    """Return names for the columns of the streams' keys among the cells."""
    return [f"key{place}" for place in range(len(keys))]


def _known_cells(located: DataFrame, keys: Sequence[str], before: int, behind: int) -> DataFrame:
    """Return each cell that has events, with the columns :data:`PLACES`.

    Slices are numbered from 1 on in each stream.
    """
    named = [F.col(key).alias(name) for key, name in zip(keys, _names(keys), strict=True)]
    counted = located.groupBy(*named, F.col("cell").alias("number")).agg(F.count(F.lit(1)).alias("events"))
    stream = Window.partitionBy(*_names(keys))
    in_order = stream.orderBy("number")
    numbered = counted.select(
        "*",
        F.dense_rank().over(stream.orderBy(F.shiftright("number", _POWER))).cast("long").alias("home"),
        F.sum("events").over(in_order).alias("through"),
    )
    # The first slice that holds a cell is that of the event with `behind` events between it and the cell. This event lies in
    # the cell just before the first one that begins at most `behind` events earlier than the cell. The last slice likewise.
    beside = numbered.select(
        "*",
        F.lag("home").over(in_order).alias("previous"),
        F.lead("home").over(in_order).alias("next"),
        (F.col("through") - F.col("events")).alias("preceding"),
    )
    first = F.min("previous").over(stream.orderBy("preceding").rangeBetween(-behind, 0))
    last = F.max("next").over(stream.orderBy("through").rangeBetween(0, before))
    return beside.select(
        *_names(keys),
        "number",
        "home",
        (F.coalesce(first, F.col("home")) if behind else F.col("home")).alias("first"),
        (F.coalesce(last, F.col("home")) if before else F.col("home")).alias("last"),
    )
