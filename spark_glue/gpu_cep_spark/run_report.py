"""What a job did: workers add a row of figures to their matches, which Spark adds up on the way and nobody gets to see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from gpu_cep.engine.profile import Profile
from gpu_cep.errors import PatternError

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


@dataclass
class RunReport:
    """What the workers of one :func:`gpu_cep.gpu_match` did, known once an action on its result has finished.

    Given as ``report=`` to one call. The figures are those of the first action
    on the result; asking for them before it has finished waits for it. They
    are summed over tasks. A task that Spark tried again, or in two places at a time, counts
    once; a stage that ran again because its shuffle files were lost counts as
    often as it ran: so Spark treats what it observes (it is not tested here).

    Where Spark reads a file it applies the query's filters itself: how many
    rows it read, and passed over, is in its own metrics of the scan.
    """

    _observation: Any = field(default=None, repr=False)

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
    def engines(self) -> dict[str, int]:
        """How many parts each engine worked on: ``cpu``, ``gpu``."""
        figures = self._figures()
        return {engine: figures[f"on {engine}"] for engine in ENGINES if figures[f"on {engine}"]}

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each stage, summed over tasks and threads; ``reading`` is the time in which workers waited for rows from Spark."""
        figures = self._figures()
        return {stage: figures[f"{stage} seconds"] for stage in STAGES if figures[f"{stage} seconds"]}

    def _figures(self) -> Mapping[str, Any]:
        if self._observation is None:
            raise PatternError("this report was given to no gpu_match()")
        found = self._observation.get
        return {name: found.get(name) or 0 for name in (*_WHOLE, *_SECONDS)}

    def __str__(self) -> str:
        counts = " → ".join(f"{name} {count:,}" for name, count in self.counts.items())
        engines = ", ".join(f"{parts:,} of {sum(self.engines.values()):,} parts on {engine}" for engine, parts in self.engines.items())
        seconds = ", ".join(f"{stage} {spent:.3f} s" for stage, spent in self.seconds.items())
        return "\n".join(filter(None, (counts, engines, seconds)))

    def observed(self, found: DataFrame, figures: str) -> DataFrame:
        """`found` without the rows and the column called `figures`, which are added up.

        Raises
        ------
        PatternError
            Another call has this report already.
        """
        if self._observation is not None:
            raise PatternError("this report was given to another gpu_match() already; make a new one")
        self._observation = Observation()
        given = F.col(figures)
        sums: list[Column] = [F.sum(given.getField(name)).alias(name) for name in (*_WHOLE, *_SECONDS)]
        return found.observe(self._observation, *sums).filter(given.isNull()).drop(figures)


def with_figures(schema: StructType) -> tuple[StructType, str]:
    """A schema whose rows may hold figures instead of a match, in a column of the name that is given, too."""
    name = "figures"
    while name in {known.lower() for known in schema.names}:
        name += "_"
    return StructType([*(StructField(f.name, f.dataType, True, f.metadata) for f in schema.fields), StructField(name, _SPARK)]), name


def figures_added(matches: Iterator[pa.RecordBatch], profile: Profile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of `matches` with a column without figures, then one row with those of `profile`; all of `schema`."""
    for batch in matches:
        yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, _ARROW)], schema=schema)
    row = {name: profile.counts.get(name, 0) for name in COUNTS}
    row |= {f"on {engine}": profile.engines.get(engine, 0) for engine in ENGINES}
    seconds = {f"{stage} seconds": profile.seconds.get(stage, 0.0) for stage in STAGES}
    nothing = [pa.nulls(1, promised) for promised in schema.types[:-1]]
    yield pa.RecordBatch.from_arrays([*nothing, pa.array([row | seconds], _ARROW)], schema=schema)
