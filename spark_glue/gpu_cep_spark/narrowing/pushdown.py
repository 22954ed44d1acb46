"""Turn properties into DataFrame filters, so that events that can be in no match are not shuffled.

A filter keeps a superset of the events that some variable may bind, never too few. Spark compares
NaN and casts values in other ways than the engine. Its Parquet reader tells 0.0 from -0.0. A
condition is therefore pushed down only if Spark surely finds it true where the engine does.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import CharType, StringType, StructType, TimestampNTZType, VarcharType

from gpu_cep.analysis.bound import BoundQuery, ConditionKind, CountWindow
from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Field, Operation
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.ticks import EARLIEST

EXACT_INTEGERS_OF_FLOAT = 2**53  # beyond, several integers have the same float
EPOCH = dt.datetime(1970, 1, 1)

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_PLAIN = re.compile(r"\w+", re.ASCII)
TRUE_ON_EQUALITY = {"eq", "le", "ge", "in"}


def column(name: str) -> Column:
    """Return the Spark column called exactly `name`, even if that has dots or backquotes."""
    return F.col(quote(name))


def read_columns(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the columns called `names`, with text that Spark compares as the engine does.

    Spark compares text under its collation, and pads what CHAR(n) is compared with. A cast to plain
    text ends both. Where the text was plain, the cast reaches no plan.
    """
    text = {field.name for field in df.schema.fields if isinstance(field.dataType, StringType | CharType | VarcharType)}
    if all(map(_PLAIN.fullmatch, names)):
        # as text: each column that PySpark builds asks the JVM several times where in the user's code it is
        return df.selectExpr(*(f"CAST({quote(name)} AS STRING) AS {quote(name)}" if name in text else quote(name) for name in names))
    # settings of Spark's parser may take other names for regular expressions or variables
    return df.select(*(column(name).cast(StringType()).alias(name) if name in text else column(name) for name in names))


def quote(name: str) -> str:
    """Return `name` in backquotes, as SQL writes the name of a column."""
    return f"`{name.replace('`', '``')}`"


def are_told_apart(names: Sequence[str]) -> bool:
    """Return whether Spark surely tells columns of these names apart, under any setting of its parser."""
    return all(map(_PLAIN.fullmatch, names)) and len({name.lower() for name in names}) == len(names)


def event_filter(query: BoundQuery, schema: StructType, *, with_keys: bool = True) -> Column | None:
    """Return a filter that holds for every event of every match; None if no useful one is known.

    Events without a timestamp are kept, so that the engine reports them.

    Parameters
    ----------
    query
        The query, bound to the columns of `schema`.
    schema
        The schema of the DataFrame to filter, whose text is plain, as :func:`read_columns` makes it.
    with_keys
        Whether an event without a key that conditions imply is of no use. It is in no match, but it may have a timeout.
    """
    if isinstance(query.window, CountWindow):
        return None  # a count window counts the events that no variable binds, too
    bindable = _any_variable(query, schema)
    keyed = [column(schema.names[key]).isNotNull() for key in query.derived_keys if with_keys]
    conjuncts = keyed + ([] if bindable is None else [bindable])
    if not conjuncts:
        return None
    return untimed(query, schema) | _all(conjuncts)


def behind_watermark(condition: Column, time: str) -> Column:
    """Return the condition so that Spark does not let it pass the watermark, which moves with all events.

    Spark moves filters that do not read the time before the watermark. No event has the time that is read here.
    """
    return condition | (F.unix_micros(column(time)) == F.lit(EARLIEST))


def untimed(query: BoundQuery, schema: StructType) -> Column:
    """Return a condition that holds for the events whose timestamp is NULL or NaN; the columns are as for :func:`event_filter`."""
    time = column(schema.names[query.timestamp])
    return time.isNull() | F.isnan(time) if query.schema.attributes[query.timestamp].type.kind is Kind.FLOAT else time.isNull()


def _any_variable(query: BoundQuery, schema: StructType) -> Column | None:
    """Return the condition that the properties of some variable hold.

    None if a variable has no property that can be pushed down.
    """
    filters = [variable_filter(query, schema, variable) for variable in range(len(query.variables))]
    known = [each for each in filters if each is not None]
    return _any(known) if len(known) == len(filters) else None


def variable_filter(query: BoundQuery, schema: StructType, variable: int) -> Column | None:
    """Return a filter that holds for every event that a variable may bind, given by its number; None if no useful one is known."""
    properties = [c.expression for c in query.conditions if c.kind is ConditionKind.PROPERTY and c.variables == (variable,)]
    known = [each for each in (implied_filter(expression, schema) for expression in properties) if each is not None]
    return _all(known) if known else None


def implied_filter(expression: Bound, schema: StructType) -> Column | None:
    """Return a filter that is true wherever `expression` is; None if no useful one is known."""
    match expression:
        case Operation(name="and", arguments=arguments):
            known = [each for each in (implied_filter(argument, schema) for argument in arguments) if each is not None]
            return _all(known) if known else None
        case Operation(name="or", arguments=arguments):
            filters = [implied_filter(argument, schema) for argument in arguments]
            known = [each for each in filters if each is not None]
            return _any(known) if len(known) == len(filters) else None
        case Operation(name="not", arguments=(operand,)):
            return None if _reads_float(operand) else _negation_filter(operand, schema)
        case Operation(name="ne") if _reads_float(expression):
            return None
        case _:
            return _predicate(expression, schema)


