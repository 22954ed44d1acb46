"""Plan the rules of a rule set over events that are opened and read once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from gpu_cep.errors import FEWER_EVENTS, CepError, EventError, ending_in
from gpu_cep.keywords import read_keywords
from gpu_cep.plan.columns_read import columns_read
from gpu_cep.plan.settings import memory_bytes
from gpu_cep.queries.plans import make_plan
from gpu_cep.queries.row_plans import is_row_pattern
from gpu_cep.queries.runs import check_engine, is_path, open_source
from gpu_cep.rule_sets.rules import Rule, naming

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.engine.input.input_events import InputEvents
    from gpu_cep.engine.input.sources import Source
    from gpu_cep.engine.input.wanted_events import Wanted
    from gpu_cep.plan.interval_plan import AnyPlan

# Up to so many filters are united to one by which row groups of Parquet are left out.
_MOST_FILTERS = 256
# The NULLs of a column that is not read stand in chunks of so many.
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class PlannedRule:
    """The plan of a rule, over the events that all rules share."""

    name: str
    plan: AnyPlan


@dataclass(frozen=True, slots=True)
class PlannedRules:
    """The rules of a set, planned over events.

    `events`: what the `planned` rules read together. `opened`: all that there is, as :func:`gpu_cep.match` takes it.
    `alone`: why a rule runs by a call of its own, by its name. `failed`: the error of each rule that has one, by its name.
    """

    events: InputEvents
    opened: Any
    planned: tuple[PlannedRule, ...]
    alone: Mapping[str, str]
    failed: Mapping[str, CepError]


# What is known before events are read: the plans of the rules that have no error, the errors of the others, and the events' schema.
Check = Callable[[Iterable[PlannedRule], Mapping[str, CepError], "pa.Schema"], None]


@dataclass(slots=True)
class _Draft:
    """The rules while they are planned: what is known of those that have no error so far, and the errors of the others."""

    planned: dict[str, PlannedRule] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)
    failed: dict[str, CepError] = field(default_factory=dict)

    def each(self, names: Iterable[str], work: Callable[[str], None]) -> None:
        """Do the work for each name; an error is kept with it."""
        for name in names:
            try:
                with naming(name):
                    work(name)
            except CepError as fault:
                self.failed[name] = fault


@ending_in(EventError, "reading the events", FEWER_EVENTS)
def plan_rules(events: Any, rules: Mapping[str, Rule], keywords: Mapping[str, Any], check: Check | None = None) -> PlannedRules:
    """Return the plans of all rules, and the events that they read together.

    Nothing of a source is read if not even one rule can run. `check` is called before that, and raises if the rules are not to run.

    Raises
    ------
    EventError
        The events cannot be read.
    """
    from gpu_cep.engine.input.read_tables import read_events
    from gpu_cep.queries.sliced_plans import refuse_large

    draft = _Draft()
    source = open_source(events)
    opened = read_events(events) if source is None else source
    draft.each(rules, lambda name: _plan_rule(draft, name, rules[name], keywords, opened.schema))
    if check is not None:
        check(draft.planned.values(), draft.failed, opened.schema)
    allowed = memory_bytes(keywords.get("memory"), "memory")
    if source is not None:
        return _with_source(draft, source, allowed)
    if is_path(events):
        refuse_large(opened, allowed)
    return _with_table(draft, opened)


def _plan_rule(draft: _Draft, name: str, rule: Rule, keywords: Mapping[str, Any], schema: pa.Schema) -> None:
    """Plan a rule over events of `schema`, or say why it runs alone."""
    from gpu_cep.engine.input.times import lacks_times

    options, settings = read_keywords({**keywords, **rule.options})
    check_engine(settings)
    if is_row_pattern(rule.pattern):
        draft.alone[name] = "MATCH_RECOGNIZE returns rows of its own"
        return
    if lacks_times(schema, options):
        draft.alone[name] = "no event has a timestamp"
        return
    planned = PlannedRule(name, make_plan(rule.pattern, schema, options, settings))
    if planned.plan.algorithm == "brute_force":
        draft.alone[name] = "brute_force reads all rows"
    else:
        draft.planned[name] = planned


def _with_table(draft: _Draft, table: Any) -> PlannedRules:
    from gpu_cep.engine.input.input_events import InputEvents

    return PlannedRules(InputEvents(table), table, tuple(draft.planned.values()), draft.alone, draft.failed)


def _with_source(draft: _Draft, source: Source, memory: int | None) -> PlannedRules:
    """Return the rules with the columns and row groups of the source that some rule reads."""
    from gpu_cep.engine.input.empty_tables import no_rows
    from gpu_cep.engine.input.input_events import InputEvents, Origin

    columns = _columns_of(draft.planned.values())
    names = [source.schema.names[column] for column in columns]
    wanted = _wanted_by_any(draft.planned.values(), source)
    nothing = InputEvents(no_rows(source.schema))
    if draft.planned and _exceeds(source, names, next(iter(draft.planned.values())), wanted, memory):
        alone = dict.fromkeys(draft.planned, "together the events do not fit in memory")
        return PlannedRules(nothing, source, (), {**draft.alone, **alone}, draft.failed)
    if not draft.planned:
        return PlannedRules(nothing, source, tuple(draft.planned.values()), draft.alone, draft.failed)
    part = source.read_part(names, wanted)
    whole, origin = _with_all_columns(part.table, source.schema), Origin(source.schema, part.numbers)
    given = InputEvents(whole, origin, part.groups, None if part.numbers is None else source.read)
    return PlannedRules(given, source, tuple(draft.planned.values()), draft.alone, draft.failed)


def _with_all_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with NULL in the columns of `schema` that it lacks, so that plans over all columns fit it.

    These columns take no memory worth the name.
    """
    import pyarrow as pa

    read = {name: table.column(number) for number, name in enumerate(table.schema.names)}
    fields = [schema.field(name).with_type(read[name].type) if name in read else schema.field(name) for name in schema.names]
    columns = [read[field.name] if field.name in read else _nulls(field.type, table.num_rows) for field in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in fields]))


