"""Say what the work on each bucket of a stream is, which travels to the executors."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from gpu_cep.live.queries import LiveQuery
from gpu_cep_spark.narrowing.codes import Codes


@dataclass(frozen=True, slots=True)
class LiveWork:
    """The work on each bucket.

    Parameters
    ----------
    live
        The query; its `schema` has the users' names of columns.
    digest
        What tells the query from others.
    pattern
        The query as one line of text, for error messages.
    codes
        The text columns that arrive as codes, with the constants that these stand for.
    result
        The schema that Spark expects of the matches.
    partitions
        The partitions of the state, if Spark does not tell tasks of another number.
    whole
        The schema of whole events, which come behind the columns of the query if late ones are rows of the result; else None.
    ties
        The columns that order rows which the ORDER BY of a row pattern leaves equal.
    """

    live: LiveQuery
    digest: str
    pattern: str
    codes: Codes
    result: pa.Schema
    partitions: int
    whole: pa.Schema | None = None
    ties: tuple[int, ...] = ()
