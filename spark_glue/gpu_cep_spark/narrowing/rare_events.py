"""Shuffle only the events near a rare event, if every match binds one.

Any event that bears on a match is at most a window's length from each event of the match, and in the
same stream (:mod:`gpu_cep.engine.phase_one.rare_events` tells why). A first pass over the source
looks for rare events. It cuts time into bins of a window's length, hashes the stream and the bin of
each rare event, and the bins beside, and sets these bits of a bitmap. A filter then keeps the events
whose own bit is set. Streams whose hashes are equal keep events too many, never too few.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.types import Kind
from gpu_cep.plan.event_plan import Plan
from gpu_cep_spark.narrowing.pushdown import column, read_columns, untimed, variable_filter
from gpu_cep_spark.slices.cut import SHORTEST, Slicing, slices_of

# Bits of a bitmap, a power of two, and of a word of it; 128 KiB travel with each task.
BITS, WORD = 1 << 20, 64
# Bins in which an event is looked for: that of a rare event, and those beside.
BINS = 3


class NearRare(NamedTuple):
    """A plan with a window of time, and the numbers of its rare variables.

    Every match binds one of these, and each has a :func:`variable_filter`.
    """

    plan: Plan
    variables: tuple[int, ...]

    @property
    def streams(self) -> tuple[int, tuple[int, ...]]:
        """Return the columns of the times and of the keys of streams; plans that share them share a bitmap."""
        return self.plan.query.timestamp, self.plan.stream_keys


def keep_near(df: DataFrame, events: pa.Schema, rare: Sequence[NearRare]) -> DataFrame:
    """Return the events that are near a rare event of some plan, and those without a time.

    What is near an event of another plan is kept too many, which changes no match.

    Parameters
    ----------
    df
        The events; read once more for each bitmap, so all readings must give the same rows.
    events
        The schema of the events of all plans.
    rare
        The plans with their rare variables.
    """
    read = read_columns(df, events.names)
    alike: dict[tuple[int, tuple[int, ...]], list[NearRare]] = {}
    for each in rare:
        alike.setdefault(each.streams, []).append(each)
    return read.filter(reduce(or_, [_is_near(read, events, group) for group in alike.values()]))


def _is_near(read: DataFrame, events: pa.Schema, rare: Sequence[NearRare]) -> Column:
    """Return whether an event is near a rare one, or has no time, for plans with the same times and keys."""
    longest = max((each.plan for each in rare), key=_window)
    query = longest.query
    missing = untimed(query, read.schema)
    home, first, last = slices_of(column(events.names[query.timestamp]), query.schema.attributes[query.timestamp].type.kind, _bins(longest))
    keys = [column(events.names[key]) for key in longest.stream_keys]
    filters = [variable_filter(each.plan.query, read.schema, variable) for each in rare for variable in each.variables]
    any_rare = reduce(or_, [each for each in filters if each is not None])
    named = [key.alias(f"k{number}") for number, key in enumerate(keys)]
    reached = read.filter(any_rare & ~missing).select(*named, F.explode(F.sequence(first, last)).alias("bin"))
    bitmap = _bitmap(reached.select(_bit(map(F.col, reached.columns)).alias("bit")))
    bit = _bit([*keys, home])
    word = F.element_at(bitmap.scalar(), (_word(bit) + 1).cast("int"))
    return missing | (F.getbit(word, _place(bit)) == 1)


def _bins(plan: Plan) -> Slicing:
    """Return bins of time as slices of a window's length, of which each needs the events of its neighbours."""
    length = _window(plan)
    floats = plan.query.schema.attributes[plan.query.timestamp].type.kind is Kind.FLOAT
    return Slicing((length or 1.0) if floats else max(length, SHORTEST), length, looks_back=True)


def _window(plan: Plan) -> int | float:
    """Return the length of the window in ticks."""
    window = plan.query.window
    assert isinstance(window, TimeWindow), "choose_rare refuses others"
    return window.length


def _bit(values: Sequence[Column] | map[Column]) -> Column:
    """Return the number of the bit that the keys of a stream and a bin have."""
    return F.xxhash64(*values).bitwiseAND(F.lit(BITS - 1))


def _word(bit: Column) -> Column:
    return F.shiftright(bit, WORD.bit_length() - 1)


def _place(bit: Column) -> Column:
    """Return the place of a bit in its word."""
    return bit.bitwiseAND(F.lit(WORD - 1)).cast("int")


def _bitmap(bits: DataFrame) -> DataFrame:
    """Return one row with an array of words, in which the bits numbered in the column of `bits` are set."""
    number = F.col(bits.columns[0])
    given = bits.select(_word(number).alias("word"), F.call_function("shiftleft", F.lit(1).cast("long"), _place(number)).alias("set"))
    # each word is there, so that its place in the array is its number
    all_words = bits.sparkSession.range(0, BITS // WORD, 1, 1).select(F.col("id").alias("word"), F.lit(0).cast("long").alias("set"))
    words = given.union(all_words).groupBy("word").agg(F.bit_or("set").alias("set"))
    return words.select(F.sort_array(F.collect_list(F.struct("word", "set"))).getField("set").alias("bitmap"))
