"""Find the matches of a query, with the input rows that each is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bind_intervals import DETECTED_AT
from gpu_cep.display.match_view import MatchView, view_matches
from gpu_cep.display.plotting.time_axis import Tick
from gpu_cep.engine.input.input_events import InputEvents
from gpu_cep.engine.input.machine_values import machine_values
from gpu_cep.errors import CepError
from gpu_cep.lang.ast import Aggregate, Call, Reference, ReturnItem
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep.queries.plans import PatternQuery, as_query, make_plan
from gpu_cep.queries.runs import MatchCall, run_plan

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FoundSituation:
    """A situation of a match: the input row of its first event, and its end, None while it is open."""

    row: int
    end: Tick | None


@dataclass(frozen=True, slots=True)
class FoundSituations:
    """Match `number` of `count` of an interval pattern.

    It has a situation of each name, and the time of detection.
    """

    number: int
    count: int
    situations: tuple[FoundSituation, ...]
    detected: Tick

    @property
    def all_rows(self) -> Rows:
        """Return the input rows of the first events of all situations."""
        return np.array([situation.row for situation in self.situations])


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """Match `number` of `count` of an event pattern: the input rows that each variable binds."""

    number: int
    count: int
    rows: tuple[Rows, ...]

    @property
    def all_rows(self) -> Rows:
        """Return the input rows that all variables bind."""
        return np.concatenate(self.rows)


@dataclass(frozen=True, slots=True)
class Findings:
    """All matches of `query`, in the order of results.

    `returned` is the table that the query returns, with all keys of its streams, and `view` is how it
    is shown. Row n of `bound` holds the input rows that each variable of match n binds. For situations
    it holds the first row and the end of each.
    """

    query: PatternQuery
    view: MatchView
    returned: pa.Table
    bound: pa.Table

    def match(self, number: int) -> FoundSituations | FoundEvents:
        """Return match `number`, counted from 0.

        Raises
        ------
        CepError
            There are fewer matches.
        """
        bound, count = _row_of_match(self.bound, number), self.bound.num_rows
        if isinstance(self.query, IntervalQuery):
            return _situations_of_match(number, count, bound, self.returned.slice(number, 1))
        return FoundEvents(number, count, tuple(map(_rows, bound.columns)))


def find_with_rows(plan: AnyPlan, call: MatchCall, table: pa.Table, *, returned: bool = True) -> Findings:
    """Find all matches of the call's pattern, whose plan is `plan`, in one run; raises as :func:`gpu_cep.match`.

    If not `returned`, the findings have nothing of what the query itself returns.
    """
    query = as_query(call.pattern)
    names, view = [each.name for each in plan.query.positives], view_matches(plan, query, call.options)
    row = "_" * (1 + max(len(name) for name in (*table.column_names, *names, *(item.name or "" for item in view.asked.returns))))
    bound = [item for name in names for item in (_bounds(name, row) if isinstance(plan, IntervalPlan) else (_row(name, row),))]
    asked = replace(query, returns=(*(view.asked.returns if returned else ()), *bound))
    carried = tuple(table.column_names) if plan.settings.columns is None else plan.settings.columns
    table = table.append_column(row, pa.array(np.arange(table.num_rows)))
    wide_plan = make_plan(asked, table.schema, call.options, replace(plan.settings, columns=carried))
    found = run_plan(wide_plan, replace(call, pattern=asked, settings=wide_plan.settings), InputEvents(table))
    own = found.num_columns - len(bound)
    shown = found.select(range(own))
    return Findings(query, view, view.put_keys_first(shown) if returned else shown, found.select(range(own, found.num_columns)))


def _situations_of_match(number: int, count: int, bound: pa.Table, returned: pa.Table) -> FoundSituations:
    pairs = zip(bound.columns[::2], bound.columns[1::2], strict=True)
    situations = tuple(FoundSituation(first[0].as_py(), _tick(end)) for first, end in pairs)
    detected = _tick(returned.column(DETECTED_AT))
    assert detected is not None, "a match is detected some time"
    return FoundSituations(number, count, situations, detected)


def _row(name: str, row: str) -> ReturnItem:
    """Return the RETURN item of the input rows that a variable binds; `row` is the column of numbers."""
    return ReturnItem(Reference(name, row), f"{row}{name}")


def _bounds(name: str, row: str) -> tuple[ReturnItem, ReturnItem]:
    """Return the RETURN items for the input row of a situation's first event, and for its end."""
    first = Aggregate("first", name, row)
    return ReturnItem(first, f"{row}first {name}"), ReturnItem(Call("end", (Reference(name, None),)), f"{row}end {name}")


def _rows(column: pa.ChunkedArray) -> Rows:
    bound = column[0].as_py()
    return np.array([] if bound is None else bound, np.int64).reshape(-1)


def _row_of_match(matches: pa.Table, number: int) -> pa.Table:
    if number < matches.num_rows:
        return matches.slice(number, 1)
    found = f"finds {matches.num_rows:,}, numbered from 0" if matches.num_rows else "finds none"
    raise CepError(f"there is no match {number:,} to draw: the query {found}")


def _tick(column: pa.ChunkedArray) -> Tick | None:
    """Return the time in a column of one row, None for NULL."""
    if column.null_count:
        return None
    tick: Tick = machine_values(column.combine_chunks(), "time")[0].item()
    return tick
