"""Tell on Spark for each start how far it came."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.api import match
from gpu_cep.choices import Scan
from gpu_cep.errors import UnsupportedError
from gpu_cep.keywords import SparkProgressOptions
from gpu_cep.plan.timeouts import MATCH
from gpu_cep.progress_tables import COMPLETED, REACHED, REPLACED, query_of_starts
from gpu_cep.queries.plans import refuse_swapped
from gpu_cep.signatures import takes_keywords
from gpu_cep_spark.matching import gpu_match
from gpu_cep_spark.scan_choice import Paths
from gpu_cep_spark.slices.choice import AUTO

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern


@takes_keywords(match, SparkProgressOptions)
def gpu_progress(
    df: DataFrame | SparkSession,
    pattern: Pattern | Paths,
    of_files: Pattern | None = None,
    *,
    worker_memory: int | str | None = None,
    slices: float | str | None = AUTO,
    scan: Scan = "auto",
    every: float | str | None = None,
    late: str = "drop",
    **keywords: Unpack[SparkProgressOptions],
) -> DataFrame:
    """Tell how far each start among the events of Spark came, as :func:`gpu_cep.progress` does in the process.

    Nothing runs until an action needs the result, but errors in the query are raised at
    once. A batch reads the events twice: once for the starts with a match, and once for the
    others. Of a streaming DataFrame the row of a start comes out once, when it is certain.

    Parameters
    ----------
    df, pattern, of_files, worker_memory, slices, scan, every
        As in :func:`gpu_match`. The pattern has a window of time, and no RETURN.
    late
        As in :func:`gpu_match`; ``rows`` is not supported.
    **keywords
        As in :func:`gpu_match`.

    Returns
    -------
    DataFrame
        With the columns of :func:`gpu_cep.progress`, in no particular order.

    Raises
    ------
    CepError
        Any error that :func:`gpu_cep.progress` and :func:`gpu_match` raise.
    """
    asked: Any = pattern if of_files is None else of_files
    refuse_swapped("gpu_progress", df, asked)
    if late == "rows":
        raise UnsupportedError("late='rows' is not supported by gpu_progress(), whose rows are starts; supported: drop, error")
    # Spark takes columns whose names differ in case alone for the same
    query, names, options = query_of_starts(asked, keywords, str.casefold)
    for_spark: dict[str, Any] = {"worker_memory": worker_memory, "slices": slices, "scan": scan, "every": every, "late": late}
    of_starts: dict[str, Any] = {"pattern": query} if of_files is None else {"pattern": pattern, "of_files": query}
    return _as_progress(gpu_match(df, **of_starts, **for_spark, **options), names)


def _as_progress(found: DataFrame, names: list[str]) -> DataFrame:
    """Return matches and timeouts as rows of starts."""
    # by place, since Spark may take names that differ in case alone for the same
    placed = found.toDF(*(f"c{place}" for place in range(len(found.columns))))
    column = {name: F.col(f"c{place}") for place, name in enumerate(found.columns)}
    kept = [column[name].alias(name) for name in found.columns if name not in REPLACED]
    reached = reduce(add, (column[name].isNotNull().cast("bigint") for name in names))
    return placed.select(*kept, reached.alias(REACHED), (column["kind"] == F.lit(MATCH)).alias(COMPLETED))
