"""Bind events to the roles of their columns, for queries that are asked of them one after the other."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from gpu_cep import api
from gpu_cep.choices import TableOutput
from gpu_cep.keywords import (
    ExplainChoices,
    MatchChoices,
    Names,
    PlotChoices,
    ReportChoices,
    RoleOptions,
    TableChoices,
    make_options,
)
from gpu_cep.signatures import checks_keywords, takes_keywords

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from gpu_cep.choices import Nulls, Result, TimeUnit
    from gpu_cep.display.plotting import Timeline
    from gpu_cep.display.reporting import Report
    from gpu_cep.engine.compressed.compressed import Compressed
    from gpu_cep.plan.explain import Explanation
    from gpu_cep.plan.interval_explain import IntervalExplanation
    from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
    from gpu_cep.queries.plans import Pattern
    from gpu_cep_spark.bound_events import SparkEvents


_Path = TypeVar("_Path", bound="str | PathLike[str]")
_Frame = TypeVar("_Frame", bound="DataFrame")


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events in this process, and what their columns are; :func:`gpu_cep.events` makes them.

    Each method is the public function of its name, which says what it takes, returns and raises.
    """

    data: Any
    roles: RoleOptions

    def __repr__(self) -> str:
        return f"Events({roles_of(self.data, self.roles)})"

    @overload
    def match(
        self, pattern: Pattern, *, output: Literal["compressed"], result: Literal["arrow"] = ..., **keywords: Unpack[TableChoices]
    ) -> Compressed: ...
    @overload
    def match(
        self, pattern: Pattern, *, output: TableOutput = ..., result: Literal["arrow"] = ..., **keywords: Unpack[TableChoices]
    ) -> pa.Table: ...
    @overload
    def match(self, pattern: Pattern, *, output: TableOutput = ..., result: Result, **keywords: Unpack[TableChoices]) -> Any: ...

    @takes_keywords(api.match, MatchChoices)
    def match(self, pattern: Pattern, **keywords: Any) -> Any:
        """Find the matches of `pattern`, as :func:`gpu_cep.match`."""
        return api.match(self.data, pattern, **self.roles, **keywords)

    @takes_keywords(api.match, PlotChoices)
    def count(self, pattern: Pattern, **keywords: Unpack[PlotChoices]) -> int:
        """Return the number of matches of `pattern` in all streams; no match is built."""
        from pyarrow.compute import sum

        counts = api.match(self.data, pattern, output="count", **self.roles, **keywords)["count"]
        return int(sum(counts, min_count=0).as_py())

    @takes_keywords(api.match, ExplainChoices)
    def explain(
        self, pattern: Pattern, *, run: bool = False, **keywords: Unpack[ExplainChoices]
    ) -> Explanation | IntervalExplanation | RowPatternExplanation:  # fmt: skip
        """Explain how `pattern` will be answered, as :func:`gpu_cep.explain`."""
        return api.explain(self.data, pattern, run=run, **self.roles, **keywords)

    @takes_keywords(api.match, PlotChoices)
    def plot(self, pattern: Pattern, *, match: int = 0, margin: float = 0.25, **keywords: Unpack[PlotChoices]) -> Timeline:
        """Draw a match of `pattern`, as :func:`gpu_cep.plot`."""
        from gpu_cep.display.plotting import plot

        return plot(self.data, pattern, match=match, margin=margin, **self.roles, **keywords)

    @takes_keywords(api.match, ReportChoices)
    def report(
        self, pattern: Pattern, *, rows: int = 1_000, timelines: int = 20, margin: float = 0.25, **keywords: Unpack[ReportChoices]
    ) -> Report:
        """Run `pattern` and report it on one page, as :func:`gpu_cep.report`."""
        from gpu_cep.display.reporting import report

        return report(self.data, pattern, rows=rows, timelines=timelines, margin=margin, **self.roles, **keywords)


def roles_of(data: Any, roles: RoleOptions) -> str:
    """Return what events are and what was said of their columns, which is how they are shown: a path, or a type of table."""
    shown = str(data) if isinstance(data, str | PathLike) else type(data).__name__
    return ", ".join([shown, *(f"{name}={value!r}" for name, value in roles.items() if value is not None)])


# mypy takes the first one for a value of type Any, as of an untyped package, since the arguments are type variables.
@overload
def events(
    data: _Path, *, timestamp: str = ..., partition_by: Names = ..., order_by: Names = ..., type_column: str = ...,
    time_unit: TimeUnit | None = ..., nulls: Nulls = ...,
) -> Events: ...  # fmt: skip
@overload
def events(
    data: _Frame, *, timestamp: str = ..., partition_by: Names = ..., order_by: Names = ..., type_column: str = ...,
    time_unit: TimeUnit | None = ..., nulls: Nulls = ...,
) -> SparkEvents: ...  # fmt: skip
@overload
def events(
    data: Any, *, timestamp: str = ..., partition_by: Names = ..., order_by: Names = ..., type_column: str = ...,
    time_unit: TimeUnit | None = ..., nulls: Nulls = ...,
) -> Events: ...  # fmt: skip


@checks_keywords
def events(
    data: Any,
    *,
    timestamp: str = "ts",
    partition_by: Names = None,
    order_by: Names = None,
    type_column: str = "type",
    time_unit: TimeUnit | None = None,
    nulls: Nulls = "error",
) -> Events | SparkEvents:
    """Say once what the columns of events are, for all queries over them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import gpu_cep as cep
    >>> steps = pa.table({"at": [1, 2, 3], "user": ["ann", "bob", "ann"], "step": ["View", "View", "Buy"]})
    >>> funnel = cep.events(steps, timestamp="at", partition_by="user", type_column="step")
    >>> funnel.count("PATTERN SEQ(View v, Buy b)")
    1
    >>> funnel.match("PATTERN SEQ(View v, Buy b) RETURN b.at - v.at AS wait").to_pylist()
    [{'user': 'ann', 'match_start': 1, 'match_end': 3, 'wait': 2}]

    Parameters
    ----------
    data
        The events, as in :func:`gpu_cep.match`, or a Spark DataFrame.
    timestamp, partition_by, order_by, type_column, time_unit, nulls
        As in :func:`gpu_cep.match`.

    Returns
    -------
    Events or SparkEvents
        Has the methods ``match``, ``count``, ``explain``, ``plot`` and ``report``, which take
        the other keywords of the functions of these names. Over a DataFrame ``match`` is
        :func:`gpu_cep.gpu_match`.

    Raises
    ------
    PatternError
        A keyword has a value of the wrong kind. A column that is not there is reported with
        the first query.
    """
    roles = RoleOptions(
        timestamp=timestamp, partition_by=partition_by, order_by=order_by, type_column=type_column, time_unit=time_unit,
        nulls=nulls,
    )  # fmt: skip
    make_options(**roles)
    # a package that has not been imported made no DataFrame
    spark = sys.modules.get("pyspark.sql")
    if spark is None or not isinstance(data, spark.DataFrame):
        return Events(data, roles)
    from gpu_cep_spark.bound_events import SparkEvents

    return SparkEvents(data, roles)
