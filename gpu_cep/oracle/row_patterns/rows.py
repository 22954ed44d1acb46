"""Cut a table into partitions, with rows in the order that ORDER BY says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_cep.errors import PatternError
from gpu_cep.lang.row_patterns.ast import SortKey
from gpu_cep.lang.row_patterns.names import column_named
from gpu_cep.oracle.expressions import Row
from gpu_cep.oracle.meanings import Kind
from gpu_cep.oracle.streams import kind_of, sort_key, values


@dataclass(frozen=True, slots=True)
class Partition:
    """The rows of one partition in order, and their numbers in the table."""

    rows: tuple[Row, ...]
    numbers: tuple[int, ...]


def column(identifier: str, names: Sequence[str]) -> str:
    """Return the column that an identifier names."""
    found = column_named(identifier, names)
    if found is None:
        raise PatternError(f"unknown column {identifier!r}")
    return found


def partitions(table: pa.Table, partition_by: Sequence[str], order_by: Sequence[SortKey]) -> list[Partition]:
    """Return the partitions of a table by key, NULL first; `partition_by` are identifiers.

    Rows that ORDER BY leaves equal stay in the order of the table.
    """
    names = [column(each, table.column_names) for each in partition_by]
    readable = [name for name in table.column_names if kind_of(table.schema.field(name).type) is not Kind.OTHER]
    columns = {name: values(table[name]) for name in readable}
    rows = [{name: found[number] for name, found in columns.items()} for number in range(table.num_rows)]
    members: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        members[sort_key(row, names)].append(number)
    ordered = [_in_order(rows, members[key], order_by, table.column_names) for key in sorted(members)]
    return [Partition(tuple(rows[number] for number in numbers), tuple(numbers)) for numbers in ordered]


def _in_order(rows: Sequence[Row], numbers: Sequence[int], order_by: Sequence[SortKey], names: Sequence[str]) -> list[int]:
    """Return the numbers of rows as ORDER BY sorts them, from the last key to the first; each sort is stable."""
    ordered = list(numbers)
    for key in reversed(order_by):
        name = column(key.column.name, names)
        ordered.sort(key=lambda number, name=name: sort_key(rows[number], [name]), reverse=key.descending)  # type: ignore[misc]
        ordered.sort(key=lambda number, name=name, key=key: (rows[number][name] is None) != bool(key.nulls_first))  # type: ignore[misc]
    return ordered
