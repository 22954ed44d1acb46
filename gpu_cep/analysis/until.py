"""Write UNTIL as conditions that every strategy obeys.

``b+ UNTIL (c)`` binds no event that satisfies c, and none behind such an event. So each event of b
fails c, and has seen as many events that satisfy c as the one bound before it. The host counts them
once. A negated variable of no branch labels these events, so that no filter leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from gpu_cep.analysis.bound import Condition, ConditionKind, EventVariable
from gpu_cep.analysis.bound_expressions import Bound, Field, Operation, Place
from gpu_cep.analysis.computed_columns import ComputedCount
from gpu_cep.analysis.conditions import reads
from gpu_cep.analysis.current_event import of_event
from gpu_cep.analysis.expressions import bind_condition
from gpu_cep.analysis.normalize import Primitive
from gpu_cep.analysis.renaming import with_variable
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import BOOLEAN, INTEGER
from gpu_cep.lang.ast import Expression, Span
from gpu_cep.lang.format import format_expression


@dataclass(frozen=True, slots=True)
class Until:
    """The condition that ends the variable called `variable`; the events that satisfy it have labels of their own variable."""

    variable: str
    condition: Expression
    span: Span | None


def ending_variables(found: Sequence[Primitive]) -> dict[str, Until]:
    """Return what ends quantified variables, by the name of a variable for the events that do."""
    taken = {primitive.variable.name for primitive in found}
    ends: dict[str, Until] = {}
    for primitive in found:
        name = primitive.variable.name
        if primitive.until is not None and name not in (each.variable for each in ends.values()):
            names = chain([f"end of {name}"], (f"end of {name} {number}" for number in count(2)))
            ends[next(each for each in names if each not in taken)] = Until(name, primitive.until, primitive.span)
    return ends


def end_variable(name: str) -> EventVariable:
    """Return the variable, in no branch, that stands for events at which UNTIL ends another."""
    return EventVariable(name, 1, 1, quantified=False, negated=True)


def until_conditions(ends: Mapping[str, Until], keys: tuple[int, ...], scope: Scope) -> Iterator[Condition]:
    """Yield the conditions that UNTIL stands for; all events of a stream agree on `keys`, and so do those of a match."""
    for name, until in ends.items():
        faults = scope.faults.count
        written = of_event(until.condition, name, (until.variable,), "UNTIL", scope)
        ending = bind_condition(written, replace(scope, hidden=scope.hidden - {name}))
        if scope.faults.count > faults:
            continue
        if not any(reads(ending)):
            hint = f"write what the event that ends {until.variable} looks like: UNTIL (type = 'Stop')"
            scope.faults.error(f"UNTIL ({format_expression(until.condition)}) reads no attribute", until.span, hint)
            continue
        yield from _conditions(until, ending, scope.names.index(until.variable), scope.names.index(name), keys, scope)


def _conditions(until: Until, ending: Bound, variable: int, end: int, keys: tuple[int, ...], scope: Scope) -> Iterator[Condition]:
    text = format_expression(until.condition)
    yield Condition(ending, ConditionKind.PROPERTY, (end,), text, span=until.span)
    own = with_variable(ending, end, variable)
    fails = Operation("or", (Operation("not", (own,), BOOLEAN), Operation("is_null", (own,), BOOLEAN)), BOOLEAN)
    yield Condition(fails, ConditionKind.PROPERTY, (variable,), f"{until.variable} not ({text})", span=until.span)
    read = tuple(dict.fromkeys(each.column for each in reads(ending) if each.column is not None))
    column = scope.compute(ComputedCount(with_variable(ending, end, 0), read, keys, text))
    sides = (Field(variable, column, INTEGER), Field(variable, column, INTEGER, Place.PREVIOUS))
    shown = f"{until.variable} UNTIL ({text})"
    yield Condition(Operation("eq", sides, BOOLEAN), ConditionKind.CONSECUTIVE, (variable,), shown, span=until.span)
