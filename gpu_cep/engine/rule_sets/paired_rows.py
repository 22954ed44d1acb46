"""Pair the rows of a table with the plans of a family that may bind them, and label each pair.

A family is one query over pairs: the number of the plan is its first stream key, and a column for
each variable says whether the plan may bind the row to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import BoundPattern, Condition, ConditionKind
from gpu_cep.analysis.bound_expressions import Constant, Field, Operation
from gpu_cep.analysis.types import BOOLEAN, INTEGER, Attribute, Schema
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.rule_sets.families import Family, PropertySlot
from gpu_cep.engine.rule_sets.row_lists import RowLists, Rows
from gpu_cep_kernels.rules.tables import Ints

Labels = npt.NDArray[np.uint64]

# numpy compares a column with the constant of each row by these.
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
# The constant that fewest values fail, for comparisons that have one.
_WEAKEST: dict[str, Callable[[Any], Any]] = {"lt": max, "le": max, "gt": min, "ge": min}


class Pairs(NamedTuple):
    """Rows, ascending, each with the number of a member of the family, and the bits of the variables that it may bind."""

    rows: Rows
    members: Rows
    labels: Labels


@dataclass(frozen=True, slots=True)
class ValueEntries:
    """The members that want each value: entry e is one of ``members[e]``, for the variables in ``labels[e]``.

    ``begins[v]`` is the first entry of value v. The last value stands for all others, and has none.
    """

    values: Sequence[int | str]
    begins: Ints
    members: Rows
    labels: Labels


def value_entries(family: Family) -> ValueEntries:
    """Return which members want each value of the family's column, and for which variables."""
    found: dict[int | str, list[tuple[int, int]]] = {}
    for member in range(len(family.members)):
        tests = list(family.values(member))
        for value in frozenset().union(*(values for _, values in tests)):
            bits = ~reduce(or_, (own for own, values in tests if value not in values), 0) & _everyone(family.plan.query)
            if bits:
                found.setdefault(value, []).append((member, bits))
    counts = [len(entries) for entries in found.values()]
    flat = np.array([entry for entries in found.values() for entry in entries], np.uint64).reshape(-1, 2)
    begins = np.concatenate([[0], np.cumsum(counts, dtype=np.int64), [len(flat)]])
    return ValueEntries(list(found), begins, flat[:, 0].astype(np.int32), flat[:, 1])


def _everyone(query: BoundPattern) -> int:
    """Return the bits of all variables."""
    return (1 << len(query.variables)) - 1


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """The rows that some member of a family may bind, ascending; `places` are those of their values among the entries' values."""

    family: Family
    columns: EventColumns
    entries: ValueEntries
    rows: Rows
    places: Rows

    def counts(self) -> Ints:
        """Return how many rows each member wants."""
        of_value = np.bincount(self.places, minlength=len(self.entries.begins) - 1)
        of_entry = np.repeat(of_value, np.diff(self.entries.begins))
        counts = np.bincount(self.entries.members, of_entry, len(self.family.members))
        return counts.astype(np.int64)

    def take(self, kept: Ints) -> FamilyRows:
        """Return some of the rows, by their ascending numbers."""
        return replace(self, rows=self.rows[kept], places=self.places[kept])


def family_rows(family: Family, columns: EventColumns, lists: RowLists, groups: tuple[int, ...]) -> FamilyRows:
    """Return the rows of a family: those in some groups of the `lists`, which some member may bind."""
    entries, rows = value_entries(family), lists.of(groups)
    place_of = np.full(len(lists.of_value) + 2, len(entries.values), np.int32)
    places = {value: place for place, value in enumerate(lists.of_value)}
    place_of[[places[value] for value in entries.values]] = np.arange(len(entries.values))
    return FamilyRows(family, columns, entries, rows, place_of[lists.places[rows]])


