"""Partition keys that the equality conditions imply (thesis Def. 5.3).

If the conditions ``v.A = w.A`` connect all variables, every two events of a
match agree on A: the input can be partitioned by it, and inside a partition
these conditions need no check.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpu_cep.analysis.bound import Condition, ConditionKind, Field, Operation
from gpu_cep.analysis.conditions import equalities
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import Kind


def close_equalities(
    conditions: Sequence[Condition], partition_by: Sequence[int], scope: Scope
) -> tuple[tuple[Condition, ...], tuple[int, ...]]:
    """`conditions` with the closure of each connecting equality in place of its parts, and the keys derived from them.

    A column of `partition_by` is no derived key, but its conditions stay: they
    rule out NULL, which partitioning does not. A float is none either: NaN
    equals nothing, though it makes a partition.
    """
    closed = tuple(conditions)
    keys: list[int] = []
    for column in _equated_columns(conditions, len(scope.schema.attributes)):
        if not _connects(conditions, column, len(scope.variables)):
            continue
        derived = column not in partition_by and scope.column(column).type.kind is not Kind.FLOAT
        keys += [column] if derived else []
        closed = _replaced(closed, column, column if derived else None, scope)
    return closed, tuple(keys)


def _equated_columns(conditions: Iterable[Condition], width: int) -> list[int]:
    """The columns of the schema (not the computed ones, which no input is partitioned by) that some condition equates."""
    columns = (equated_column(condition) for condition in conditions if condition.kind is ConditionKind.PAIR)
    return list(dict.fromkeys(column for column in columns if column is not None and column < width))


def equated_column(condition: Condition) -> int | None:
    """The column A of a condition ``v.A = w.A``, or that v's events agree on A; None for any other."""
    match condition:
        case Condition(Operation("eq", (Field() as left, Field() as right)), ConditionKind.PAIR | ConditionKind.WITHIN):
            return left.column if left.column == right.column else None
    return None


def _connects(conditions: Iterable[Condition], column: int, variables: int) -> bool:
    """Whether the equalities on `column` connect all variables."""
    component = list(range(variables))
    for condition in conditions:
        if condition.kind is ConditionKind.PAIR and equated_column(condition) == column:
            left, right = (component[variable] for variable in condition.variables)
            component = [left if each == right else each for each in component]
    return len(set(component)) == 1


def _replaced(conditions: Sequence[Condition], column: int, key: int | None, scope: Scope) -> tuple[Condition, ...]:
    """`conditions` with the whole closure on `column` where its first part stood."""
    parts = [index for index, condition in enumerate(conditions) if equated_column(condition) == column]
    closure = (replace(condition, key=key) for condition in equalities(column, conditions[parts[0]].span, scope))
    others = (condition for index, condition in enumerate(conditions) if index > parts[0] and index not in parts)
    return (*conditions[: parts[0]], *closure, *others)
