"""Show matches to people: the keys of their streams first, then times, and a short text for the events of each variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound_expressions import Binding, Field
from gpu_cep.analysis.options import Options
from gpu_cep.display.cells import texts
from gpu_cep.display.event_texts import event_texts
from gpu_cep.lang.ast import Aggregate, Reference, ReturnItem
from gpu_cep.plan.columns_read import condition_readers
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.queries.plans import PatternQuery

_START = "match_start"


@dataclass(frozen=True, slots=True)
class MatchView:
    """How the result of a query is shown.

    `asked`: the query, which returns the keys that its conditions imply as well.
    `implied`: the names of these keys, each with the columns of the result of which one or more hold it.
    `leading`: the names of the other columns of keys.
    `timestamp`: the name of the timestamp.
    `attributes`: the columns of whole events, each with the attributes that are shown of its events.
    """

    asked: PatternQuery
    implied: Mapping[str, tuple[str, ...]]
    leading: tuple[str, ...]
    timestamp: str
    attributes: Mapping[str, tuple[str, ...]]

    def put_keys_first(self, found: pa.Table) -> pa.Table:
        """Return the result of `asked` with the keys as its first columns, and all values as they are."""
        held = {name for names in self.implied.values() for name in names}
        leading = [name for name in self.leading if name in found.column_names]
        others = [name for name in found.column_names if name not in held.union(leading)]
        implied = {key: pc.coalesce(*map(found.column, names)) for key, names in self.implied.items()}
        return pa.table({name: found.column(name) for name in leading} | implied | {name: found.column(name) for name in others})

    def shorten(self, found: pa.Table) -> pa.Table:
        """Return a table with texts for whole events, times and lengths of time; other values stay as they are.

        Events are told by their number, the times of the first and the last, and what their attributes
        are there. A time of the day that the match starts has no date.
        """
        starts = found.column(_START).combine_chunks() if _START in found.column_names else None
        return pa.table({name: self._shorten(name, found.column(name).combine_chunks(), starts) for name in found.column_names})

    def _shorten(self, name: str, values: pa.Array, starts: pa.Array | None) -> pa.Array:
        if name in self.attributes and pa.types.is_nested(values.type):
            return event_texts(values, self.timestamp, self.attributes[name], starts)
        return short_texts(values)


def short_texts(values: pa.Array) -> pa.Array:
    """Return texts for times and lengths of time, also for those in lists; other values as they are."""
    kind = values.type.value_type if pa.types.is_list(values.type) else values.type
    return texts(values) if pa.types.is_temporal(kind) else values


def view_matches(plan: AnyPlan, query: PatternQuery, options: Options) -> MatchView:
    """Return how the result of `query`, whose plan is `plan`, is shown."""
    names, keys = plan.query.schema.names, _implied_keys(plan)
    partition = tuple(names[key] for key in plan.query.partition_by)
    if plan.settings.output != "matches":
        return MatchView(query, {}, (*partition, *(names[key] for key in keys)), options.timestamp, {})
    returns = query.returns or tuple(ReturnItem(Reference(each.name, None), each.name) for each in plan.query.positives)
    prefix = "_" * (1 + max(map(len, (*names, *(item.name or "" for item in returns), *(item.name for item in plan.query.returns)))))
    returned = {key: _returned_as(plan, key) for key in keys}
    added = {_free_name(plan, key): tuple(_key_items(plan, key, prefix)) for key in keys if returned[key] is None}
    asked = replace(query, returns=(*returns, *(item for items in added.values() for item in items)))
    implied = {name: tuple(item.name or "" for item in items) for name, items in added.items()}
    leading = (*partition, *(name for name in returned.values() if name is not None))
    return MatchView(asked, implied, leading, options.timestamp, dict(_attributes(plan, options, {*keys, *plan.query.partition_by})))


def _implied_keys(plan: AnyPlan) -> tuple[int, ...]:
    """Return the columns on which all events of every match agree by conditions, apart from those of PARTITION BY."""
    branches = plan.query.branches if isinstance(plan, EventPlan) else ()
    agreed = dict.fromkeys(key for branch in branches for key in branch.agreed)
    return tuple(key for key in agreed if key not in plan.query.partition_by and all(key in branch.agreed for branch in branches))


def _key_items(plan: AnyPlan, key: int, prefix: str) -> Iterator[ReturnItem]:
    """Yield items of RETURN of which, in each match, some are the key's value and the others NULL."""
    assert isinstance(plan, EventPlan), "only conditions between events imply keys"
    for variable in dict.fromkeys(branch.variables[0] for branch in plan.query.branches):
        name = plan.query.variables[variable].name
        yield ReturnItem(Aggregate("first", name, plan.query.column_name(key)), f"{prefix}{key} {name}")


def _returned_as(plan: AnyPlan, key: int) -> str | None:
    """Return the name by which the query itself returns a key, of a variable that every match binds; None if it does not."""
    assert isinstance(plan, EventPlan), "only conditions between events imply keys"
    always = set.intersection(*(set(branch.variables) for branch in plan.query.branches))
    for item in plan.query.returns:
        if isinstance(item.expression, Field) and item.expression.column == key and item.expression.variable in always:
            return item.name
    return None


def _free_name(plan: AnyPlan, key: int) -> str:
    """Return the name of a key's column: in brackets if the query calls another one so."""
    name = plan.query.column_name(key)
    return f"[{name}]" if name in (item.name for item in plan.query.returns) else name


def _attributes(plan: AnyPlan, options: Options, keys: Iterable[int]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the columns of whole events, each with the attributes to show.

    These are the ones that the caller asks for, or else those that the variable's conditions read.
    Keys, the timestamp and the type of events of a pattern are left out.
    """
    query, asked = plan.query, plan.settings.columns
    kind = options.type_column if isinstance(plan, EventPlan) else None
    left_out = {options.timestamp, kind, *(query.column_name(key) for key in keys)}
    returned = [(item.name, item.expression) for item in query.returns if isinstance(item.expression, Binding)]
    whole = [(name, binding.variable) for name, binding in returned if binding.column is None]
    bare = [(each.name, number) for number, each in enumerate(query.positives)]
    for name, variable in whole if query.returns else bare:
        read = [query.column_name(column) for column, readers in condition_readers(query).items() if variable in readers]
        yield name, tuple(each for each in (read if asked is None else asked) if each not in left_out)
