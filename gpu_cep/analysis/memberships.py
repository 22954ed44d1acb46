"""Bind ``IN``: constants of one type are one operation, a long list of them is a column that the host computes once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Field, Operation
from gpu_cep.analysis.calls import computed_once
from gpu_cep.analysis.coercion import FAULTY, cast, common_type, units_in_one
from gpu_cep.analysis.computed_columns import ComputedMembership
from gpu_cep.analysis.operators import TICKS, compare, describe, fits, operation, unless_null
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import BOOLEAN, DataType, Kind
from gpu_cep.lang.ast import Expression, In, Span

MOST_COMPARED = 100
"""The most constants that programs compare one by one; for one event a column answers longer lists."""

MOST_IN_PROGRAMS = 1_000
"""The most constants of an IN whose operand reads more than one event, since programs compare them one by one."""

Items = list[tuple[Constant, Expression]]


def membership(node: In, value: Bound, items: Sequence[Bound], scope: Scope) -> Bound:
    """Return ``value IN (items)``: a disjunction of one operation for the constants of each type, and of comparisons."""
    if value.type.kind is Kind.NULL:
        # NULL, whatever the items are; it speaks of their variables
        read = [item for item in items if not isinstance(item, Constant)] or items[:1]
        found = [compare("eq", value, item, scope, node.span) for item in read]
        return found[0] if len(found) == 1 else Operation("or", tuple(found), BOOLEAN)
    found = [_among(node, value, meeting, constants, scope) for meeting, constants in _by_meeting(node, value, items, scope).items()]
    found += [compare("eq", value, item, scope, node.span) for item in items if not isinstance(item, Constant)]
    return found[0] if len(found) == 1 else Operation("or", tuple(found) or (FAULTY,), BOOLEAN)


def _by_meeting(node: In, value: Bound, items: Sequence[Bound], scope: Scope) -> dict[DataType, Items]:
    """Return the constants, with what is written, by the type in which they meet `value`.

    Record a fault for the first of each type that meets it in none.
    """
    found: dict[DataType, Items] = {}
    strange = set()
    pairs = ((item, written) for item, written in zip(items, node.items, strict=True) if isinstance(item, Constant))
    for own, run in groupby(pairs, key=lambda pair: pair[0].type):
        constants = list(run)
        meeting = common_type((value, constants[0][0]))
        if meeting is not None:
            found.setdefault(meeting, []).extend(constants)
        elif own not in strange:
            strange.add(own)
            compare("eq", value, constants[0][0], scope, _place(node, constants[0][1]))
    return found


def _place(node: In, written: Expression) -> Span | None:
    return written.span or node.span


def _among(node: In, value: Bound, meeting: DataType, constants: Items, scope: Scope) -> Bound:
    """Return the test whether `value` is one of `constants`, compared in the type `meeting`."""
    if len(constants) == 1 and not isinstance(value, Constant):
        return compare("eq", value, constants[0][0], scope, _place(node, constants[0][1]))
    if units_in_one(value.type, meeting) > 1 and not isinstance(value, Constant):
        return _among(node, value, value.type, list(_in_unit_of(value.type, meeting, constants)), scope)
    values = [_value(constant, meeting) for constant, _ in constants]
    if meeting.kind in TICKS:
        # no value of the unit in which they meet reaches the others
        values = [each for each in values if fits(each)]
    strange = next((number for number, each in enumerate(values) if not fits(each)), None)
    if strange is not None:
        return operation("in", (Constant(values[strange], meeting),), BOOLEAN, scope, _place(node, constants[strange][1]))
    if not values:
        return unless_null(value, False)
    listed = Constants(tuple(dict.fromkeys(values)), meeting)
    if isinstance(value, Constant):
        return _fold(_value(value, meeting), listed)
    found = operation("in", (cast(value, meeting), listed), BOOLEAN, scope, node.span)
    return _looked_up(node, found, listed, scope) if isinstance(found, Operation) and len(listed.values) > MOST_COMPARED else found


def _in_unit_of(type: DataType, meeting: DataType, constants: Items) -> Iterator[tuple[Constant, Expression]]:
    """Yield those of `constants`, which `meeting` holds, that are values of `type`, whose unit is coarser."""
    for constant, written in constants:
        value = _value(constant, meeting)
        assert isinstance(value, int), "numbers and times of a unit are whole"
        whole, rest = divmod(value, units_in_one(type, meeting))
        if not rest:
            yield Constant(whole, type), written


def _value(constant: Constant, meeting: DataType) -> int | float | bool | str | None:
    converted = constant if constant.type is meeting else cast(constant, meeting)
    assert isinstance(converted, Constant), "constants are cast at once"
    return converted.value


def _fold(value: int | float | bool | str | None, listed: Constants) -> Constant:
    """Return the truth of a constant's membership; NULL is in no list, and not outside of one either."""
    unknown = value is None or (value not in listed.values and None in listed.values)
    return Constant(None if unknown else value in listed.values, BOOLEAN)


def _looked_up(node: In, found: Operation, listed: Constants, scope: Scope) -> Bound:
    """Return a test of many constants as a computed column, if it reads one event; otherwise as it is."""
    subject = found.arguments[0]
    field = computed_once(subject, node.operand, scope) if isinstance(subject, Operation) else subject
    if isinstance(field, Field):
        return replace(field, column=scope.compute(ComputedMembership(field.column, listed)), type=BOOLEAN)
    if subject.type.kind is not Kind.STRING and len(listed.values) > MOST_IN_PROGRAMS:
        construct = f"IN of {len(listed.values):,} constants behind {describe(subject)} of several events"
        supported = f"behind an attribute of one event any number is; otherwise at most {MOST_IN_PROGRAMS:,} are"
        scope.faults.refuse(construct, supported, node.span)
        return FAULTY
    return found
