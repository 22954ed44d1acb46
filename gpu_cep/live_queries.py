"""Hold what does not change while a stream runs: the query's plan, and how long events may be late."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from gpu_cep.engine.answers import answer_schema
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.slices.sliced_plan import SlicedPlan
from gpu_cep.engine.streaming.certainty import Certain, certainty_of, window_of
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.settings import Settings

# What `late=` may be.
LATE = ("drop", "error")
_OUTPUTS = ("matches", "indices")


@dataclass(frozen=True)
class LiveQuery:
    """A query that is asked of a stream.

    `plan`: made for the columns of `schema`, which are those that the query reads.
    `sliced`: the plan of the engine's runs if a match is kept or dropped by those of other runs; else None.
    `lateness`: how far, in ticks, the watermark lies behind the latest event.
    `every`: how far it must have moved before the engine runs again (None: it runs whenever it has moved).
    `refuses_late`: whether a late event is an error; else it is dropped and counted.
    """

    plan: EventPlan
    schema: pa.Schema
    sliced: SlicedPlan | None = None
    lateness: Tick = 0
    every: Tick | None = None
    refuses_late: bool = False

    @cached_property
    def window(self) -> Tick:
        """The length of the window."""
        return window_of(self.plan)

    @cached_property
    def certain(self) -> Certain:
        """When a match is certain."""
        return certainty_of(self.plan)

    @cached_property
    def result(self) -> pa.Schema:
        """The schema of the matches."""
        return answer_schema(self.plan, self.schema)


def check_live(plan: Plan, settings: Settings) -> EventPlan:
    """Return the plan if a stream can answer it.

    Raises
    ------
    UnsupportedError
        The query, or a choice of the settings, is not one that streams can answer. One error names all reasons.
    """
    faults = []
    if settings.output not in _OUTPUTS:
        faults.append(Diagnostic(f"output={settings.output!r} is not supported for streams yet; supported: {', '.join(_OUTPUTS)}"))
    if settings.algorithm == "brute_force":
        faults.append(Diagnostic("algorithm='brute_force' is not supported for streams", hint="leave algorithm= out"))
    try:
        window_of(plan)
    except UnsupportedError as refused:
        faults.extend(refused.diagnostics)
    if faults:
        raise UnsupportedError(faults)
    assert isinstance(plan, EventPlan), "others are refused"
    return plan
