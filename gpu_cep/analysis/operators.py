"""Bind arithmetic and comparisons: check the operands, and give the result its type.

A fault is recorded in the scope, and NULL stands in its place.
"""

from __future__ import annotations

import operator as python_operator
from collections.abc import Sequence
from decimal import Context, Decimal

from gpu_cep.analysis.bound_expressions import Bound, Constant, Operation
from gpu_cep.analysis.cases import apply_to_branches, is_null
from gpu_cep.analysis.coercion import (
    FAULTY,
    INSTANT,
    MAX_DIGITS,
    NUMERIC,
    cast,
    cast_all,
    common_type,
    digits,
    finer,
    is_fraction,
    is_written_null,
    join,
    units_in_one,
)
from gpu_cep.analysis.hints import Written, comparison_hint, shift_hint
from gpu_cep.analysis.literals import INT32_MAX, INT64_MAX, INT64_MIN
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import BOOLEAN, FLOAT, NULL, DataType, Kind, decimal, duration, timestamp
from gpu_cep.lang.ast import Span

COMPARISONS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
# Constants have at most 1,000 digits.
_EXACT = Context(prec=1_100)
# The types that are ticks of the unit in which both operands meet.
TICKS = frozenset({Kind.TIMESTAMP, Kind.DURATION})
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}


def operation(name: str, arguments: tuple[Bound, ...], type: DataType, scope: Scope, span: Span | None) -> Bound:
    """Return an operation; record a fault if a constant, or a decimal at the scale of another one, does not fit its machine type."""
    for argument in arguments:
        if isinstance(argument, Constant) and not fits(argument.value):
            refuse_range(argument, scope, span)
            return FAULTY
        if isinstance(argument, Operation) and argument.name == "cast" and not fits(_units_in_one_cast(argument)):
            _refuse_scale(argument, scope, span)
            return FAULTY
    scales = [each.scale for each in (type, *(argument.type for argument in arguments))]
    if max(scales) > MAX_DIGITS:
        scope.faults.refuse(f"a decimal of scale {max(scales)}", f"decimals up to {MAX_DIGITS} digits are exact", span)
        return FAULTY
    return Operation(name, arguments, type)


def fits(value: object) -> bool:
    """Return False if a constant's value is a whole number beyond 64 bits."""
    return not isinstance(value, int) or INT64_MIN <= value <= INT64_MAX


def refuse_range(constant: Constant, scope: Scope, span: Span | None) -> None:
    """Record that a constant has no place in 64 bits; a number is shown as it is written, a time in ticks."""
    assert isinstance(constant.value, int), "only whole numbers and ticks are beyond 64 bits"
    written = f"{Decimal(constant.value).scaleb(-constant.type.scale, _EXACT).normalize(_EXACT):f}"
    hint = f"write it as a float: {written}e0" if constant.type.kind in NUMERIC else None
    scope.faults.error(f"the constant {written} is out of range: {constant.type} has 64 bits", span, hint)


def _units_in_one_cast(cast: Operation) -> int:
    """Return by how much a cast multiplies."""
    return units_in_one(cast.arguments[0].type, cast.type)


def _refuse_scale(cast: Operation, scope: Scope, span: Span | None) -> None:
    """Record that no value of a decimal but 0 has a place in 64 bits at the scale to which it is cast."""
    (value,) = cast.arguments
    construct = f"{describe(value)} beside a decimal with {cast.type.scale} digits behind the point"
    scope.faults.refuse(construct, "64 bits do not hold both exactly: 0e0 + v.attr is a float, before an aggregate cast the column", span)


def compare(name: str, left: Bound, right: Bound, scope: Scope, span: Span | None, written: Written | None = None) -> Bound:
    """Return the comparison `name` of both operands, cast to the type in which they meet; hints show them as `written`."""
    meeting = common_type((left, right))
    if meeting is None:
        scope.faults.error(f"cannot compare {describe(left)} with {describe(right)}", span, comparison_hint(name, left, right, written))
        return FAULTY
    return apply_to_branches(left, lambda one: apply_to_branches(right, lambda other: _compare(name, one, other, meeting, scope, span)))


