"""Match streams that are whole in one task, and add up counts that several tasks have of one."""

from __future__ import annotations

from pyspark.sql import DataFrame

from gpu_cep.engine.answers import answer_schema
from gpu_cep_spark.assembly import total_counts
from gpu_cep_spark.files.reading import Reading
from gpu_cep_spark.jobs import Job, counts_in_parts
from gpu_cep_spark.narrowing.codes import Codes
from gpu_cep_spark.tasks.worker import without_rows


def match_whole(job: Job, given: DataFrame, codes: Codes, files: Reading | None = None, *, timed: bool = False) -> DataFrame:
    """Return the matches of a job; streams are whole in a partition of `given`, or in what a task reads of `files`.

    The partitions of `given` hold the events, or, of `files`, the numbers of what tasks read themselves. It is `timed` if tasks
    read slices of time, of which each tells its own matches.
    """
    plan, events = job.query.plan, job.query.events
    result = answer_schema(plan, events)
    sent = without_rows(result) if plan.settings.output == "compressed" else result
    found = job.run(given, job.work(plan, events, codes, sent, files))
    counts = plan.settings.output == "count"
    return total_counts(found, result.names) if counts_in_parts(plan) or (timed and counts) else found
