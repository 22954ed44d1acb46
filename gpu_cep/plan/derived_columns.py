"""Turn sums, differences and products of one event's numbers into columns of the bank.

``c.x > 2 * a.x`` then compares two columns. Kernels compare columns many times as fast as they run
a program. Only floats are computed ahead: they cannot fail for an event that no condition reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpu_cep.analysis.bound_expressions import Bound, Constant, Field, Operation, Place
from gpu_cep.analysis.types import Kind
from gpu_cep.plan.programs import is_float

_COMPUTED = {"add", "sub", "mul", "cast"}


@dataclass(slots=True)
class DerivedColumns:
    """At most `room` expressions that are computed ahead for each event, by number; each reads variable 0.

    A field with column −1 − i reads expression i.
    """

    room: int
    numbers: dict[Bound, int] = field(default_factory=dict)

    def put_fields(self, expression: Bound) -> Bound:
        """Return the expression with a field in place of each part that is computed ahead, as far as there is room."""
        if not isinstance(expression, Operation):
            return expression
        event = _event_of(expression)
        if event is None:
            return replace(expression, arguments=tuple(map(self.put_fields, expression.arguments)))
        plain = _of_variable_0(expression)
        if plain not in self.numbers and len(self.numbers) == self.room:
            return expression
        number = self.numbers.setdefault(plain, len(self.numbers))
        return Field(event.variable, -1 - number, expression.type, event.place)


def _event_of(expression: Operation) -> Field | None:
    """Return a field of the one event that the expression reads; None if it is not computed ahead."""
    if expression.name not in _COMPUTED or not is_float(expression.type):
        return None
    fields = [_read(argument, expression) for argument in expression.arguments]
    if None in fields:
        return None
    found = [each for own in fields if own is not None for each in own]
    alike = {(each.variable, each.place) for each in found}
    return found[0] if len(alike) == 1 else None


def _read(argument: Bound, within: Operation) -> Sequence[Field] | None:
    """Return the fields that an argument reads; None if it is nothing that is computed ahead."""
    match argument:
        case Constant():
            return None if argument.value is None else ()
        case Field() if argument.type.kind in (Kind.INTEGER, Kind.FLOAT) and not argument.type.length:
            return (argument,)
        case Operation() if within.name != "cast":
            own = _event_of(argument)
            return None if own is None else (own,)
    return None


def _of_variable_0(expression: Bound) -> Bound:
    """Return the expression as it reads the only event of variable 0."""
    match expression:
        case Operation(arguments=arguments):
            return replace(expression, arguments=tuple(map(_of_variable_0, arguments)))
        case Field():
            return replace(expression, variable=0, place=Place.EACH)
    return expression
