"""Find the attributes on which all events of a match agree, by equality conditions (thesis Def. 5.3).

If conditions ``v.A = w.A`` connect all variables of a branch, every two events of a match agree on
A. Then the input can be partitioned by A, and these conditions need no test inside a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpu_cep.analysis.bound import Branch, Condition, ConditionKind
from gpu_cep.analysis.bound_expressions import Field, Operation, Place
from gpu_cep.analysis.conditions import equalities
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import Kind


def with_conditions(branch: Branch, conditions: Iterable[Condition], scope: Scope) -> Branch:
    """Return `branch` with those of `conditions` that relate events of its variables.

    Equalities that connect all variables are replaced by their closure.
    """
    present = {*branch.variables, *(negation.variable for negation in branch.negations)}
    relating = [condition for condition in conditions if condition.kind is not ConditionKind.PROPERTY]
    own = tuple(condition for condition in relating if present.issuperset(condition.variables))
    positive = [condition for condition in own if set(branch.variables).issuperset(condition.variables)]
    equated = _equated_columns(positive, len(scope.schema.attributes))
    agreed = tuple(column for column in equated if _connects(positive, column, branch.variables))
    for column in agreed:
        own = _put_closure(own, column, branch.variables, scope)
    return replace(branch, conditions=own, agreed=agreed)


def derived_keys(branches: Sequence[Branch], partition_by: Sequence[int], scope: Scope) -> tuple[int, ...]:
    """Return the columns that can split streams.

    In every branch all events of a match and all negated events agree on them. Some columns are left out:

    - Columns of `partition_by`. Their conditions stay, since these rule out NULL and partitions do not.
    - Floats: NaN equals nothing, but would make a partition.
    - All, if some branch has one variable only: it may bind an event where the column is NULL.
    """
    if not branches or any(len(branch.variables) < 2 for branch in branches):
        return ()
    return tuple(
        column
        for column in branches[0].agreed
        if column not in partition_by
        and scope.column(column).type.kind is not Kind.FLOAT
        and all(column in branch.agreed and _binds_negations(branch, column) for branch in branches)
    )


def marked(branch: Branch, keys: Sequence[int]) -> Branch:
    """Return `branch`, with `key` set on each condition that partitioning by one of `keys` makes redundant."""

    def mark(condition: Condition) -> Condition:
        column = equated_column(condition)
        return replace(condition, key=column) if column in keys else condition

    return replace(branch, conditions=tuple(map(mark, branch.conditions)))


def equated_column(condition: Condition) -> int | None:
    """Return the column A of a condition ``v.A = w.A`` or ``[A]``; None for other conditions."""
    match condition:
        case Condition(Operation("eq", (Field(place=Place.EACH) as left, Field() as right)), ConditionKind.PAIR | ConditionKind.WITHIN):
            agrees = right.place is Place.EACH or condition.kind is ConditionKind.WITHIN
            return left.column if left.column == right.column and agrees else None
    return None


def _equated_columns(conditions: Iterable[Condition], width: int) -> list[int]:
    """Return the columns of the schema that some condition equates; `width` is the number of such columns."""
    columns = (equated_column(condition) for condition in conditions)
    return list(dict.fromkeys(column for column in columns if column is not None and column < width))


def _connects(conditions: Iterable[Condition], column: int, variables: Sequence[int]) -> bool:
    """Return whether the equalities on `column` connect all `variables`."""
    component = {variable: variable for variable in variables}
    for condition in conditions:
        if equated_column(condition) == column:
            left, right = (component[variable] for variable in (condition.variables[0], condition.variables[-1]))
            component = {variable: left if each == right else each for variable, each in component.items()}
    return len(set(component.values())) == 1


def _binds_negations(branch: Branch, column: int) -> bool:
    """Return whether every negated event must agree with the match on `column`."""
    bound = {variable for condition in branch.conditions if equated_column(condition) == column for variable in condition.variables}
    return bound.issuperset(negation.variable for negation in branch.negations)


def _put_closure(conditions: Sequence[Condition], column: int, variables: Sequence[int], scope: Scope) -> tuple[Condition, ...]:
    """Return `conditions` with the equalities on `column` replaced by their closure over `variables`."""
    positive = set(variables)
    parts = [
        index for index, condition in enumerate(conditions)
        if equated_column(condition) == column and positive.issuperset(condition.variables)
    ]  # fmt: skip
    closure = equalities(column, variables, conditions[parts[0]].span, scope)
    others = (condition for index, condition in enumerate(conditions) if index > parts[0] and index not in parts)
    return (*conditions[: parts[0]], *closure, *others)
