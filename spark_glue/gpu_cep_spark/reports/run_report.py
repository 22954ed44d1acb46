"""Report what the workers of a job did.

Each worker adds a row to its matches, with its figures as one text. Spark gathers these texts by an observation, and a filter
then removes their rows. A column for each figure would be dear: Spark plans a sum for each, and each row of matches carries all.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.errors import PatternError
from gpu_cep_spark.reports.row_metrics import rows_read_and_shuffled

# In the order in which a run counts them; what a query does not count is 0, and not shown.
COUNTS = (
    "tasks", "rows read", "row groups read", "bytes read", "bytes read to cards",
    "parts", "events", "copies", "rows", "partitions", "filtered", "windows", "summarised", "candidates", "left", "situations", "pivots",
    "pairs", "nodes", "matches", "kept", "timeouts", "steps",
)  # fmt: skip
ENGINES = ("cpu", "gpu")
STAGES = (
    "reading", "trial", "columns", "timestamps", "labels", "keys", "order", "windows", "occurrences", "starts", "summary", "chain",
    "candidates", "candidates back", "lift", "situations", "graph", "buffers", "planning", "reach", "matching", "results",
)  # fmt: skip

# Under this name an observation has the texts of all workers, a line each.
_TOLD = "figures"

# The most seconds to wait, after the end of an action, until its observation reaches the driver, and the seconds between two looks.
_PATIENCE, _GLANCE = 10.0, 0.05
# A task tells its figures at its end. Adaptive execution drops a stage of which no row comes
# if what follows groups, sorts or joins rows.
_NO_FIGURES = "no figures: no action on the result has come to the end of its tasks, or no row came of them and Spark dropped their stage"


@dataclass
class RunReport:
    """The counts and times of the workers of one :func:`gpu_cep.gpu_match`, which takes it as ``report=``.

    The figures are those of the first action on the result, summed over
    tasks. Reading them before that action has finished waits for it. A task
    that Spark retried or ran speculatively counts once. A stage that ran
    again because its shuffle files were lost counts as often as it ran. So
    Spark treats observations; it is not tested here. A task that an action
    leaves before its end, as ``take()`` and ``show()`` do, has no figures. Nor
    are there any if no row comes of the tasks and the action groups, sorts or
    joins rows: adaptive execution then drops their stage from its plan.
    """

    _name: str = field(default_factory=lambda: f"gpu_cep {uuid4()}", repr=False)
    _made: float = field(default_factory=time.time, repr=False)
    _observation: Any = field(default=None, repr=False)
    _session: Any = field(default=None, repr=False)
    _streams: str = field(default="", repr=False)
    _scan: str = field(default="", repr=False)
    _rare: str = field(default="", repr=False)
    _leaves_out: bool = field(default=False, repr=False)

    @property
    def scan(self) -> str:
        """Return who reads the events, from what, and why: known once :func:`gpu_cep.gpu_match` has been called."""
        return self._scan

    def tell_scan(self, what: str) -> None:
        """Set what :attr:`scan` returns."""
        self._scan = what

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts of the run.

        ``tasks`` are the tasks of the job, and ``parts`` the tables of events
        that they matched in turn. ``events`` are those that reached the
        workers, after filters and shuffle. ``copies`` are those among them
        that a slice of time has of its neighbours' events. The others, such
        as ``filtered``, ``windows`` and ``matches``, are as in
        :class:`gpu_cep.Profile`, as far as the query has them.
        """
        figures = self._figures()
        return {name: figures[name] for name in COUNTS if figures[name]}

    @property
    def rows(self) -> dict[str, int]:
        """Return how many rows were read and shuffled for the workers in the first action on the result.

        ``read`` are the rows that Spark's scans returned, without the parts of
        files that the query's filters rule out. ``shuffled`` are the rows that
        all filters leave, once for each slice of time that has a copy. Neither
        has those of the pass that looks for rare events. Both are Spark's own
        metrics. Where tasks read files themselves, ``read`` are the rows that
        they read, and none is shuffled. Else it is empty on Spark Connect, whose
        clients get no metrics of other actions.
        """
        figures = self._figures()
        if figures["row groups read"]:
            return {"read": figures["rows read"], "shuffled": 0}
        return rows_read_and_shuffled(self._session, self._name, self._made) if isinstance(self._session, SparkSession) else {}

    @property
    def engines(self) -> dict[str, int]:
        """Return the number of parts that each engine, ``cpu`` or ``gpu``, worked on."""
        figures = self._figures()
        return {engine: figures[f"on {engine}"] for engine in ENGINES if figures[f"on {engine}"]}

    @property
    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage, summed over tasks and threads.

        ``reading`` is the time in which workers waited for rows from Spark.
        """
        figures = self._figures()
        return {stage: figures[f"{stage} seconds"] for stage in STAGES if figures[f"{stage} seconds"]}

    @property
    def streams(self) -> str:
        """Return whether streams are whole or cut into slices of time, and why; known before any action."""
        self._require_call()
        return self._streams

    def tell_streams(self, why: str) -> None:
        """Keep why streams are whole or cut."""
        self._streams = why

    @property
    def rare(self) -> str:
        """Return whether only events near rare ones are shuffled, and why; known before any action. Empty where tasks read files."""
        return self._rare

    def tell_rare(self, why: str, *, leaves_out: bool) -> None:
        """Set what :attr:`rare` returns; the text of a report has it if the events far from rare ones are left out."""
        self._rare, self._leaves_out = why, leaves_out

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Show on stderr the progress of an action on the result, and print the report at its end.

        The action is taken inside. Progress is the number of tasks done: a bar
        on a terminal or in a notebook, elsewhere a line every ten seconds.
        Only tasks of stages that have begun are counted, since Spark does not
        know those of later stages. The figures of the report come at the end,
        since Spark does not say how far a running task is. Actions of other
        threads are shown on Spark Connect only.

        Raises
        ------
        PatternError
            No call of :func:`gpu_cep.gpu_match` has taken this report.
        """
        from gpu_cep_spark.reports.progress import show_progress

        self._require_call()
        with show_progress(self._session) as console:
            yield
        known = str(self) if self._is_known() else _NO_FIGURES
        console.print(known, soft_wrap=True, markup=False, highlight=False)

    def _is_known(self) -> bool:
        """Return whether the figures have come, after some waiting.

        Reading them would wait for ever if there was no action.
        """
        if not isinstance(self._session, SparkSession):
            return bool(self._observation.get)
        future = self._observation._jo.future()
        end = time.monotonic() + _PATIENCE
        while not future.isCompleted() and time.monotonic() < end:
            time.sleep(_GLANCE)
        return bool(future.isCompleted())

    def _require_call(self) -> None:
        if self._observation is None:
            raise PatternError("this report was given to no gpu_match()")

    def _figures(self) -> Counter[str]:
        """Return the figures of all workers, summed; none if no row came of the tasks and Spark has dropped their stage."""
        self._require_call()
        totals: Counter[str] = Counter()
        # PySpark fails on the empty row that stands for that
        if isinstance(self._session, SparkSession) and not self._observation._jo.getRow().size():
            return totals
        observed: Mapping[str, Any] = self._observation.get
        for told in (observed.get(_TOLD) or "").splitlines():
            totals.update(json.loads(told))
        return totals

    def __str__(self) -> str:
        counts = " → ".join(f"{name} {count:,}" for name, count in (*self.rows.items(), *self.counts.items()))
        engines = ", ".join(f"{parts:,} of {sum(self.engines.values()):,} parts on {engine}" for engine, parts in self.engines.items())
        seconds = ", ".join(f"{stage} {spent:.3f} s" for stage, spent in self.seconds.items())
        figures = (counts, engines, seconds) if self.counts else (counts, _NO_FIGURES)
        return "\n".join(filter(None, (*figures, self._streams, self._rare if self._leaves_out else "", self.scan)))

    def observe(self, found: DataFrame, figures: str) -> DataFrame:
        """Return `found` without the column `figures` and its rows, which Spark gathers for this report.

        Raises
        ------
        PatternError
            Another call has taken this report already.
        """
        if self._observation is not None:
            raise PatternError("this report was given to another gpu_match() already; make a new one")
        self._observation, self._session = Observation(self._name), found.sparkSession
        given = F.col(figures)
        return found.observe(self._observation, F.listagg(given, F.lit("\n")).alias(_TOLD)).filter(given.isNull()).drop(figures)


def add_figures_column(schema: StructType) -> tuple[StructType, str]:
    """Return `schema` with a column of figures, and the name of that; all columns may be NULL."""
    name = "figures"
    while name in {known.lower() for known in schema.names}:
        name += "_"
    return StructType([*(StructField(f.name, f.dataType, True, f.metadata) for f in schema.fields), StructField(name, StringType())]), name


def add_figures(matches: Iterator[pa.RecordBatch], profile: Profile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `matches` with figures that are NULL, then a row with those of `profile`.

    All batches have `schema`.
    """
    for batch in matches:
        yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, schema.types[-1])], schema=schema)
    told: dict[str, float] = {name: int(profile.counts[name]) for name in COUNTS if name in profile.counts}
    told |= {f"on {engine}": parts for engine, parts in profile.engines.items() if engine in ENGINES}
    told |= {f"{stage} seconds": profile.seconds[stage] for stage in STAGES if stage in profile.seconds}
    nothing = [pa.nulls(1, promised) for promised in schema.types[:-1]]
    yield pa.RecordBatch.from_arrays([*nothing, pa.array([json.dumps(told)], schema.types[-1])], schema=schema)
