"""Slices that hold a number of events beside their own, however far from them these are.

Slices are divided into cells. The events of each cell are counted, so that
the cells are known in which those that a slice needs lie; they are copied
whole. Slices without events of their own are passed over, and the others are
numbered anew, stream by stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

# A slice is so many cells long, two to this power.
_POWER = 3
CELLS = 1 << _POWER
OTHER_EVENTS = "the events are read twice, and were others the second time; persist them, or use slices=None"
# The columns that say which slice a row belongs to, and the first and the last that hold it.
PLACES = ("home", "first", "last")


def place_by_count(
    df: DataFrame, keys: Sequence[str], cell: Column, places: tuple[Column, Column, Column], before: int, behind: int
) -> DataFrame:
    """The rows of `df` with the places of each, where slices hold so many events `before` and `behind` their own, and what `places` say."""
    home, first, last = places
    located = df.select("*", cell.alias("cell"), (home - first).alias("earlier"), (last - home).alias("later"))
    known = _known_cells(located, keys, before, behind)
    # all of it goes to every task; the rows stay where they are
    streams = [F.col(key).eqNullSafe(F.col(name)) for key, name in zip(keys, _names(keys), strict=True)]
    placed = located.join(F.broadcast(known), reduce(and_, streams, F.col("cell") == F.col("number")), "left")
    found = (
        F.coalesce(F.col("home"), F.raise_error(F.lit(OTHER_EVENTS)).cast("long")),
        F.least(F.col("first"), F.col("home") - F.col("earlier")),
        F.greatest(F.col("last"), F.col("home") + F.col("later")),
    )
    return placed.select(*df.columns, *(place.alias(name) for place, name in zip(found, PLACES, strict=True)))


def _names(keys: Sequence[str]) -> list[str]:
    return [f"key{place}" for place in range(len(keys))]


def _known_cells(located: DataFrame, keys: Sequence[str], before: int, behind: int) -> DataFrame:
    """Each cell that has events, and its places: in slices that are numbered from 1 on in each stream."""
    named = [F.col(key).alias(name) for key, name in zip(keys, _names(keys), strict=True)]
    counted = located.groupBy(*named, F.col("cell").alias("number")).agg(F.count(F.lit(1)).alias("events"))
    stream = Window.partitionBy(*_names(keys))
    in_order = stream.orderBy("number")
    numbered = counted.select(
        "*",
        F.dense_rank().over(stream.orderBy(F.shiftright("number", _POWER))).cast("long").alias("home"),
        F.sum("events").over(in_order).alias("through"),
    )
    # the cell before, or behind, those that begin, or end, within reach holds the last event within reach
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
