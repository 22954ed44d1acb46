"""Answer MATCH_RECOGNIZE over a table."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.engine.brute_force import row_patterns as brute_force
from gpu_cep.engine.output.row_patterns import row_pattern_schema

__all__ = ["answer_row_pattern", "row_pattern_schema"]


def answer_row_pattern(
    bound: BoundRowPattern, options: Options, table: pa.Table, *, threads: int | None = None, max_steps: int | None = None
) -> pa.Table:  # fmt: skip
    """Return the rows of a row pattern: its keys, its measures and, with ALL ROWS, the other columns.

    Parameters
    ----------
    bound
        The row pattern, bound to the columns of `table`.
    options
        What the caller said beside the text.
    table
        The rows, on the host.
    threads
        How many threads share the partitions; None for all that the process may use.
    max_steps
        The most steps of a search whose conditions read the match; None for any number.

    Raises
    ------
    EventError
        AFTER MATCH SKIP TO leads to the first row of a match, or to a variable that has none; or an integer overflows.
    UnsupportedError
        The pattern has too many states; the message names the limit.
    """
    return brute_force.answer_row_pattern(bound, options, table)