def _nulls(kind: pa.DataType, count: int) -> pa.ChunkedArray:
    """Return `count` NULLs, all chunks of which are the same memory."""
    import pyarrow as pa

    chunk = pa.nulls(min(count, _CHUNK), kind)
    return pa.chunked_array([chunk.slice(0, min(_CHUNK, count - begin)) for begin in range(0, count, _CHUNK)], kind)


def _columns_of(planned: Iterable[PlannedRule]) -> list[int]:
    """Return the columns that some rule reads, in the order of the schema."""
    return sorted({column for each in planned for column in columns_read(each.plan.query, each.plan.settings)})


def _wanted_by_any(planned: Iterable[PlannedRule], source: Source) -> Wanted | None:
    """Return which events some rule may bind; None for all."""
    from gpu_cep.engine.input.event_filter import wanted_events
    from gpu_cep.engine.input.wanted_events import Wanted

    conditions: dict[str, Any] = {}
    timed: set[str | None] = set()
    for each in planned:
        wanted = wanted_events(each.plan, source.schema)
        if wanted is None or len(conditions) > _MOST_FILTERS:
            return None
        conditions[str(wanted.condition)] = wanted.condition
        timed.add(wanted.timed)
    columns = timed - {None}
    if not 0 < len(conditions) <= _MOST_FILTERS or len(columns) > 1:
        return None
    return Wanted(reduce(or_, conditions.values()), next(iter(columns), None), {})


def _exceeds(source: Source, names: list[str], first: PlannedRule, wanted: Wanted | None, memory: int | None) -> bool:
    """Return whether the events that some rule reads surely take more memory than they may."""
    from gpu_cep.engine.slices.budget import fit_at_once

    if memory is None and not source.is_large(None):
        return False
    files = source.group(names, source.schema.names[first.plan.query.timestamp], wanted)
    return files is not None and not fit_at_once(files.groups, memory)
