"""Find the common type of operands, and cast them to it.

Casts are always explicit, so that operands have equal types afterwards. Constants are converted at
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from gpu_cep.analysis.bound_expressions import Bound, Constant, Field, Operation, split_case
from gpu_cep.analysis.literals import SECONDS_PER_DAY, approximate
from gpu_cep.analysis.types import FLOAT, INTEGER, TICKS_PER_SECOND, DataType, Kind, decimal, duration, timestamp

MAX_DIGITS = 18

NUMERIC = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL})
INSTANT = frozenset({Kind.DATE, Kind.TIMESTAMP})
# The types whose values are whole numbers of a unit.
EXACT = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.DURATION})

FAULTY = Constant(None, DataType(Kind.NULL, name="faulty"))
"""What a faulty expression is bound to: NULL meets every type, so one fault causes no others.

It equals no NULL of a query.
"""


def common_type(operands: Sequence[Bound]) -> DataType | None:
    """Return the type to which all `operands` can be cast; None if there is none.

    A literal with a fraction is a DECIMAL among decimals and a FLOAT among other numbers. NULL can be
    cast to every type.
    """
    known: list[DataType] = [operand.type for operand in operands if operand.type.kind is not Kind.NULL and not is_fraction(operand)]
    fractions = [operand.type for operand in operands if is_fraction(operand)]
    if not known:
        return FLOAT if fractions else INTEGER
    meeting = _join_all(known)
    if meeting is None or not fractions:
        return meeting
    return _join_all([meeting, *fractions]) if meeting.kind is Kind.DECIMAL else join(meeting, FLOAT)


def is_written_null(bound: Bound) -> bool:
    """Return whether the query itself makes `bound` NULL, and not the type of its column."""
    return bound.type.kind is Kind.NULL and not isinstance(bound, Field)


def is_fraction(bound: Bound) -> bool:
    """Return whether `bound` is a literal with a fraction; no other constant is a DECIMAL before casts."""
    return isinstance(bound, Constant) and bound.type.kind is Kind.DECIMAL


def join(left: DataType, right: DataType) -> DataType | None:
    """Return the common type of two types; None if there is none."""
    if left == right:
        return left
    kinds = {left.kind, right.kind}
    if kinds <= NUMERIC:
        return FLOAT if Kind.FLOAT in kinds else _join_decimals(left, right)
    if kinds <= INSTANT:
        return _join_instants(left, right)
    return duration(finer(left.unit, right.unit)) if kinds == {Kind.DURATION} else None


def finer(left: str, right: str) -> str:
    """Return the finer of two units of time."""
    return max(left, right, key=TICKS_PER_SECOND.__getitem__)


def cast(bound: Bound, target: DataType) -> Bound:
    """Return `bound` as a `target`: as it is, as a converted constant, or as a cast.

    If the machine representation stays the same, or `bound` is NULL, only its type is replaced;
    that of a CASE which is NULL in its branches.
    """
    if isinstance(bound, Constant):
        return bound if bound.type == target else Constant(_convert(bound, target), target)
    if _same_machine_type(bound.type, target):
        return replace(bound, type=target)
    if isinstance(bound, Operation) and bound.name == "case" and is_written_null(bound):
        # tests of a text go into the branches of a CASE, not into a cast
        conditions, values = split_case(bound)
        return Operation("case", (*conditions, *cast_all(values, target)), target)
    return Operation("cast", (bound,), target)


def cast_all(operands: Sequence[Bound], target: DataType) -> tuple[Bound, ...]:
    """Return all operands cast to `target`."""
    return tuple(cast(operand, target) for operand in operands)


def units_in_one(source: DataType, target: DataType) -> int:
    """Return how many units of `target`, to which `source` can be cast, one of `source` has; 1 if they do not count in units."""
    if not {source.kind, target.kind} <= EXACT:
        return 1
    if {source.kind, target.kind} <= NUMERIC:
        # a scale may be negative
        return int(10 ** (target.scale - source.scale))
    return _fineness(target) // _fineness(source)


def digits(type: DataType) -> DataType:
    """Return the DECIMAL type that holds all values of an integer type; a DECIMAL type as it is."""
    return type if type.kind is Kind.DECIMAL else decimal(MAX_DIGITS, 0)


def exact_decimals(type: DataType) -> str:
    """Return which decimals are supported in place of those of a wider type, and the casts that make them."""
    narrower = f"a DECIMAL of {MAX_DIGITS} digits that holds its values," if type.scale else "BIGINT, to text if it is a key,"
    return f"decimals up to {MAX_DIGITS} digits are exact: cast it to {narrower} or to DOUBLE"


def _join_all(types: Sequence[DataType]) -> DataType | None:
    meeting: DataType | None = types[0]
    for type in types[1:]:
        meeting = None if meeting is None else join(meeting, type)
    return meeting


def _join_decimals(left: DataType, right: DataType) -> DataType:
    left, right = digits(left), digits(right)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(min(MAX_DIGITS, whole + scale), scale)


def _join_instants(left: DataType, right: DataType) -> DataType | None:
    if (left.zone is None) != (right.zone is None):
        return None
    units = [each.unit for each in (left, right) if each.kind is Kind.TIMESTAMP]
    return timestamp(reduce(finer, units), left.zone)


def _fineness(type: DataType) -> int:
    """Return how many units of a time or a duration make a day."""
    return 1 if type.kind is Kind.DATE else SECONDS_PER_DAY * TICKS_PER_SECOND[type.unit]


def _same_machine_type(source: DataType, target: DataType) -> bool:
    return source.kind is target.kind and source.unit == target.unit and source.scale == target.scale


def _convert(constant: Constant, target: DataType) -> int | float | bool | str | None:
    value, source = constant.value, constant.type
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    match target.kind:
        case Kind.FLOAT:
            return approximate(Fraction(value, 10**source.scale))
        case Kind.DECIMAL:
            return value * int(10 ** (target.scale - source.scale))
        case Kind.TIMESTAMP if source.kind is Kind.DATE:
            return value * SECONDS_PER_DAY * TICKS_PER_SECOND[target.unit]
        case Kind.TIMESTAMP | Kind.DURATION:
            return value * (TICKS_PER_SECOND[target.unit] // TICKS_PER_SECOND[source.unit])
        case _:
            return value
