"""Hold what does not change while a stream runs: the query's plan, and how long events may be late."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.engine.adaptive.choice import AlgorithmChooser
from gpu_cep.engine.answers import answer_schema
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.intervals.statistics import OrderMemory
from gpu_cep.engine.output.row_patterns import row_pattern_schema
from gpu_cep.engine.slices.sliced_plan import SlicedPlan, numbers_ties
from gpu_cep.engine.streaming.certainty import refuse_unbounded
from gpu_cep.engine.streaming.decisive import Decisive
from gpu_cep.engine.streaming.event_tags import Tagging, tagging_of
from gpu_cep.engine.streaming.row_patterns import marked_schema
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.certainty import Certain, certainty_of
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep.plan.row_patterns.certainty import refuse_uncertain
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep.plan.settings import Settings

# What `late=` may be.
LATE = ("drop", "error", "rows")
# What `emit=` may be.
EMIT = ("certain", "window")
# Where it is known which events make a match certain.
_OF_FEW_KEYS = (Certain.WITH_LAST_EVENT, Certain.WITH_WINDOW, Certain.AT_DETECTION)


class Idle(NamedTuple):
    """After how many seconds without an event the watermark moves with the clock, and how many ticks of the timestamps a second has."""

    seconds: float
    ticks_per_second: float


class InSessions(NamedTuple):
    """How many ticks a key may be silent before it begins anew, and the name of the column that numbers its sessions."""

    time_to_live: Tick
    column: str


@dataclass(frozen=True)
class LiveQuery:
    """A query that is asked of a stream.

    `plan`: made for the columns of `schema`, which are those that the query reads.
    `timeouts`: the plan of the starts without a match, if these come out, too.
    `sliced`: the plan of the engine's runs if a match is kept or dropped by those of other runs; else None.
    `lateness`: how far, in ticks, the watermark lies behind the latest event.
    `every`: how far it must have moved before the engine runs again (None: it runs whenever it has moved).
    `refuses_late`, `returns_late`: whether a late event is an error, or comes out as a row; else it is dropped and counted.
    `by_window`: whether matches come out when their windows are over, in the order of first events.
    `in_order`: whether events come in order of time; then the watermark is right before the latest one.
    `idle`: when the watermark moves with the clock (None: never).
    `decisive`: on which of the known events later matches depend (None: on all of the window).
    `rows`: the plan of a row pattern; then `plan` is that of its conditions on one row (None: the query is no row pattern).
    `sessions`: how long a key may be silent before it begins anew (None: for ever); then `sliced` has a plan of these sessions.
    """

    plan: AnyPlan
    schema: pa.Schema
    sliced: SlicedPlan | None = None
    timeouts: EventPlan | None = None
    lateness: Tick = 0
    every: Tick | None = None
    refuses_late: bool = False
    returns_late: bool = False
    by_window: bool = False
    in_order: bool = False
    idle: Idle | None = None
    decisive: Decisive | None = None
    rows: RowPlan | None = None
    sessions: InSessions | None = None

    @property
    def kept(self) -> pa.Schema:
        """Return the schema of the events that are kept."""
        return self.schema if self.rows is None else marked_schema(self.schema)

    @property
    def window(self) -> TimeWindow | CountWindow | None:
        """Return the window of the query."""
        return self.plan.query.window if self.rows is None else self.rows.bound.window

    def fingerprint(self) -> str:
        """Return a stable digest of how the query is answered, the same in every process."""
        return self.plan.fingerprint() if self.rows is None else self.rows.fingerprint()

    @property
    def running(self) -> AnyPlan:
        """Return the plan of the engine's runs."""
        return self.plan if self.sliced is None else self.sliced.plan

    @property
    def labelling(self) -> AnyPlan:
        """Return the plan by which events are labelled when they come."""
        # a start whose key is NULL has no match, but a timeout
        return self.plan if self.timeouts is None else self.timeouts

    @cached_property
    def tagging(self) -> Tagging | None:
        """Return how events are tagged when they come; None if runs read all that are kept."""
        reads_few = self.timeouts is not None or self.certain in _OF_FEW_KEYS
        one = self.labelling.stream_keys == self.plan.stream_keys
        # a place among events of one time is one in a stream of `partition_by`
        keys = self.plan.query.partition_by if numbers_ties(self.plan) else self.plan.stream_keys
        return tagging_of(self.labelling, keys) if reads_few and one and self.rows is None else None

    @cached_property
    def algorithms(self) -> AlgorithmChooser | None:
        """Return what the engine's runs have learnt about their algorithms."""
        return AlgorithmChooser(self.running.contenders) if isinstance(self.running, EventPlan) else None

    @cached_property
    def orders(self) -> OrderMemory:
        """Return the order in which the engine's runs join situations."""
        return OrderMemory()

    @cached_property
    def certain(self) -> Certain:
        """Return when a match is reported: as soon as it is certain, or in the order of first events.

        Where events come in order, it is the latter.
        """
        return Certain.WITH_WINDOW if self.in_order or self.by_window else certainty_of(self.plan)

    @cached_property
    def result(self) -> pa.Schema:
        """Return the schema of the matches."""
        return answer_schema(self.plan, self.schema) if self.rows is None else row_pattern_schema(self.rows.bound, self.schema)