def _negation_filter(operand: Bound, schema: StructType) -> Column | None:
    """Return a filter that is true wherever `operand` is false; None if none is known.

    `operand` reads no float.
    """
    match operand:
        case Operation(name="not", arguments=(inner,)):
            return implied_filter(inner, schema)
        case Operation(name="and" | "or" as name, arguments=arguments):
            dual = Operation("or" if name == "and" else "and", tuple(_not(argument) for argument in arguments), operand.type)
            return implied_filter(dual, schema)
        case Operation(name="in", arguments=(_, Constants(values=values))) if None in values:
            return None
        case _:
            predicate = _predicate(operand, schema)
            return None if predicate is None else ~predicate


def _not(operand: Bound) -> Operation:
    return Operation("not", (operand,), operand.type)


def _predicate(expression: Bound, schema: StructType) -> Column | None:
    """Return `expression` as a Spark column; None if it cannot be written as one.

    Wherever no NaN is read, it has the same value.
    """
    match expression:
        case Field():
            return _operand(expression, schema)
        case Operation(name="is_null", arguments=(Field() as field,)):
            inner = _operand(field, schema)
            return None if inner is None else inner.isNull()
        case Operation(name="like", arguments=(operand, Constant(value=str(pattern)))) if "\\" not in pattern:
            inner = _operand(operand, schema)
            return None if inner is None else inner.like(pattern)
        case Operation(name=name, arguments=(left, right)) if name in COMPARISONS:
            sides = _operands((left, right), name, schema)
            return None if sides is None else COMPARISONS[name](*sides)
        case Operation(name="in", arguments=(operand, Constants(values=values, type=data_type))):
            given = [Constant(value, data_type) for value in values if value is not None]
            sides = _operands((operand, *given), "in", schema)
            return None if sides is None or not given else sides[0].isin(*sides[1:])
        case _:
            return None


def _operands(arguments: Sequence[Bound], name: str, schema: StructType) -> list[Column] | None:
    """Return the sides of a comparison as Spark columns; None if Spark may compare them in another way."""
    if name in TRUE_ON_EQUALITY and any(_is_float_zero(argument) for argument in arguments):
        return None  # a Parquet dictionary with -0.0 does not contain 0.0
    operands = [_operand(argument, schema) for argument in arguments]
    known = [each for each in operands if each is not None]
    return known if len(known) == len(operands) and not _rounds_integers(arguments) else None


def _is_float_zero(expression: Bound) -> bool:
    return isinstance(expression, Constant) and expression.type.kind is Kind.FLOAT and expression.value == 0


def _rounds_integers(arguments: Sequence[Bound]) -> bool:
    """Return whether a comparison rounds integers to floats.

    A constant that both types hold exactly is compared without rounding.
    """
    casts = any(isinstance(each, Operation) and each.type.kind is Kind.FLOAT for each in arguments)
    return casts and not any(
        isinstance(each, Constant) and isinstance(each.value, float) and abs(each.value) < EXACT_INTEGERS_OF_FLOAT for each in arguments
    )


def _operand(expression: Bound, schema: StructType) -> Column | None:
    """Return a constant or a field as a Spark column; None if Spark has no equal value."""
    match expression:
        case Constant():
            return _literal(expression)
        case Field(column=number) if number < len(schema.fields):
            return column(schema.names[number])
        case Operation(name="cast", arguments=(Field() as field,), type=target):
            # Spark widens numbers in a comparison by itself; its casts of dates depend on the session's time zone.
            widens = (field.type.kind, target.kind) in {
                (Kind.INTEGER, Kind.FLOAT),
                (Kind.INTEGER, Kind.DECIMAL),
                (Kind.DECIMAL, Kind.DECIMAL),
            }
            return _operand(field, schema) if widens else None
        case _:
            return None


def _literal(constant: Constant) -> Column | None:
    """Return `constant` as a Spark literal, None if Python has no such value."""
    value, kind = constant.value, constant.type.kind
    if isinstance(value, bool | str | float) and kind in (Kind.BOOLEAN, Kind.STRING, Kind.FLOAT):
        return F.lit(value)
    if not isinstance(value, int):
        return None
    if kind is Kind.INTEGER:
        return F.lit(value)
    if kind is Kind.DECIMAL:
        return F.lit(Decimal(value).scaleb(-constant.type.scale))
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        return _moment(constant, value)
    return None


def _moment(constant: Constant, value: int) -> Column | None:
    """Return a date or a timestamp as a Spark literal; None if Spark has no equal value."""
    try:
        if constant.type.kind is Kind.DATE:
            return F.lit((EPOCH + dt.timedelta(days=value)).date())
        if constant.type.unit != "us":
            return None  # Spark's own unit is the only one without a cast
        moment = EPOCH + dt.timedelta(microseconds=value)
    except OverflowError:
        return None
    return F.timestamp_micros(F.lit(value)) if constant.type.zone else F.lit(moment.isoformat()).cast(TimestampNTZType())


def _reads_float(expression: Bound) -> bool:
    if isinstance(expression, Operation):
        return any(_reads_float(argument) for argument in expression.arguments) or expression.type.kind is Kind.FLOAT
    return expression.type.kind is Kind.FLOAT


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(operator.and_, conditions)


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(operator.or_, conditions)