def _compare(name: str, left: Bound, right: Bound, meeting: DataType, scope: Scope, span: Span | None) -> Bound:
    if meeting.kind is Kind.STRING and isinstance(left, Constant) and isinstance(right, Constant):
        return _compare_texts(name, left, right)
    if Kind.NULL in (left.type.kind, right.type.kind):
        # a comparison with NULL is NULL, and kernels cannot read a text constant: NULL takes its place
        left, right = (Constant(None, meeting) if isinstance(side, Constant) else side for side in (left, right))
    for comparison, value, other in ((name, left, right), (MIRRORED[name], right, left)):
        if isinstance(value, Constant) or units_in_one(value.type, meeting) == 1:
            continue
        if isinstance(other, Constant):
            return _compare_in_own_unit(comparison, value, other, meeting, scope, span)
        if meeting.kind in TICKS and _reaches_beyond(value.type, meeting):
            return _compare_with_finer_time(comparison, value, other, meeting, scope, span)
    left, right = cast_all((left, right), meeting)
    if meeting.kind in TICKS:
        if isinstance(right, Constant) and not fits(right.value):
            return _compare_with_far_time(name, left, right)
        if isinstance(left, Constant) and not fits(left.value):
            return _compare_with_far_time(MIRRORED[name], right, left)
    return operation(name, (left, right), BOOLEAN, scope, span)


def _compare_in_own_unit(name: str, value: Bound, finer: Constant, meeting: DataType, scope: Scope, span: Span | None) -> Bound:
    """Return the comparison with a constant of a finer unit; the value is not cast to that, since it might overflow."""
    exact = cast(finer, meeting)
    assert isinstance(exact, Constant), "constants are cast at once"
    assert isinstance(exact.value, int), "numbers and times of a unit are whole"
    whole, rest = divmod(exact.value, units_in_one(value.type, meeting))
    if rest and name in ("eq", "ne"):
        return unless_null(value, name == "ne")
    # what is below a constant that lies between two values is at most the lower one of these
    rounded = {"lt": "le", "ge": "gt"}.get(name, name) if rest else name
    return _compare(rounded, value, Constant(whole, value.type), value.type, scope, span)


def _compare_with_far_time(name: str, value: Bound, far: Constant) -> Bound:
    """Return the comparison with a time or duration that no value reaches: a unit that is fine, such as ns, tells fewer years apart."""
    assert isinstance(far.value, int), "ticks are integers"
    return unless_null(value, getattr(python_operator, name)(0, far.value))


def _compare_with_finer_time(name: str, value: Bound, finer: Bound, meeting: DataType, scope: Scope, span: Span | None) -> Bound:
    """Return the comparison with a time or duration of a finer unit; a value that has no place in that unit is beyond any other."""
    most = INT64_MAX // units_in_one(value.type, meeting)
    is_late, is_early = (Operation(side, (value, Constant(end, value.type)), BOOLEAN) for side, end in (("gt", most), ("lt", -most)))
    late, early = (unless_null(finer, getattr(python_operator, name)(side, 0)) for side in (1, -1))
    near = operation(name, cast_all((value, finer), meeting), BOOLEAN, scope, span)
    return Operation("case", (is_late, is_early, late, early, near), BOOLEAN)


def _reaches_beyond(type: DataType, finer: DataType) -> bool:
    """Return whether some times or durations of a type have no place in a type of a finer unit; days have 32 bits."""
    most = INT32_MAX if type.kind is Kind.DATE else INT64_MAX
    return most * units_in_one(type, finer) > INT64_MAX


def unless_null(value: Bound, truth: bool) -> Bound:
    """Return a truth that does not depend on `value`, but for NULL where that is NULL."""
    return Operation("case", (is_null(value), Constant(None, BOOLEAN), Constant(truth, BOOLEAN)), BOOLEAN)


def negative(operand: Bound, scope: Scope, span: Span | None) -> Bound:
    """Return ``-operand``; of a constant, the negated constant."""
    if operand.type.kind not in NUMERIC | {Kind.DURATION, Kind.NULL}:
        scope.faults.error(f"cannot apply - to {describe(operand)}", span)
        return FAULTY
    if isinstance(operand, Constant):
        return operand if operand.value is None else Constant(-operand.value, operand.type)  # type: ignore[operator]
    return operation("neg", (operand,), operand.type, scope, span)


def arithmetic(operator: str, left: Bound, right: Bound, scope: Scope, span: Span | None, written: Written | None = None) -> Bound:
    """Return ``left operator right`` over numbers, points in time and durations; hints show the operands as `written`."""
    kinds = {left.type.kind, right.type.kind}
    if kinds <= NUMERIC | {Kind.NULL} and kinds & NUMERIC:
        return _numbers(operator, left, right, scope, span)
    if Kind.NULL in kinds:
        return null_of((left, right))
    return _times(operator, left, right, scope, span, written)


def null_of(operands: Sequence[Bound]) -> Bound:
    """Return NULL for an operation on `operands`, one of which is NULL.

    It speaks of the same variables as they do, so that branches without these drop its condition.
    """
    null = next(operand for operand in operands if operand.type.kind is Kind.NULL)
    for value in operands:
        if value is not null and not isinstance(value, Constant):
            null = Operation("case", (apply_to_branches(value, is_null), null, Constant(None, NULL)), NULL)
    return null


