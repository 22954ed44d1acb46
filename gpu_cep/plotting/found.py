"""The matches of a query, by the rows of the input that they are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bind_intervals import DETECTED_AT
from gpu_cep.analysis.options import Options
from gpu_cep.api import AnyQuery, make_plan, run_plan
from gpu_cep.engine.columns import machine_values
from gpu_cep.errors import CepError
from gpu_cep.lang.ast import Aggregate, Call, IntervalQuery, Reference, ReturnItem
from gpu_cep.plan.settings import Settings
from gpu_cep.plotting.time_axis import Tick

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FoundSituation:
    """A situation by its first event; `end` is None while it is open."""

    row: int
    end: Tick | None


@dataclass(frozen=True, slots=True)
class FoundSituations:
    """Match `number` of `count`: one situation of each name, and when it was detected."""

    number: int
    count: int
    situations: tuple[FoundSituation, ...]
    detected: Tick

    @property
    def all_rows(self) -> Rows:
        """The first events of all situations."""
        return np.array([situation.row for situation in self.situations])


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """Match `number` of `count`: the rows that each variable is bound to, none if it is absent."""

    number: int
    count: int
    rows: tuple[Rows, ...]

    @property
    def all_rows(self) -> Rows:
        """The rows of all variables."""
        return np.concatenate(self.rows)


@dataclass(frozen=True, slots=True)
class Findings:
    """All matches of `query`, in the order of results, by the rows and the ends of what they are made of."""

    query: AnyQuery
    matches: pa.Table

    def match(self, number: int) -> FoundSituations | FoundEvents:
        """One match.

        Raises
        ------
        CepError
            There are fewer.
        """
        match, count = _numbered(self.matches, number), self.matches.num_rows
        if isinstance(self.query, IntervalQuery):
            return _found_situations(number, count, match, len(self.query.situations))
        return FoundEvents(number, count, tuple(map(_rows, match.columns)))


def find_matches(query: AnyQuery, table: pa.Table, options: Options, settings: Settings, threads: int | None) -> Findings:
    """All matches of `query`; raises as :func:`gpu_cep.match`."""
    if isinstance(query, IntervalQuery):
        return Findings(query, _find_situations(query, table, options, settings, threads))
    planned = make_plan(query, table.schema, options, replace(settings, output="indices"))
    return Findings(query, run_plan(planned, query, options, table, threads=threads))


def _find_situations(query: IntervalQuery, table: pa.Table, options: Options, settings: Settings, threads: int | None) -> pa.Table:
    row = "_" * (1 + max(map(len, table.column_names)))  # longer than any other name
    asked = replace(query, returns=tuple(item for situation in query.situations for item in _bounds(situation.name, row)))
    table = table.append_column(row, pa.array(np.arange(table.num_rows)))
    return run_plan(make_plan(asked, table.schema, options, settings), asked, options, table, threads=threads)


def _found_situations(number: int, count: int, match: pa.Table, names: int) -> FoundSituations:
    returned = match.columns[-2 * names :]
    situations = tuple(FoundSituation(first[0].as_py(), _tick(end)) for first, end in zip(returned[::2], returned[1::2], strict=True))
    detected = _tick(match.column(DETECTED_AT))
    assert detected is not None, "a match is detected some time"
    return FoundSituations(number, count, situations, detected)


def _bounds(name: str, row: str) -> tuple[ReturnItem, ReturnItem]:
    """The row of a situation's first event, and the situation's end."""
    first = Aggregate("first", name, row)
    return ReturnItem(first, f"{row}first {name}"), ReturnItem(Call("end", (Reference(name, None),)), f"{row}end {name}")


def _rows(column: pa.ChunkedArray) -> Rows:
    bound = column[0].as_py()
    return np.array([] if bound is None else bound, np.int64).reshape(-1)


def _numbered(matches: pa.Table, number: int) -> pa.Table:
    if number < matches.num_rows:
        return matches.slice(number, 1)
    found = f"finds {matches.num_rows:,}, numbered from 0" if matches.num_rows else "finds none"
    raise CepError(f"there is no match {number:,} to draw: the query {found}")


def _tick(column: pa.ChunkedArray) -> Tick | None:
    """The one time in a column."""
    if column.null_count:
        return None
    tick: Tick = machine_values(column.combine_chunks(), "time")[0].item()
    return tick
