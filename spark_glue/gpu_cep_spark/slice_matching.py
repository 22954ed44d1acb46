"""Match slices of streams, and put together what they give: each stream's matches, as if it were whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.engine.answers import answer_schema
from gpu_cep.plan.event_plan import Plan
from gpu_cep_spark.assembly import ENDS, assemble, stream_columns, take_to_number
from gpu_cep_spark.files.reading import Reading
from gpu_cep_spark.jobs import Job, keys_of_shuffle
from gpu_cep_spark.narrowing.codes import Codes, coded_columns
from gpu_cep_spark.narrowing.narrow_frames import narrow
from gpu_cep_spark.narrowing.narrow_queries import SlicedQuery, time_kind
from gpu_cep_spark.schemas import batch_schema, spark_schema
from gpu_cep_spark.slices.cut import Slicing, in_slices, number_of
from gpu_cep_spark.slices.shuffle_tasks import shuffle, tasks_of_numbers
from gpu_cep_spark.slices.sums import schema_in_slices
from gpu_cep_spark.tasks.numbered_rows import IS_ROWS, TO, NumberedRows, number_rows


def match_in_slices(job: Job, slicing: Slicing) -> DataFrame:
    """Return the matches; streams are cut into slices, whose results are assembled."""
    df, query = job.df, job.query
    sliced, whole = SlicedQuery.of(query), query.plan
    codes = coded_columns(sliced.plan)
    keys, time = [f"c{key}" for key in whole.query.partition_by], F.col(f"c{whole.query.timestamp}")
    cut = in_slices(narrow(df, whole, query.events, codes), keys, time, time_kind(whole), slicing)
    shuffled = shuffle(cut, [number_of(F.col(cut.columns[-1])), *(F.col(f"c{key}") for key in keys_of_shuffle(whole))])
    return match_slices(job, shuffled, sliced, codes)


def match_slices(job: Job, given: DataFrame, sliced: SlicedQuery, codes: Codes, files: Reading | None = None) -> DataFrame:
    """Return the matches of whole streams, which workers find slice by slice.

    The partitions of `given` hold the slices, or, of `files`, the numbers of those that tasks read themselves.
    """
    plan, found, answer = sliced.plan, schema_in_slices(sliced.plan, sliced.schema), answer_schema(job.query.plan, job.query.events)
    work = replace(job.work(plan, sliced.sent, codes, found, files), sliced=files is None, packs=sliced.packs)
    if not _is_numbered(plan):
        return assemble(job.run(given, work), plan, job.query.settings.output, answer.names, packed=sliced.packs)
    rows_of_matches = pa.schema(list(found)[: len(found) - ENDS * bool(plan.ends)])
    numbering = _numbering(plan, batch_schema(spark_schema(rows_of_matches), job.zone), job.df.sparkSession)
    if plan.ends:
        return _number_matches(take_to_number(job.run(given, work), plan, numbering), numbering, answer)
    return _number_matches(job.run(given, replace(work, numbering=numbering)), numbering, answer)


def _is_numbered(plan: Plan) -> bool:
    """Return whether many tasks number the matches of slices; of streams with keys one task numbers those of each (:func:`assemble`)."""
    return plan.settings.output == "events" and not stream_columns(plan)


def _numbering(plan: Plan, rows: pa.Schema, session: SparkSession) -> NumberedRows:
    """Return how tasks number the matches of slices, which give `rows`."""
    assert plan.slice_key is not None, "rows of events tell their slice"
    slices, matches = map(rows.names.index, (plan.query.column_name(plan.slice_key), "match_id"))
    return NumberedRows(rows, slices, matches, tasks_of_numbers(session))


def _number_matches(found: DataFrame, numbering: NumberedRows, answer: pa.Schema) -> DataFrame:
    """Return the rows of schema `answer`, their matches numbered, from those that slices gave packed."""
    shown = tuple(map(numbering.rows.names.index, answer.names))
    sent = found.repartitionById(numbering.tasks, TO).sortWithinPartitions(IS_ROWS)
    return sent.mapInArrow(partial(number_rows, numbering, shown), spark_schema(answer))
