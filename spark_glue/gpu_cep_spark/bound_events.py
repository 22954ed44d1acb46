"""Bind a Spark DataFrame to the roles of its columns, for queries that are asked of it one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep import api
from gpu_cep.bound_events import Events, roles_of
from gpu_cep.choices import Scan
from gpu_cep.engine.input.device.flat_columns import BY_CUDF
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.errors import UnsupportedError
from gpu_cep.explanations import explain_on_cards
from gpu_cep.keywords import PlotChoices, ReportChoices, RoleOptions, SparkChoices
from gpu_cep.signatures import takes_keywords
from gpu_cep_spark.matching import gpu_match
from gpu_cep_spark.reports.run_report import RunReport
from gpu_cep_spark.scan_choice import BY_SPARK, batch_advice
from gpu_cep_spark.schemas import arrow_schema
from gpu_cep_spark.slices.choice import AUTO
from gpu_cep_spark.tasks.failures import workers_errors

if TYPE_CHECKING:
    from gpu_cep.display.plotting import Timeline
    from gpu_cep.display.reporting import Report
    from gpu_cep.plan.explain import Explanation
    from gpu_cep.plan.interval_explain import IntervalExplanation
    from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
    from gpu_cep.queries.plans import Pattern

# The most events that are brought to this process to be drawn.
MOST_DRAWN = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class SparkEvents:
    """Events of a Spark DataFrame, and what their columns are; :func:`gpu_cep.events` makes them."""

    data: DataFrame
    roles: RoleOptions

    def __repr__(self) -> str:
        return f"SparkEvents({roles_of(self.data, self.roles)})"

    @takes_keywords(api.match, SparkChoices)
    def match(
        self,
        pattern: Pattern,
        *,
        worker_memory: int | str | None = None,
        slices: float | str | None = AUTO,
        scan: Scan = "auto",
        rare: str | Sequence[str] | None = AUTO,
        report: RunReport | None = None,
        emit: str = "certain",
        every: float | str | None = None,
        late: str = "drop",
        time_to_live: float | str | None = None,
        **keywords: Unpack[SparkChoices],
    ) -> DataFrame:
        """Find the matches of `pattern`, as :func:`gpu_cep.gpu_match`."""
        own: dict[str, Any] = {"worker_memory": worker_memory, "slices": slices, "scan": scan, "rare": rare, "report": report}
        own |= {"emit": emit, "every": every, "late": late, "time_to_live": time_to_live}
        return gpu_match(self.data, pattern, **own, **self.roles, **keywords)

    @takes_keywords(api.match, SparkChoices)
    def count(self, pattern: Pattern, **keywords: Unpack[SparkChoices]) -> int:
        """Return the number of matches of `pattern` in all streams; this runs a Spark job.

        Raises
        ------
        CepError
            Any error that :func:`gpu_cep.match` raises; of one that only workers see, the text
            names the pattern.
        """
        found = gpu_match(self.data, pattern, **self.roles, **(keywords | {"output": "count"}))
        # streams whose counts fit 64 bits may have a sum that does not
        with workers_errors():
            total = found.agg(F.sum(F.col("count").cast("decimal(38, 0)"))).first()
        return int(total[0] or 0) if total is not None else 0

    @takes_keywords(api.match, SparkChoices)
    def explain(
        self, pattern: Pattern, *, scan: Scan = "auto", rare: str | Sequence[str] | None = AUTO, **keywords: Unpack[SparkChoices]
    ) -> Explanation | IntervalExplanation | RowPatternExplanation:
        """Explain how `pattern` will be answered, as :func:`gpu_cep.explain` over no rows.

        Its line `source` says who will read the events, and whether Spark shuffles only those
        near rare ones, and why. If Spark reads them, it names a setting of the session that spares
        time. Its line `engine` is about this process, or about tasks that read to their cards
        (``scan="gpu_files"``). This runs no job, except where many files are read, whose footers
        tell who reads them.

        Parameters
        ----------
        pattern, scan, rare, **keywords
            As in :func:`gpu_cep.gpu_match`.

        Raises
        ------
        PatternError
            The query has an error, or a match may bind none of the variables that `rare` names.
        UnsupportedError
            `scan` or `rare` ask for what :func:`gpu_cep.gpu_match` cannot do, or it cannot
            answer the query.
        """
        zone = str(self.data.sparkSession.conf.get("spark.sql.session.timeZone"))
        # timeouts are found by the same plan as matches
        explaining: Any = {name: value for name, value in keywords.items() if name != "timeouts"}
        explained = api.explain(no_rows(arrow_schema(self.data.schema, zone)), pattern, **self.roles, **explaining)
        report = RunReport()
        try:
            self.match(pattern, report=report, scan=scan, rare=rare, **keywords)
        except UnsupportedError:
            # what cannot run under Spark can be explained, but not what scan= or rare= would do to it
            if scan != "auto" or (rare is not None and rare != AUTO):
                raise
        if BY_CUDF in report.scan:
            explained = explain_on_cards(explained)
        advice = batch_advice(self.data.sparkSession) if report.scan.startswith(BY_SPARK) else ""
        return replace(explained, source="; ".join(filter(None, (report.scan, report.rare, advice))))

    @takes_keywords(api.match, PlotChoices)
    def plot(self, pattern: Pattern, *, match: int = 0, margin: float = 0.25, **keywords: Unpack[PlotChoices]) -> Timeline:
        """Draw a match of `pattern`, as :func:`gpu_cep.plot` over the collected events.

        Raises
        ------
        UnsupportedError
            There are more than :data:`MOST_DRAWN` events.
        """
        return self._collect("plot").plot(pattern, match=match, margin=margin, **keywords)

    @takes_keywords(api.match, ReportChoices)
    def report(
        self, pattern: Pattern, *, rows: int = 1_000, timelines: int = 20, margin: float = 0.25, **keywords: Unpack[ReportChoices]
    ) -> Report:
        """Run `pattern` and report it on one page, as :func:`gpu_cep.report` over the collected events.

        Raises
        ------
        UnsupportedError
            There are more than :data:`MOST_DRAWN` events.
        """
        return self._collect("report").report(pattern, rows=rows, timelines=timelines, margin=margin, **keywords)

    def _collect(self, method: str) -> Events:
        """Return the events in this process, or raise UnsupportedError if there are too many for `method`."""
        table: Any = self.data.limit(MOST_DRAWN + 1).toArrow()
        if table.num_rows > MOST_DRAWN:
            raise UnsupportedError(
                f"{method}() brings the events to this process, and there are more than {MOST_DRAWN:,}; "
                f"take some first, such as those of one stream: events(df.where(…), …).{method}(…)"
            )
        return Events(table, self.roles)
