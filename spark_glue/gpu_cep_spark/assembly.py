"""Assemble the results of slices: add up counts, renumber matches, drop overlapping matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from gpu_cep.analysis.types import Schema
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.positions import choose_disjoint
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.plan.event_plan import Plan
from gpu_cep_spark.narrowing.pushdown import are_told_apart, quote
from gpu_cep_spark.slices.shuffle_tasks import shuffle_sums
from gpu_cep_spark.tasks.numbered_rows import SENT, NumberedRows, pack_rows
from gpu_cep_spark.tasks.packed_rows import PACKED, unpack
from gpu_cep_spark.tasks.results import RESULT_ROWS

OVERFLOW = "a stream has more than 2**63 - 1 matches"
ENDS = 4  # columns: time and position of a match's first event, and of its last


def total_counts(counts: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one count per stream, the sum of its counts in the last of the columns called `names`."""
    if not are_told_apart(names):
        places = [f"r{place}" for place in range(len(names))]
        return total_counts(counts.toDF(*places), places).toDF(*names)
    *streams, parts = map(quote, names)
    # as text: each column that PySpark builds asks the JVM several times where in the user's code it is
    total = f"CASE WHEN count({parts}) = 0 THEN 0 ELSE coalesce(try_sum({parts}), raise_error('{OVERFLOW}')) END"
    added = f"CAST({total} AS BIGINT) AS {parts}"
    # the driver asks the JVM far less often for one expression of all rows
    return shuffle_sums(counts, streams).groupBy(*streams).agg(F.expr(added)) if streams else counts.selectExpr(added)


def numbered(found: DataFrame) -> DataFrame:
    """Return results with columns r0, r1, …: Spark does not tell names apart that differ in case alone."""
    return found.toDF(*(f"r{place}" for place in range(len(found.columns))))


def assemble(found: DataFrame, plan: Plan, output: str, names: list[str], *, beside: int = 0, packed: bool = False) -> DataFrame:
    """Return the result for whole streams, with columns called `names`.

    `found` are the rows that slices gave, and `plan` is the plan of the slices, which numbers them
    for ``output="events"``. The first `beside` columns, too, tell results apart. The rows of
    settled matches may be `packed`.
    """
    given, of_streams = found.columns, stream_columns(plan)
    places = {name: f"r{place}" for place, name in enumerate(given)}
    keys = [*(places[name] for name in given[:beside]), *(places[plan.query.column_name(key)] for key in of_streams)]
    rows = numbered(found)
    if plan.ends and output == "count" and of_streams:
        return _count_disjoint(rows, plan, [given.index(plan.query.column_name(key)) for key in of_streams]).toDF(*names)
    if plan.ends:
        rows = _disjoint(rows, plan, [given.index(plan.query.column_name(key)) for key in of_streams], packed=packed)
    if output == "count":
        counted = [*keys, places["count"]]
        return total_counts(rows.select(*counted), counted).toDF(*names)
    shown = {name: F.col(places[name]) for name in names}
    if output == "events":
        assert plan.slice_key is not None, "rows of events tell their slice"
        order = Window.partitionBy(*keys).orderBy(places[plan.query.column_name(plan.slice_key)], places["match_id"])
        shown["match_id"] = (F.dense_rank().over(order) - 1).cast("long")
    return rows.select(*(each.alias(name) for name, each in shown.items()))


def stream_columns(plan: Plan) -> tuple[int, ...]:
    """Return the columns that tell streams apart, of which slices are parts."""
    return tuple(key for key in plan.query.partition_by if key != plan.slice_key)


def _disjoint(found: DataFrame, plan: Plan, keys: list[int], *, packed: bool) -> DataFrame:
    """Return the matches that ``skip_past_last`` keeps, without their ends.

    The matches of one stream are shuffled into one partition for that. Packed ones are settled, and go to any.
    """
    behind = ENDS + PACKED * packed
    shown = StructType(found.schema.fields[:-behind])
    if not packed:
        return _by_stream(found, keys).mapInArrow(partial(take_matches, plan, tuple(keys)), shown)
    # of unsettled matches the number that spreads packed rows is NULL
    return _by_stream(found, [*keys, len(found.columns) - PACKED]).mapInArrow(partial(take_packed, plan, tuple(keys)), shown)


