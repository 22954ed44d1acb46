"""The oracle's worked examples and properties hold for the matcher as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bind import bind_row_pattern
from gpu_cep.engine.input.read_tables import schema_of
from gpu_cep.engine.row_patterns.columns import row_columns
from gpu_cep.engine.row_patterns.matching import match_partitions
from gpu_cep.engine.row_patterns.measures import MeasureSource, measure_array
from gpu_cep.engine.row_patterns.ordering import order_rows
from gpu_cep.engine.row_patterns.places import PlaceFinder
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.engine.row_patterns.shown import covered_rows, shown_rows, with_unmatched
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.oracle.row_patterns.answers import ReturnedRow
from gpu_cep.plan.row_patterns.planner import plan_row_pattern
from tests.oracle.row_patterns import test_answers as examples
from tests.oracle.row_patterns.test_answers import *  # noqa: F403
from tests.oracle.row_patterns.test_technical_report import *  # noqa: F403

# The oracle takes measures that the whole clause does not, and only small partitions.
del test_large_partitions_are_refused, test_match_numbers_begin_anew_in_each_partition  # noqa: F821


def matched(query: RowPatternQuery, table: pa.Table, **keywords: Any) -> list[ReturnedRow]:
    """What the oracle's ``answer`` returns, by the matcher."""
    plan = plan_row_pattern(bind_row_pattern(query, schema_of(table.schema), Options(**keywords)))
    columns = row_columns(plan, table, 1)
    ordered = order_rows(plan.bound, columns, 1)
    matches = match_partitions(RowRun(plan, columns, ordered, 1), None)
    shown = shown_rows(plan, matches)
    if query.rows == "with unmatched":
        shown = with_unmatched(shown, np.flatnonzero(~covered_rows(matches, len(ordered))))
    source = MeasureSource(columns, ordered, PlaceFinder(plan, shown, 1))
    arrays = [measure_array("m", each, source) for each in plan.measures]
    measures = zip(*(array.to_pylist() for array in arrays), strict=True)
    unmatched = np.zeros(len(shown), np.bool_) if shown.unmatched is None else shown.unmatched
    return [
        ReturnedRow(int(number), None if none else values)
        for number, values, none in zip(ordered.numbers(shown.rows), measures, unmatched, strict=True)
    ]


@pytest.fixture(autouse=True, scope="module")
def answered_by_the_matcher() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examples, "answer", matched)
        yield
