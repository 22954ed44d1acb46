"""The check that the library and a loop find the same matches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.baselines.measure import Disagreement
from benchmarks.kinds.questions import Kind


def check_rows(kind: Kind, ours: pa.Table, theirs: pa.Table) -> None:
    """Raise Disagreement unless two tables of row numbers hold the same matches."""
    if len(ours) != len(theirs):
        raise Disagreement(f"{kind.name}: {len(ours):,} matches, {len(theirs):,} in C++")
    if not in_one_order(kind, ours).equals(in_one_order(kind, theirs)):
        raise Disagreement(f"{kind.name}: the row numbers differ")


def in_one_order(kind: Kind, rows: pa.Table) -> pa.Table:
    """Return the matches ordered by the first row of each variable: no two matches of these kinds share them all."""
    wide = {True: pa.large_list(pa.int64()), False: pa.int64()}
    columns = {name: rows[name].combine_chunks().cast(wide[quantified]) for name, quantified in kind.variables.items()}
    firsts = [_firsts(columns[name], quantified) for name, quantified in kind.variables.items()]
    order = pa.array(np.lexsort(firsts[::-1]))
    return pa.table({name: column.take(order) for name, column in columns.items()})


def _firsts(column: pa.Array, quantified: bool) -> np.ndarray:
    """Return the first row of each match, -1 where the variable is absent."""
    rows = pc.list_element(column, 0) if quantified else column
    firsts: np.ndarray = rows.fill_null(-1).to_numpy()
    return firsts
