"""Turn the filters of a plan of Spark's into an Arrow expression that keeps the same rows."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_cep_spark.files.places import NoScanError
from gpu_cep_spark.jvm import items

if TYPE_CHECKING:
    from pyarrow.dataset import Expression

_COMPARISONS = {
    "EqualTo": operator.eq,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
}
_INTEGERS = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}


def arrow_filter(conditions: Sequence[Any], known: Mapping[int, str]) -> tuple[Expression, tuple[str, ...]]:
    """Return an Arrow expression that is true where all conditions of Spark's are, and the columns that it reads.

    Neither floats are compared, since Spark has an order of its own for NaN, nor text under a collation.

    Raises
    ------
    NoScanError
        A condition has no surely equal expression.
    """
    reader = _Reader(known)
    found = reduce(operator.and_, [reader.condition(each) for each in conditions])
    return found, tuple(dict.fromkeys(reader.read))


class _Reader:
    """Reads Spark's conditions; `read` are the columns met so far."""

    def __init__(self, known: Mapping[int, str]) -> None:
        self._known = known
        self.read: list[str] = []

    def condition(self, expression: Any) -> Any:
        """Return a condition of Spark's as an Arrow expression."""
        kind = expression.getClass().getSimpleName()
        parts = list(items(expression.children()))
        match kind:
            case "And" | "Or":
                sides = [self.condition(part) for part in parts]
                return operator.and_(*sides) if kind == "And" else operator.or_(*sides)
            case "Not":
                return ~self.condition(parts[0])
            case "IsNull" | "IsNotNull":
                column = self._column(parts[0])
                return column.is_null() if kind == "IsNull" else column.is_valid()
            case "In":
                return self._among(parts)
            case "AttributeReference" if expression.dataType().simpleString() == "boolean":
                return self._column(expression)
        if kind not in _COMPARISONS:
            raise NoScanError(f"its filter has {expression.prettyName()}, which only Spark computes as Spark does")
        return _COMPARISONS[kind](*(self._operand(part) for part in parts))

    def _among(self, parts: Sequence[Any]) -> Any:
        column, values = self._operand(parts[0]), [_literal(part) for part in parts[1:]]
        # where NULL is listed, Spark's IN is NULL rather than false, which a NOT would tell apart
        if any(not value.is_valid for value in values):
            raise NoScanError("its filter has NULL in a list")
        return reduce(operator.or_, [column == value for value in values])

    def _operand(self, expression: Any) -> Any:
        if expression.getClass().getSimpleName() == "Literal":
            from pyarrow.dataset import scalar

            return scalar(_literal(expression))
        kind = expression.dataType().simpleString()
        if kind in ("float", "double"):
            raise NoScanError("its filter compares floats, of which Spark has an order of its own")
        if kind.startswith("string collate"):
            raise NoScanError("its filter compares text under a collation, which only Spark does")
        return self._column(expression)

    def _column(self, expression: Any) -> Any:
        from pyarrow.dataset import field

        name = self._known.get(expression.exprId().id()) if expression.getClass().getSimpleName() == "AttributeReference" else None
        if name is None:
            raise NoScanError(f"its filter has {expression.prettyName()}, which only Spark computes as Spark does")
        self.read.append(name)
        return field(name)


def _literal(expression: Any) -> pa.Scalar:
    """Return a literal of Spark's as a scalar."""
    if expression.getClass().getSimpleName() != "Literal":
        raise NoScanError(f"its filter has {expression.prettyName()}, which only Spark computes as Spark does")
    kind, value = expression.dataType().simpleString(), expression.value()
    if value is None:
        raise NoScanError("its filter has NULL")
    if kind in _INTEGERS:
        return pa.scalar(int(value), _INTEGERS[kind])
    if kind.startswith("decimal"):
        precision, scale = map(int, kind.removeprefix("decimal(").removesuffix(")").split(","))
        return pa.scalar(Decimal(str(value)), pa.decimal128(precision, scale))
    match kind:
        case "string":
            return pa.scalar(str(value.toString()) if hasattr(value, "toString") else str(value), pa.string())
        case "boolean":
            return pa.scalar(bool(value), pa.bool_())
        case "date":
            return pa.scalar(int(value), pa.int32()).cast(pa.date32())
        case "timestamp" | "timestamp_ntz":
            return pa.scalar(int(value), pa.int64()).cast(pa.timestamp("us", tz="UTC" if kind == "timestamp" else None))
    raise NoScanError(f"its filter has a constant of type {kind}")