def row_query(plan: RowPlan, rows: pa.Schema, settings: Settings, asked: str, text: str | None) -> LiveQuery:
    """Return the query of a row pattern over `rows`, if a stream, or what else is `asked` for, can answer it.

    Raises
    ------
    UnsupportedError
        It cannot, or a choice of the settings is not one for row patterns. `text` is what errors quote.
    """
    if settings.algorithm != "auto":
        raise UnsupportedError([Diagnostic(f"{asked} with algorithm={settings.algorithm!r} is not supported", hint="leave it out")])
    refuse_uncertain(plan, asked, text)
    return LiveQuery(replace(plan.labels, settings=settings, stream_keys=plan.bound.partition_by), rows, rows=plan)


def check_live(plan: AnyPlan, settings: Settings, asked: str = "a stream", *, expires: bool = False) -> AnyPlan:
    """Return the plan if a stream, or what else is `asked` for, can answer it; `expires` if keys have a time to live.

    Raises
    ------
    UnsupportedError
        The query, or a choice of the settings, is not one that streams can answer. One error names all reasons.
    """
    known = ("matches", "events", "indices", "count") if isinstance(plan, EventPlan) else ("matches", "indices", "count")
    faults = []
    if settings.output not in known:
        of = "" if isinstance(plan, EventPlan) else " over situations"
        faults.append(Diagnostic(f"{asked} with output={settings.output!r}{of} is not supported; supported: {', '.join(known)}"))
    if settings.limit_per_start is not None:
        message = f"{asked} with limit_per_start= is not supported: matches come out before all of their first event are known"
        faults.append(Diagnostic(message, hint="after_match='skip_to_next' keeps one match of each first event"))
    if settings.algorithm == "brute_force":
        faults.append(Diagnostic(f"{asked} with algorithm='brute_force' is not supported", hint="leave algorithm= out"))
    if isinstance(plan, IntervalPlan) and plan.query.gap is not None and not plan.query.early:
        message = f"{asked} with gap= and detect='final' is not supported: a situation ends in its gap, but is seen to do so later"
        faults.append(Diagnostic(message, hint="give detect='early'"))
    try:
        refuse_unbounded(plan, asked, expires=expires)
    except UnsupportedError as refused:
        faults.extend(refused.diagnostics)
    if faults:
        raise UnsupportedError(faults)
    return plan


def needs_slices(settings: Settings) -> bool:
    """Return whether the results of runs must be put together: matches are taken, numbered or counted over all of them."""
    return settings.after_match == "skip_past_last" or settings.output in ("events", "count")