def take_to_number(found: DataFrame, plan: Plan, numbering: NumberedRows) -> DataFrame:
    """Return the matches of one stream that ``skip_past_last`` keeps, packed to be numbered; those of settled ones come packed."""
    return _by_stream(found, [len(found.columns) - PACKED]).mapInArrow(partial(take_and_pack, plan, numbering), SENT)


def _count_disjoint(found: DataFrame, plan: Plan, keys: list[int]) -> DataFrame:
    """Return the number of matches that ``skip_past_last`` keeps of each stream with `keys`.

    The stage that takes them adds them up, since it has all of a stream.
    """
    fields = found.schema.fields
    counts = StructType([*(fields[key] for key in keys), fields[-ENDS - 1]])
    return _by_stream(found, keys).mapInArrow(partial(count_matches, plan, tuple(keys)), counts)


def _by_stream(found: DataFrame, keys: list[int]) -> DataFrame:
    """Return the same rows, those of a stream in one partition."""
    together: list[Column] = [F.col(found.columns[key]) for key in keys]
    return found.repartition(*together) if together else found.repartition(1)


def take_matches(plan: Plan, keys: tuple[int, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the matches that ``skip_past_last`` keeps, without their ends, from batches of whole streams.

    Matches are taken in order of completion; a match is kept if it begins behind the last one kept.

    Parameters
    ----------
    plan
        The plan of the slices.
    keys
        The numbers in `batches` of the columns that tell streams apart.
    batches
        Rows whose last :data:`ENDS` columns are the ends of the match; NULL if its slice has settled that it is kept.
    """
    unsettled: list[pa.RecordBatch] = []
    for batch in batches:
        settled = batch.column(batch.num_columns - 1).is_null()
        yield batch.filter(settled).select(range(batch.num_columns - ENDS))
        unsettled.append(batch.filter(pc.invert(settled)))
    if not unsettled:
        return
    table = pa.Table.from_batches(unsettled)
    streams = _stream_numbers(plan, table.select(keys))
    first_time, first_place, last_time, last_place = (values.to_numpy() for values in table.columns[-ENDS:])
    taken = choose_disjoint(streams, (first_time, first_place), (last_time, last_place))
    yield from table.filter(pa.array(taken)).select(range(table.num_columns - ENDS)).to_batches()


def take_packed(plan: Plan, keys: tuple[int, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows as :func:`take_matches` from batches with the columns of packed rows behind those that it takes."""
    unsettled: list[pa.RecordBatch] = []
    for batch in batches:
        plain, settled = unpack(batch, ENDS)
        yield from settled
        unsettled.append(plain)
    yield from take_matches(plan, keys, unsettled)


def take_and_pack(plan: Plan, numbering: NumberedRows, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of :func:`take_packed` of one stream as :func:`pack_rows` does."""
    taken = (pa.Table.from_batches([rows]) for rows in take_packed(plan, (), batches))
    for packed in pack_rows(numbering, taken):
        yield from packed.to_batches()


def count_matches(plan: Plan, keys: tuple[int, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the number of matches that ``skip_past_last`` keeps of each stream; the parameters are those of :func:`take_matches`.

    Of each row the column before the ends says for how many matches it stands.
    """
    taken = [batch.select([*keys, batch.num_columns - 1]) for batch in take_matches(plan, keys, batches)]
    if not taken:
        return
    rows = pa.Table.from_batches(taken)
    _, firsts, streams = np.unique(_stream_numbers(plan, rows.select(range(len(keys)))), return_index=True, return_inverse=True)
    sums = np.zeros(len(firsts), np.int64)
    np.add.at(sums, streams, rows.column(len(keys)).to_numpy())
    counted = rows.take(firsts).set_column(len(keys), rows.schema.field(len(keys)), pa.array(sums))
    yield from counted.to_batches(max_chunksize=RESULT_ROWS)


def _stream_numbers(plan: Plan, keys: pa.Table) -> Indices:
    """Return for each row a number that identifies its stream."""
    query = plan.query
    attributes = tuple(query.schema.attributes[key] for key in stream_columns(plan))
    columns = EventColumns(keys, replace(query, schema=Schema(attributes), computed=()), threads=1)
    codes = encode_keys(columns, tuple(range(len(attributes)))).codes
    return np.zeros(keys.num_rows, np.int64) if codes is None else codes.astype(np.int64)