def pair_rows(given: FamilyRows, members: range) -> Pairs:
    """Return the pairs of a row and one of the `members` of which the member may bind the row."""
    entries = given.entries
    wanted = np.flatnonzero((entries.members >= members.start) & (entries.members < members.stop))
    begins = np.searchsorted(wanted, entries.begins)
    of_value = np.diff(begins)
    kept = np.flatnonzero(of_value[given.places])
    rows, places = given.rows[kept], given.places[kept]
    entry = begins[places]
    if of_value.max(initial=0) > 1:
        counts = of_value[places]
        ends = np.cumsum(counts)
        rows = np.repeat(rows, counts)
        entry = np.repeat(entry - (ends - counts), counts) + np.arange(len(rows))
    entry = wanted[entry]
    numbers, labels = entries.members[entry], entries.labels[entry]
    for number, slot in enumerate(given.family.slots):
        if slot.comparison in _COMPARE:
            constants = np.array([own[number] for own in given.family.constants])
            _clear_failed(given.columns, slot, rows, constants[numbers], labels)
    some = labels != 0
    return Pairs(rows, numbers, labels) if some.all() else Pairs(rows[some], numbers[some], labels[some])


def weakest_labels(given: FamilyRows) -> Labels:
    """Return, for each row, the bits of the variables to which some member may bind it; other bits may be set, too."""
    entries = given.entries
    of_value = np.zeros(len(entries.begins) - 1, np.uint64)
    np.bitwise_or.at(of_value, np.repeat(np.arange(len(of_value)), np.diff(entries.begins)), entries.labels)
    labels = of_value[given.places]
    for number, slot in enumerate(given.family.slots):
        if slot.comparison in _WEAKEST:
            weakest = _WEAKEST[slot.comparison]([own[number] for own in given.family.constants])
            _clear_failed(given.columns, slot, given.rows, weakest, labels)
    return labels


def _clear_failed(columns: EventColumns, slot: PropertySlot, rows: Rows, constants: Any, labels: Labels) -> None:
    """Clear the bits of a slot in the labels of rows that fail its comparison."""
    nulls = columns.null_mask(slot.column)
    holds = _COMPARE[slot.comparison](columns.pieces(slot.column).at(rows), constants)
    if nulls is not None:
        holds &= ~nulls[rows]
    labels[~holds] &= np.uint64(~slot.bits & (2**64 - 1))


def paired_query(family: Family, *, by_member: bool) -> BoundPattern:
    """Return the query of a family over rows with the columns of :func:`paired_columns`; `by_member`: one for each member."""
    query, names = family.plan.query, paired_names(family)
    width = len(query.schema.attributes)
    schema = Schema((*query.schema.attributes, *(Attribute(name, INTEGER) for name in names)))
    labelled = tuple(
        Condition(
            Operation("eq", (Field(v, width + 1 + v, INTEGER), Constant(1, INTEGER)), BOOLEAN), ConditionKind.PROPERTY, (v,), variable.name
        )
        for v, variable in enumerate(query.variables)
    )
    everyone = _everyone(query)
    fixed = tuple(
        Condition(conjunct, ConditionKind.PROPERTY, () if bits == everyone else (bits.bit_length() - 1,), "")
        for bits, conjunct in family.fixed
    )
    related = tuple(each for each in query.conditions if each.kind is not ConditionKind.PROPERTY)
    keys = (width, *query.partition_by) if by_member else query.partition_by
    return replace(query, schema=schema, conditions=(*labelled, *fixed, *related), partition_by=keys)


def paired_names(family: Family) -> tuple[str, ...]:
    """Return the names of the columns that pairs have beside those of the table: the member, and one for each variable."""
    query = family.plan.query
    prefix = "#" * (1 + max((len(name) for name in query.schema.names), default=0))
    return (f"{prefix}member", *(f"{prefix}{number}" for number in range(len(query.variables))))


def paired_columns(family: Family, members: npt.ArrayLike, labels: Labels) -> pa.Table:
    """Return the columns that pairs have beside those of the table."""
    bits = [((labels >> np.uint64(v)) & np.uint64(1)).astype(np.int8) for v in range(len(family.plan.query.variables))]
    return pa.table([pa.array(np.asarray(members, np.int32)), *map(pa.array, bits)], names=list(paired_names(family)))
