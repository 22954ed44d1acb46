"""Write bound expressions as readable text, with their casts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol

from gpu_cep.analysis.bound import EventVariable
from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Bound, Constant, Constants, Field, Operation, Place, split_case
from gpu_cep.analysis.computed_columns import Computed, ComputedColumn
from gpu_cep.analysis.literals import SECONDS_PER_DAY
from gpu_cep.analysis.types import TICKS_PER_SECOND, DataType, Kind, Schema

# operation -> its symbol and how tightly it binds
INFIX = {
    "or": ("OR", 1),
    "and": ("AND", 2),
    "eq": ("=", 4),
    "ne": ("<>", 4),
    "lt": ("<", 4),
    "le": ("<=", 4),
    "gt": (">", 4),
    "ge": (">=", 4),
    "add": ("+", 5),
    "sub": ("-", 5),
    "mul": ("*", 6),
    "div": ("/", 6),
    "mod": ("%", 6),
}
_NOT = 3
_POSTFIX = 4
_TIGHTEST = 7

_FORMS = {
    Place.EACH: "{}",
    Place.PREVIOUS: "prev({})",
    Place.FIRST: "first({})",
    Place.FIRST_BEFORE: "first({})",
    Place.LAST: "last({})",
}
_EPOCH = datetime(1970, 1, 1)


class Naming(Protocol):
    """What gives numbers their names back: a scope or a bound query."""

    @property
    def schema(self) -> Schema: ...

    @property
    def variables(self) -> tuple[EventVariable, ...]: ...

    @property
    def computed(self) -> Sequence[Computed]: ...


def render(bound: Bound, naming: Naming) -> str:
    """`bound` as text in the query language."""
    match bound:
        case Constant():
            return _constant(bound.value, bound.type)
        case Constants():
            return ", ".join(_constant(value, bound.type) for value in bound.values)
        case Field(variable, column, _, place):
            return _column(column, naming.variables[variable].name, naming, _FORMS[place])
        case Aggregation(function, variable, column, running=running):
            return f"{function}({_member(variable, column, naming, '[..i-1]' if running else '')})"
        case Binding(variable, column):
            return _member(variable, column, naming)
        case Operation():
            return _operation(bound, naming)
    raise TypeError(f"no rule renders {type(bound).__name__}")


def _member(variable: int, column: int | None, naming: Naming, span: str = "") -> str:
    name = naming.variables[variable].name + span
    return name if column is None else _column(column, name, naming)


def _column(column: int, variable: str, naming: Naming, form: str = "{}") -> str:
    width = len(naming.schema.attributes)
    if column < width:
        return form.format(f"{variable}.{naming.schema.names[column]}")
    computed = naming.computed[column - width]
    assert isinstance(computed, ComputedColumn), computed
    arguments = (_column(computed.column, variable, naming, form), *(render(constant, naming) for constant in computed.constants))
    return f"{computed.function}({', '.join(arguments)})"


def _operation(bound: Operation, naming: Naming) -> str:
    if bound.name in INFIX:
        symbol, strength = INFIX[bound.name]
        first, *rest = bound.arguments
        return f" {symbol} ".join([_enclosed(first, strength, naming), *(_enclosed(each, strength + 1, naming) for each in rest)])
    if bound.name == "case":
        return _case(bound, naming)
    first = bound.arguments[0]
    others = [render(argument, naming) for argument in bound.arguments[1:]]
    match bound.name:
        case "not":
            return f"NOT {_enclosed(first, _NOT, naming)}"
        case "neg":
            return f"-{_enclosed(first, _TIGHTEST, naming)}"
        case "is_null":
            return f"{_enclosed(first, _POSTFIX + 1, naming)} IS NULL"
        case "like":
            return f"{_enclosed(first, _POSTFIX + 1, naming)} LIKE {others[0]}"
        case "in":
            return f"{_enclosed(first, _POSTFIX + 1, naming)} IN ({', '.join(others)})"
        case "cast":
            return f"CAST({render(first, naming)} AS {bound.type})"
    return f"{bound.name}({', '.join([render(first, naming), *others])})"


def _case(bound: Operation, naming: Naming) -> str:
    conditions, (*values, otherwise) = split_case(bound)
    pairs = zip(conditions, values, strict=True)
    branches = "".join(f" WHEN {render(condition, naming)} THEN {render(value, naming)}" for condition, value in pairs)
    return f"CASE{branches} ELSE {render(otherwise, naming)} END"


def _enclosed(bound: Bound, strength: int, naming: Naming) -> str:
    text = render(bound, naming)
    return text if _strength(bound) >= strength else f"({text})"


def _strength(bound: Bound) -> int:
    if not isinstance(bound, Operation):
        return _TIGHTEST
    if bound.name in INFIX:
        return INFIX[bound.name][1]
    return {"not": _NOT, "is_null": _POSTFIX, "like": _POSTFIX, "in": _POSTFIX}.get(bound.name, _TIGHTEST)


def _constant(value: int | float | bool | str | None, type: DataType) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case float():
            return repr(value)
    match type.kind:
        case Kind.DECIMAL:
            return str(Decimal(value).scaleb(-type.scale))
        case Kind.DURATION:
            return f"{value} {'seconds' if type.unit == 's' else type.unit}"
        case Kind.DATE:
            return _instant(value, SECONDS_PER_DAY, 1, "DATE '%Y-%m-%d'")
        case Kind.TIMESTAMP:
            return _instant(value, 1, TICKS_PER_SECOND[type.unit], f"TIMESTAMP '%Y-%m-%d %H:%M:%S{{}}{'Z' if type.zone else ''}'")
    return str(value)


def _instant(ticks: int, seconds_per_tick: int, ticks_per_second: int, form: str) -> str:
    seconds, rest = divmod(ticks * seconds_per_tick, ticks_per_second)
    width = len(str(ticks_per_second)) - 1
    fraction = f".{rest:0{width}}".rstrip("0") if rest else ""
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return str(ticks)
    return moment.strftime(form).format(fraction)
