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
from gpu_cep.query_plans import make_plan
from gpu_cep_spark.ties import tie_breakers

if TYPE_CHECKING:
    from gpu_cep.query_plans import Pattern


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
        query = make_plan(pattern, events, options, settings).query
        read = columns_read(query, settings)
        order = tuple(events.names[number] for number in tie_breakers(query, read))
        narrow = pa.schema([events.field(number) for number in read])
        ordered, shown = replace(options, order_by=order), narrow_settings(settings, narrow.names)
        return cls(pattern, narrow, ordered, shown, make_plan(pattern, narrow, ordered, shown))


@dataclass(frozen=True, slots=True)
class SlicedQuery:
    """A query whose `plan` treats each slice as a stream of its own.

    `schema` is the schema of the plan's events. `sent` is that of its first columns, the ones that
    workers are sent; workers compute the others.
    """

    plan: AnyPlan
    schema: pa.Schema
    sent: pa.Schema

    @classmethod
    def of(cls, query: NarrowQuery) -> SlicedQuery:
        """Return the same query planned over slices.

        Under ``skip_past_last`` its results also hold the ends of each match.
        """
        whole, taken = query.plan, query.settings.after_match == "skip_past_last"
        number, time, place = _unused((*query.events.names, *answer_schema(query.plan, query.events).names))
        numbered = query.events.append(pa.field(number, pa.int64()))
        ticks = pa.float64() if time_kind(whole) is Kind.FLOAT else pa.int64()
        schema = pa.schema([*numbered, *([pa.field(time, ticks), pa.field(place, pa.int64())] if taken else [])])
        keys = tuple(query.events.names[key] for key in whole.query.partition_by)
        asked = _slice_settings(query.settings, keys, tuple(query.events.names), number)
        plan = _slice_plan(make_plan(query.pattern, schema, query.options, asked), len(query.events), taken=taken)
        return cls(plan, schema, numbered)


def time_kind(plan: Plan) -> Kind:
    """Return the kind of type that the timestamps have."""
    return plan.query.schema.attributes[plan.query.timestamp].type.kind


def _unused(taken: tuple[str, ...]) -> tuple[str, ...]:
    """Return names for the columns that slices add, all different from those `taken`, whatever their case."""
    lower, suffix = {name.lower() for name in taken}, ""
    while any(name.startswith(f"slice{suffix}") for name in lower):
        suffix += "_"
    return tuple(f"slice{suffix}{name}" for name in ("", " time", " place"))


def _slice_settings(settings: Settings, keys: tuple[str, ...], names: tuple[str, ...], number: str) -> Settings:
    """Return the settings for slices of streams with `keys` and columns `names`.

    `settings` are those for whole streams; `number` is the column of the slice's number.
    """
    columns = names if settings.columns is None else settings.columns
    if settings.output == "events":
        columns = tuple(dict.fromkeys((*columns, *keys, number)))
    # skip_past_last keeps at most one match per first event, the first to complete; the rest is decided in assembly
    after_match = "skip_to_next" if settings.after_match == "skip_past_last" else settings.after_match
    return replace(settings, columns=columns, after_match=after_match)


def _slice_plan(plan: AnyPlan, number: int, *, taken: bool) -> AnyPlan:
    """Return `plan` with slices as streams; column `number` holds the slice's number.

    If `taken`, ``skip_past_last`` takes matches in order of completion. The result then has two
    more columns, time and position, for each match's first and last event.
    """
    keys = (*plan.query.partition_by, number)
    if isinstance(plan, IntervalPlan):
        return replace(plan, query=replace(plan.query, partition_by=keys), stream_keys=keys, slice_key=number)
    cut = replace(plan, query=replace(plan.query, partition_by=keys), stream_keys=(*keys, *plan.derived), slice_key=number)
    return replace(cut, ends=(number + 1, number + 2)) if taken else cut
