"""Turn conditions that read the match so far into conditions on rows at fixed distances, where they say the same on every way.

So ``LAST(D.x, 1)`` of `D+` is the row before the current one, or none: in the first row of `D`. A condition that asks for
both, as Flink's SQL must, for which there is no PREV, says the same in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_cep.analysis.bound_expressions import Bound, Constant, Field, Operation
from gpu_cep.analysis.types import BOOLEAN
from gpu_cep.plan.programs import leaves
from gpu_cep.plan.row_patterns.automaton import RowAutomaton
from gpu_cep.plan.row_patterns.distances import NO_ROW, UNLIKE, rows_back
from gpu_cep.plan.row_patterns.places import STRICT, Placement, RowPlace

# By variable, the placed conditions that its rows satisfy.
Satisfied = Mapping[int, Sequence[Bound]]


def lifted(condition: Bound, variable: int, automaton: RowAutomaton, placement: Placement, satisfied: Satisfied) -> Bound | None:
    """Return a placed condition of a variable as one on rows at fixed distances; None if it is none.

    New places are added to the placement, by which `satisfied` are placed, too.
    """
    fields = [leaf for leaf in leaves(condition) if isinstance(leaf, Field)]
    if not fields or len(fields) < len(leaves(condition)) or any(field.type.length for field in fields):
        return None
    numbers = tuple(dict.fromkeys(field.variable for field in fields))
    ways = rows_back(automaton, [placement.places[number] for number in numbers], variable)
    never_null = _never_null(placement, satisfied)
    found = {_Way(dict(zip(numbers, way, strict=True)), placement, never_null).truth(condition) for way in ways}
    only = found.pop() if len(found) == 1 else None
    return only if only is not None and _is_at_fixed_distances(only, placement) else None


def _never_null(placement: Placement, satisfied: Satisfied) -> Callable[[Field], bool]:
    """Return whether a field has a value wherever its place leads to a row that was mapped before the current one."""

    def never_null(field: Field) -> bool:
        members = placement.places[field.variable].members
        if members is None or placement.places[field.variable].distance:
            return False
        return all(any(_rejects_null(each, field.column, v, placement) for each in satisfied.get(v, ())) for v in members)

    return never_null


def _rejects_null(condition: Bound, column: int, variable: int, placement: Placement) -> bool:
    """Return whether a condition of a variable is not true where the column of the current row is NULL."""
    if isinstance(condition, Operation) and condition.name in ("and", "or"):
        rejecting = (_rejects_null(each, column, variable, placement) for each in condition.arguments)
        return any(rejecting) if condition.name == "and" else all(rejecting)
    return _is_null_with(condition, column, variable, placement)


def _is_null_with(expression: Bound, column: int, variable: int, placement: Placement) -> bool:
    """Return whether an expression is NULL where the column of the current row is."""
    match expression:
        case Field(column=read):
            return read == column and _is_current(placement.places[expression.variable], variable)
        case Operation(name=name, arguments=arguments) if name in STRICT:
            return any(_is_null_with(each, column, variable, placement) for each in arguments)
    return False


def _is_current(place: RowPlace, variable: int) -> bool:
    """Return whether a place is the current row, where that is mapped to a variable."""
    covers = place.members is None or variable in place.members
    return covers and place == RowPlace(place.members, final=place.final)


def _is_at_fixed_distances(condition: Bound, placement: Placement) -> bool:
    """Return whether a condition reads rows, and all of them by their distance alone, and no NULL is left in it."""
    places = [placement.places[leaf.variable] for leaf in leaves(condition) if isinstance(leaf, Field)]
    by_distance = all(place == RowPlace(None, distance=place.distance) for place in places)
    return bool(places) and by_distance and not any(each.value is None for each in _constants(condition))


def _constants(expression: Bound) -> Iterable[Constant]:
    match expression:
        case Constant():
            yield expression
        case Operation(arguments=arguments):
            for each in arguments:
                yield from _constants(each)


@dataclass(frozen=True, slots=True)
class _Way:
    """Where the rows that a condition reads lie on one way to its row.

    `back`: by place, how many rows before the current one; NO_ROW, or UNLIKE. Each place's own distance comes to that.
    `never_null`: whether a field has a value in rows that were mapped before.
    """

    back: Mapping[int, int]
    placement: Placement
    never_null: Callable[[Field], bool]

    def truth(self, condition: Bound) -> Bound:
        """Return a condition that is true in the same rows; what is NULL is false, and what decides nothing is left out."""
        match condition:
            case Operation(name="and" | "or" as name, arguments=arguments):
                neutral = Constant(name == "and", BOOLEAN)
                operands = tuple(dict.fromkeys(truth for truth in map(self.truth, arguments) if truth != neutral))
                decisive = Constant(name == "or", BOOLEAN)
                if decisive in operands or not operands:
                    return decisive if operands else neutral
                return operands[0] if len(operands) == 1 else replace(condition, arguments=operands)
        found = self._value(condition)
        return Constant(bool(found.value), BOOLEAN) if isinstance(found, Constant) else found

    def _value(self, expression: Bound) -> Bound:
        """Return an expression with the same value."""
        match expression:
            case Field():
                return self._read(expression)
            case Operation(name="is_null", arguments=(argument,)):
                return self._is_null(expression, argument)
            case Operation(name=name, arguments=arguments):
                values = tuple(map(self._value, arguments))
                if name in STRICT and any(isinstance(each, Constant) and each.value is None for each in values):
                    return Constant(None, expression.type)
                if name == "not" and isinstance(values[0], Constant):
                    return Constant(not values[0].value, BOOLEAN)
                return replace(expression, arguments=values)
        return expression

    def _read(self, field: Field) -> Bound:
        place, back = self.placement.places[field.variable], self.back[field.variable]
        if back == NO_ROW:
            return Constant(None, field.type)
        return field if back == UNLIKE else self.placement.read(field.column, RowPlace(None, distance=place.distance - back), field.type)

    def _is_null(self, expression: Operation, argument: Bound) -> Bound:
        value = self._value(argument)
        if isinstance(value, Constant):
            return Constant(value.value is None, BOOLEAN)
        if isinstance(argument, Field) and self.back[argument.variable] and self.never_null(argument):
            return Constant(False, BOOLEAN)
        return replace(expression, arguments=(value,))
