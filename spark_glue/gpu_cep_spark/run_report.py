"""What a job did: workers add a row of figures to their matches, which Spark adds up on the way and nobody gets to see."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.errors import PatternError
from gpu_cep_spark.road_metrics import rows_on_the_road

# In the order of the road; what a query's road does not have is 0, and not shown.
COUNTS = (
    "tasks", "parts", "events", "copies", "filtered", "windows", "summarised", "candidates", "situations", "pivots", "pairs", "matches",
    "steps",
)  # fmt: skip
ENGINES = ("cpu", "gpu")
STAGES = (
    "reading", "timestamps", "labels", "keys", "order", "windows", "occurrences", "starts", "summary", "chain", "candidates back",
    "situations", "graph", "buffers", "planning", "matching", "results",
)  # fmt: skip

_WHOLE = (*COUNTS, *(f"on {engine}" for engine in ENGINES))
_SECONDS = tuple(f"{stage} seconds" for stage in STAGES)
_ARROW = pa.struct([*((name, pa.int64()) for name in _WHOLE), *((name, pa.float64()) for name in _SECONDS)])
_SPARK = StructType([*(StructField(name, LongType()) for name in _WHOLE), *(StructField(name, DoubleType()) for name in _SECONDS)])


# Seconds in which what was observed reaches the driver behind the end of the action, at most and at a time.
_PATIENCE, _GLANCE = 10.0, 0.05


@dataclass
class RunReport:
    """What the workers of one :func:`gpu_cep.gpu_match` did, known once an action on its result has finished.

    Given as ``report=`` to one call. The figures are those of the first action
    on the result; asking for them before it has finished waits for it. They
    are summed over tasks. A task that Spark tried again, or in two places at a time, counts
    once; a stage that ran again because its shuffle files were lost counts as
    often as it ran: so Spark treats what it observes (it is not tested here).

    """

    _name: str = field(default_factory=lambda: f"gpu_cep {uuid4()}", repr=False)
    _made: float = field(default_factory=time.time, repr=False)
    _observation: Any = field(default=None, repr=False)
    _session: Any = field(default=None, repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """How much was met on the road, as in :class:`gpu_cep.Profile`.

        ``tasks``; ``parts``, in which they took their events; ``events``, that
        reached workers, behind filters and shuffle, and ``copies``, those among
        them that slices of time have of their neighbours' events;
        ``filtered``, ``windows``, ``candidates``, ``situations``, ``matches``,
        ``steps`` and so on, as far as the query's road has them.
        """
        figures = self._figures()
        return {name: figures[name] for name in COUNTS if figures[name]}

    @property
    def road(self) -> dict[str, int]:
        """The rows on Spark's road to the workers in the first action on the result, as Spark's own metrics count them.

        ``read``, that scans gave: parts of files that the query's filters rule
        out are not among them; ``shuffled``, that are left behind all filters,
        a row for each slice of time that has a copy of it. Empty on Spark
        Connect, whose clients are told no metrics of other actions.
        """
        self._figures()
        return rows_on_the_road(self._session, self._name, self._made) if isinstance(self._session, SparkSession) else {}

    @property
    def engines(self) -> dict[str, int]:
        """How many parts each engine worked on: ``cpu``, ``gpu``."""
        figures = self._figures()
        return {engine: figures[f"on {engine}"] for engine in ENGINES if figures[f"on {engine}"]}

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each stage, summed over tasks and threads; ``reading`` is the time in which workers waited for rows from Spark."""
        figures = self._figures()
        return {stage: figures[f"{stage} seconds"] for stage in STAGES if figures[f"{stage} seconds"]}

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Show how many tasks are done of an action on the result that is taken inside, and print the report when it has finished.

        On a terminal or in a notebook that is a bar, elsewhere a line every ten
        seconds; all of it goes to stderr. The tasks are those of the stages that
        have begun: Spark says of no stage to come how many it will have, and
        of no task that runs how far it is, so the figures of the report
        come at the end. Actions of other threads are not seen, except on
        Spark Connect, whose server tells of all of the session's.

        Raises
        ------
        PatternError
            This report was given to no :func:`gpu_cep.gpu_match`.
        """
        from gpu_cep_spark.progress import show_progress

        self._require_call()
        with show_progress(self._session) as console:
            yield
        known = str(self) if self._is_known() else "no action on the result has finished"
        console.print(known, soft_wrap=True, markup=False, highlight=False)

    def _is_known(self) -> bool:
        """Whether the figures are there, or come soon: asking for them would wait for ever where no action was taken."""
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

    def _figures(self) -> Mapping[str, Any]:
        self._require_call()
        found = self._observation.get
        return {name: found.get(name) or 0 for name in (*_WHOLE, *_SECONDS)}

    def __str__(self) -> str:
        counts = " → ".join(f"{name} {count:,}" for name, count in (*self.road.items(), *self.counts.items()))
        engines = ", ".join(f"{parts:,} of {sum(self.engines.values()):,} parts on {engine}" for engine, parts in self.engines.items())
        seconds = ", ".join(f"{stage} {spent:.3f} s" for stage, spent in self.seconds.items())
        return "\n".join(filter(None, (counts, engines, seconds)))

    def observe(self, found: DataFrame, figures: str) -> DataFrame:
        """`found` without the rows and the column called `figures`, which are added up.

        Raises
        ------
        PatternError
            Another call has this report already.
        """
        if self._observation is not None:
            raise PatternError("this report was given to another gpu_match() already; make a new one")
        self._observation, self._session = Observation(self._name), found.sparkSession
        given = F.col(figures)
        sums: list[Column] = [F.sum(given.getField(name)).alias(name) for name in (*_WHOLE, *_SECONDS)]
        return found.observe(self._observation, *sums).filter(given.isNull()).drop(figures)


def add_figures_column(schema: StructType) -> tuple[StructType, str]:
    """A schema whose rows may hold figures instead of a match, in a column of the name that is given, too."""
    name = "figures"
    while name in {known.lower() for known in schema.names}:
        name += "_"
    return StructType([*(StructField(f.name, f.dataType, True, f.metadata) for f in schema.fields), StructField(name, _SPARK)]), name


def add_figures(matches: Iterator[pa.RecordBatch], profile: Profile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of `matches` with a column without figures, then one row with those of `profile`; all of `schema`."""
    for batch in matches:
        yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, _ARROW)], schema=schema)
    row = {name: profile.counts.get(name, 0) for name in COUNTS}
    row |= {f"on {engine}": profile.engines.get(engine, 0) for engine in ENGINES}
    seconds = {f"{stage} seconds": profile.seconds.get(stage, 0.0) for stage in STAGES}
    nothing = [pa.nulls(1, promised) for promised in schema.types[:-1]]
    yield pa.RecordBatch.from_arrays([*nothing, pa.array([row | seconds], _ARROW)], schema=schema)
