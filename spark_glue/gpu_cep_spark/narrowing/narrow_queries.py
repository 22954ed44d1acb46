"""Plan a query over only the columns that it reads, and over slices of its streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.answers import answer_schema
from gpu_cep.plan.columns_read import columns_read, narrow_settings
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark.narrowing.ties import tie_breakers
from gpu_cep_spark.schemas import refuse_unsent

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern


@dataclass(frozen=True, slots=True)
class NarrowQuery:
    """A query planned over only the columns that it reads.

    `events` is the schema of these columns. The options order ties by all of them.
    """

    pattern: Pattern
    events: pa.Schema
    options: Options
    settings: Settings
    plan: AnyPlan

    @classmethod
    def of(cls, pattern: Pattern, events: pa.Schema, options: Options, settings: Settings) -> NarrowQuery:
        """Plan the query over events of the schema `events`; all its errors are raised."""
        whole = make_plan(pattern, events, options, settings)
        read = columns_read(whole.query, settings)
        order = tuple(events.names[number] for number in tie_breakers(whole.query, read))
        narrow = pa.schema([events.field(number) for number in read])
        refuse_unsent(narrow)
        ordered, shown = replace(options, order_by=order), narrow_settings(whole.settings, narrow.names)
        return cls(pattern, narrow, ordered, shown, make_plan(pattern, narrow, ordered, shown))


@dataclass(frozen=True, slots=True)
class SlicedQuery:
    """A query planned over slices of streams; under ``skip_past_last`` its results also hold the ends of each match.

    `schema` is the schema of the plan's events. `sent` is that of its first columns, the ones that
    workers are sent; workers compute the others.
    """

    plan: AnyPlan
    schema: pa.Schema
    sent: pa.Schema

    @classmethod
    def of(cls, query: NarrowQuery) -> SlicedQuery:
        """Return the query over slices that are sent together: each is a stream of its own, by the number in the last column sent."""
        number, ends = _added_fields(query)
        schema = pa.schema([*query.events, number, *ends])
        plan = _slices_as_streams(_plan_with(query, schema, [number], ends), len(query.events))
        return cls(plan, schema, query.events.append(number))

    @classmethod
    def of_one_slice(cls, query: NarrowQuery) -> SlicedQuery:
        """Return the query over the events of one slice, whose number is a column if the results of all are put in order by it."""
        number, ends = _added_fields(query)
        numbers = [number] if query.settings.output == "events" else []
        schema = pa.schema([*query.events, *numbers, *ends])
        plan = _plan_with(query, schema, numbers, ends)
        return cls(replace(plan, slice_key=len(query.events) if numbers else None), schema, query.events)

    @property
    def packs(self) -> bool:
        """Return whether results have a row or more for each match, of which slices settle most."""
        return bool(self.plan.ends) and self.plan.settings.output != "count"


def time_kind(plan: Plan) -> Kind:
    """Return the kind of type that the timestamps have."""
    return plan.query.schema.attributes[plan.query.timestamp].type.kind


def _added_fields(query: NarrowQuery) -> tuple[pa.Field, list[pa.Field]]:
    """Return the columns that slices add: their number, and under ``skip_past_last`` each event's time and position."""
    number, time, place = _unused((*query.events.names, *answer_schema(query.plan, query.events).names))
    ticks = pa.float64() if time_kind(query.plan) is Kind.FLOAT else pa.int64()
    takes = query.settings.after_match == "skip_past_last"
    return pa.field(number, pa.int64()), [pa.field(time, ticks), pa.field(place, pa.int64())] if takes else []


def _unused(taken: tuple[str, ...]) -> tuple[str, ...]:
    """Return names for the columns that slices add, all different from those `taken`, whatever their case."""
    lower, suffix = {name.lower() for name in taken}, ""
    while any(name.startswith(f"slice{suffix}") for name in lower):
        suffix += "_"
    return tuple(f"slice{suffix}{name}" for name in ("", " time", " place"))


def _plan_with(query: NarrowQuery, schema: pa.Schema, numbers: list[pa.Field], ends: list[pa.Field]) -> AnyPlan:
    """Return the plan over events of `schema`, whose results tell the columns `ends`, and whose rows of events the column `numbers`."""
    plan = make_plan(query.pattern, schema, query.options, _slice_settings(query, tuple(field.name for field in numbers)))
    return replace(plan, ends=tuple(range(len(schema) - len(ends), len(schema))))


def _slice_settings(query: NarrowQuery, numbers: tuple[str, ...]) -> Settings:
    """Return the settings for slices; rows of events then have the columns `numbers`, too."""
    settings, names = query.settings, query.events.names
    columns = tuple(names) if settings.columns is None else settings.columns
    if settings.output == "events":
        keys = (names[key] for key in query.plan.query.partition_by)
        columns = tuple(dict.fromkeys((*columns, *keys, *numbers)))
    # skip_past_last keeps at most one match per first event, the first to complete; the rest is decided in assembly
    after_match = "skip_to_next" if settings.after_match == "skip_past_last" else settings.after_match
    return replace(settings, columns=columns, after_match=after_match)


def _slices_as_streams(plan: AnyPlan, number: int) -> AnyPlan:
    """Return `plan` with slices as streams; column `number` holds the slice's number."""
    keys = (*plan.query.partition_by, number)
    if isinstance(plan, IntervalPlan):
        return replace(plan, query=replace(plan.query, partition_by=keys), stream_keys=keys, slice_key=number)
    return replace(plan, query=replace(plan.query, partition_by=keys), stream_keys=(*keys, *plan.derived), slice_key=number)
