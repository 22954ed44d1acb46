"""Look up the constants of many live queries in the events of a push at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.event_filter import may_leave_out
from gpu_cep.engine.rule_sets.bound_values import Values, bound_values
from gpu_cep.engine.rule_sets.row_lists import Rows, list_rows
from gpu_cep.live.queries import LiveQuery

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RuleLookups:
    """The values that rules want, by column and name; the `others` look at all events."""

    wanted: Mapping[str, Mapping[str, Values]]
    others: tuple[str, ...]


def rule_lookups(live: Mapping[str, LiveQuery]) -> RuleLookups:
    """Return which rules want which values of a column; a column that one rule alone looks up is left to that rule."""
    found = {name: _values_of(each) for name, each in live.items()}
    counts = Counter(column for values in found.values() for column in values)
    wanted: dict[str, dict[str, Values]] = {}
    for name, values in found.items():
        column = max(values, key=counts.__getitem__, default=None)
        if column is not None and counts[column] > 1:
            wanted.setdefault(column, {})[name] = values[column]
    looked_up = {name for rules in wanted.values() for name in rules}
    return RuleLookups(wanted, tuple(name for name in live if name not in looked_up))


def _values_of(live: LiveQuery) -> dict[str, Values]:
    """Return the values that all events of a query have, by the name of a column, if it has the same matches among these alone."""
    plan = live.plan if live.timeouts is None else live.timeouts
    if live.rows is not None or not may_leave_out(plan, live.schema):
        return {}
    return {live.schema.names[column]: values for column, values in bound_values(plan.query).items()}


def look_up(lookups: RuleLookups, live: Mapping[str, LiveQuery], table: pa.Table) -> Iterator[tuple[str, Rows | None]]:
    """Yield the rows of a table that each rule may bind, by its name; None stands for all. Rules without any are left out."""
    for name in lookups.others:
        yield name, None
    for column, wanted in lookups.wanted.items():
        first = live[next(iter(wanted))]
        columns = EventColumns(table.select(first.schema.names).cast(first.schema), first.plan.query, first.plan.dictionaries, threads=1)
        lists = list_rows(columns, first.schema.names.index(column), list(wanted.values()), threads=1)
        for name, groups in zip(wanted, lists.groups, strict=True):
            if lists.count(groups):
                yield name, lists.of(groups)
