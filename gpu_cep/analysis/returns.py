"""Bind RETURN: give each item its type and its final name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpu_cep.analysis.bound import ReturnColumn
from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Bound, Constant, Field
from gpu_cep.analysis.coercion import cast, common_type
from gpu_cep.analysis.expressions import bind_expression
from gpu_cep.analysis.operators import fits, refuse_range
from gpu_cep.analysis.scope import Scope
from gpu_cep.lang.ast import Reference, ReturnItem

MATCH_COLUMNS = ("match_start", "match_end")


def bind_returns(items: Sequence[ReturnItem], keys: Sequence[str], scope: Scope) -> tuple[ReturnColumn, ...]:
    """Return the columns of RETURN; `keys` are the names of the stream keys, which precede them.

    Without AS an item is named after its attribute, if no other item is, else ``v_attr``. An aggregate
    is named ``avg_v_attr``, any other expression ``column_n``.
    """
    values = tuple(_value(item, scope) for item in items)
    taken = Counter([*keys, *MATCH_COLUMNS, *(_plain_name(*pair, scope) for pair in zip(items, values, strict=True))])
    names = [_name(number, item, value, taken, scope) for number, (item, value) in enumerate(zip(items, values, strict=True), 1)]
    _check_distinct(names, items, keys, scope)
    return tuple(ReturnColumn(name, value) for name, value in zip(names, values, strict=True))


def _value(item: ReturnItem, scope: Scope) -> Bound:
    value = bind_expression(item.expression, scope)
    if not isinstance(value, Constant):
        return value
    if not fits(value.value):
        refuse_range(value, scope, item.span)
    meeting = common_type((value,))
    return value if meeting is None else cast(value, meeting)


def _plain_name(item: ReturnItem, value: Bound, scope: Scope) -> str | None:
    """Return the preferred name of an item: its AS name, or its attribute."""
    if item.name is not None:
        return item.name
    if isinstance(item.expression, Reference) and isinstance(value, Field | Binding) and value.column is not None:
        return scope.column(value.column).name
    return None


def _name(number: int, item: ReturnItem, value: Bound, taken: Counter[str | None], scope: Scope) -> str:
    plain = _plain_name(item, value, scope)
    if plain is not None and (item.name is not None or taken[plain] == 1):
        return plain
    match value:
        case Aggregation(function, variable, column):
            return "_".join((function, *_path(variable, column, scope)))
        case Field(variable, column) | Binding(variable, column) if isinstance(item.expression, Reference):
            return "_".join(_path(variable, column, scope))
    return f"column_{number}"


def _path(variable: int, column: int | None, scope: Scope) -> tuple[str, ...]:
    name = scope.names[variable]
    return (name,) if column is None else (name, scope.column(column).name)


def _clash_hint(name: str, keys: Sequence[str]) -> str:
    """Return how an item of RETURN is kept apart from the other column of its name."""
    if name in keys:
        return "the key of the stream is a column of each result: leave the item out, or name it otherwise with AS"
    return "each result has that column: name the item otherwise with AS" if name in MATCH_COLUMNS else "name one of them with AS"


def _check_distinct(names: Sequence[str], items: Sequence[ReturnItem], keys: Sequence[str], scope: Scope) -> None:
    seen = {*keys, *MATCH_COLUMNS}
    for name, item in zip(names, items, strict=True):
        if name in seen:
            scope.faults.error(f"two columns of the result are called {name!r}", item.span, _clash_hint(name, keys))
        seen.add(name)
