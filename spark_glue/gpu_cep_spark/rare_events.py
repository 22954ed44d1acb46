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

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.types import Kind
from gpu_cep.plan.event_plan import Plan
from gpu_cep_spark.pushdown import column, read_columns, untimed, variable_filter
from gpu_cep_spark.slices import SHORTEST, Slicing, slices_of

# Bits of a bitmap, a power of two, and of a word of it; 128 KiB travel with each task.
BITS, WORD = 1 << 20, 64
# Bins in which an event is looked for: that of a rare event, and those beside.
BINS = 3


def keep_near(df: DataFrame, plan: Plan, events: pa.Schema, rare: Sequence[int]) -> DataFrame:
    """Return the events that are near an event of a variable in `rare`, and those without a time.

    Parameters
    ----------
    df
        The events; read twice, so both readings must give the same rows.
    plan
        A plan with a window of time over events of the schema `events`.
    rare
        The numbers of variables with a :func:`variable_filter`, one of which every match binds.
    """
    read, query = read_columns(df, events.names), plan.query
    missing = untimed(query, read.schema)
    home, first, last = slices_of(column(events.names[query.timestamp]), query.schema.attributes[query.timestamp].type.kind, _bins(plan))
    keys = [column(events.names[key]) for key in plan.stream_keys]
    filters = [variable_filter(query, read.schema, variable) for variable in rare]
    any_rare = reduce(or_, [each for each in filters if each is not None])
    named = [key.alias(f"k{number}") for number, key in enumerate(keys)]
    reached = read.filter(any_rare & ~missing).select(*named, F.explode(F.sequence(first, last)).alias("bin"))
    bitmap = _bitmap(reached.select(_bit(map(F.col, reached.columns)).alias("bit")))
    bit = _bit([*keys, home])
    word = F.element_at(bitmap.scalar(), (_word(bit) + 1).cast("int"))
    return read.filter(missing | (F.getbit(word, _place(bit)) == 1))


def _bins(plan: Plan) -> Slicing:
    """Return bins of time as slices of a window's length, of which each needs the events of its neighbours."""
    window = plan.query.window
    assert isinstance(window, TimeWindow), "choose_rare refuses others"
    floats = plan.query.schema.attributes[plan.query.timestamp].type.kind is Kind.FLOAT
    return Slicing((window.length or 1.0) if floats else max(window.length, SHORTEST), window.length, looks_back=True)


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
