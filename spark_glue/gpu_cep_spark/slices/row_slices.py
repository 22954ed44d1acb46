"""Cut the rows of a row pattern without PARTITION BY into slices of time, where its matches allow that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.row_patterns.slices import skips_rows, take_matches
from gpu_cep.lang.row_patterns.names import anchors_of
from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton
from gpu_cep.plan.row_patterns.certainty import leads_behind, numbers_matches, rows_before
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_spark.slices.choice import WINDOWS, SlicingChoice, Wording, default_length, given_length, settle_slices
from gpu_cep_spark.slices.cut import LONGEST, Slicing
from gpu_cep_spark.slices.shuffle_tasks import tasks_behind
from gpu_cep_spark.slices.statistics import time_span

_ROWS = Wording("partitions", "rows", " for MATCH_RECOGNIZE")


def choose_row_slicing(plan: RowPlan, wanted: float | str | None, time_unit: str | None, df: DataFrame, rows: pa.Schema) -> SlicingChoice:
    """Return how to cut rows into slices of the length that is `wanted`; raises as :func:`settle_slices`."""

    def given(wanted: float | str) -> Slicing:
        return _slicing(plan, given_length(plan.labels.query, _window(plan), wanted, time_unit))

    return settle_slices(wanted, reason_against(plan), _ROWS, given, partial(_by_itself, plan, df, rows))


def _by_itself(plan: RowPlan, df: DataFrame, rows: pa.Schema) -> SlicingChoice:
    """Return the choice of ``auto`` for rows that can be cut."""
    if skips_rows(plan.bound) and may_be_long(plan.automaton):
        # from each row a match is sought, also from those that a match before has: of long matches that is far more work
        why = "partitions are whole: matches that may be long, and skip their rows, are not cut unless slices= says how"
        return SlicingChoice(None, why)
    time = rows.field(plan.bound.order_by[0].column)
    length = default_length(_window(plan), time_span(df, time.name, time.type), tasks_behind(df))
    return SlicingChoice(_slicing(plan, length), "rows are cut: there is no PARTITION BY, and WITHIN bounds a match")


def reason_against(plan: RowPlan) -> str | None:
    """Return why rows of a row pattern cannot be cut, None if they can."""
    bound = plan.bound
    reasons = {
        "with PARTITION BY, which divides them": bool(bound.partition_by),
        "without WITHIN and a length of time": not isinstance(bound.window, TimeWindow),
        "with AFTER MATCH SKIP TO a variable, whose row depends on the match before": bound.skip is not None,
        "with MATCH_NUMBER(), which counts all matches before": numbers_matches(plan),
        "with WITH UNMATCHED ROWS": bound.query.rows == "with unmatched",
        "with ^ or $": any(True for _ in anchors_of(bound.query.pattern)),
        "with matches that may be empty": plan.automaton.may_be_empty,
        "with NEXT(…), which leads behind the match": leads_behind(plan),
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    return _reason_of_window(plan) if reason is None else reason


def _reason_of_window(plan: RowPlan) -> str | None:
    first = plan.bound.order_by[0]
    if plan.bound.schema.attributes[first.column].type.kind is Kind.FLOAT:
        return "by times that are floats"
    if not _window(plan) <= LONGEST // WINDOWS:
        return "with so long a window"
    if first.nulls_first and rows_before(plan):
        return "with NULLS FIRST and PREV(…), which leads to rows without a time"
    if plan.search is not None and skips_rows(plan.bound):
        return "where conditions read the match, and the next one begins behind it"
    return None


def may_be_long(automaton: RowAutomaton) -> bool:
    """Return whether a match may have any number of rows: whether states lead back to themselves."""
    left = {q: {move for move in moves if move != ACCEPT} for q, moves in enumerate(automaton.moves)}
    while done := {q for q, moves in left.items() if not moves & left.keys()}:
        left = {q: moves for q, moves in left.items() if q not in done}
    return bool(left)


def _window(plan: RowPlan) -> int:
    window = plan.bound.window
    assert isinstance(window, TimeWindow), "what has no window of time is not cut"
    return int(window.length)


def _slicing(plan: RowPlan, length: float) -> Slicing:
    return Slicing(int(length), _window(plan), looks_back=False, before=rows_before(plan))


def assemble_rows(found: DataFrame, names: list[str], *, candidates: bool) -> DataFrame:
    """Return the rows of the result, given those of slices; of `candidates` those that are matches."""
    if not candidates:
        return found.toDF(*names)
    result = found.select(*(F.col(name) for name in found.columns[: len(names)])).schema
    return found.repartition(1).mapInArrow(_take, result).toDF(*names)


def _take(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    gathered = list(batches)
    if gathered:
        yield from take_matches(pa.Table.from_batches(gathered)).to_batches()