def without_value(arguments: Sequence[Bound]) -> Bound | None:
    """Return what stands for a call that has no value; None if it may have one.

    That is FAULTY if an argument is, and NULL if the query makes an argument NULL.
    """
    if FAULTY in arguments:
        return FAULTY
    return null_of(arguments) if any(map(is_written_null, arguments)) else None


def describe(bound: Bound) -> str:
    """Return the name of the type of `bound` for messages."""
    return "number" if is_fraction(bound) else str(bound.type)


def _compare_texts(name: str, left: Constant, right: Constant) -> Constant:
    """Return the result of comparing two text constants; kernels know the texts of columns only."""
    if left.value is None or right.value is None:
        return Constant(None, BOOLEAN)
    return Constant(bool(getattr(python_operator, name)(left.value, right.value)), BOOLEAN)


def _numbers(operator: str, left: Bound, right: Bound, scope: Scope, span: Span | None) -> Bound:
    meeting = FLOAT if operator == "/" else common_type((left, right))
    assert meeting is not None, "all numbers meet"
    if meeting.kind is Kind.DECIMAL and operator == "*":
        return _decimal_product(left, right, scope, span)
    result = meeting
    if meeting.kind is Kind.DECIMAL and operator in "+-":
        result = decimal(min(MAX_DIGITS, meeting.precision + 1), meeting.scale)
    return operation(ARITHMETIC[operator], cast_all((left, right), meeting), result, scope, span)


def _decimal_product(left: Bound, right: Bound, scope: Scope, span: Span | None) -> Bound:
    factors = tuple(cast(factor, digits(factor.type)) for factor in (left, right))
    precision, scale = (sum(values) for values in zip(*((each.type.precision, each.type.scale) for each in factors), strict=True))
    return operation("mul", factors, decimal(min(MAX_DIGITS, precision), scale), scope, span)


def _times(operator: str, left: Bound, right: Bound, scope: Scope, span: Span | None, written: Written | None) -> Bound:
    match operator, left.type.kind, right.type.kind:
        case "-", (Kind.DATE | Kind.TIMESTAMP), (Kind.DATE | Kind.TIMESTAMP):
            return _difference_of_times(left, right, scope, span)
        case (("+" | "-"), (Kind.DATE | Kind.TIMESTAMP | Kind.DURATION), Kind.DURATION):
            return _shift_time(operator, left, right, scope, span)
        case "+", Kind.DURATION, (Kind.DATE | Kind.TIMESTAMP):
            return _shift_time(operator, right, left, scope, span)
        case ("*", Kind.DURATION, Kind.INTEGER) | ("*", Kind.INTEGER, Kind.DURATION):
            return operation("mul", (left, right), left.type if left.type.kind is Kind.DURATION else right.type, scope, span)
        case "/", Kind.DURATION, Kind.DURATION:
            unit = duration(finer(left.type.unit, right.type.unit))
            return operation("div", cast_all(cast_all((left, right), unit), FLOAT), FLOAT, scope, span)
        case (("*" | "/"), _, _) if _scales_duration(left.type.kind, right.type.kind):
            construct = f"{describe(left)} {operator} {describe(right)}"
            scope.faults.refuse(construct, "supported are duration * integer and duration / duration", span)
            return FAULTY
    hint = shift_hint(operator, left, right, written)
    scope.faults.error(f"cannot apply {operator} to {describe(left)} and {describe(right)}", span, hint)
    return FAULTY


def _scales_duration(left: Kind, right: Kind) -> bool:
    return (left is Kind.DURATION and right in NUMERIC) or (left in NUMERIC and right is Kind.DURATION)


def _difference_of_times(left: Bound, right: Bound, scope: Scope, span: Span | None) -> Bound:
    meeting = join(left.type, right.type)
    if meeting is None:
        scope.faults.error(f"cannot subtract {describe(right)} from {describe(left)}: only one of them has a zone", span)
        return FAULTY
    if meeting.kind is Kind.DATE:
        meeting = timestamp("s")
    return operation("sub", cast_all((left, right), meeting), duration(meeting.unit), scope, span)


def _shift_time(operator: str, left: Bound, by: Bound, scope: Scope, span: Span | None) -> Bound:
    unit = by.type.unit if left.type.kind is Kind.DATE else finer(left.type.unit, by.type.unit)
    result = timestamp(unit, left.type.zone) if left.type.kind in INSTANT else duration(unit)
    return operation(ARITHMETIC[operator], (cast(left, result), cast(by, duration(unit))), result, scope, span)
