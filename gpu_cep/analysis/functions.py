"""Bind scalar functions.

Kernels compute IEEE-exact operations only, so that all engines find the same matches. Other
functions (exp, log, text, calendar) become columns that the host computes once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gpu_cep.analysis import foreign_functions
from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Constant, Field, Operation, ScalarFunction
from gpu_cep.analysis.calls import called, computed_once
from gpu_cep.analysis.cases import apply_to_branches, is_null
from gpu_cep.analysis.coercion import FAULTY, INSTANT, MAX_DIGITS, NUMERIC, cast, cast_all, common_type, is_written_null
from gpu_cep.analysis.computed_columns import ComputedColumn
from gpu_cep.analysis.operators import arithmetic, compare, describe, operation, without_value
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import BOOLEAN, FLOAT, INTEGER, STRING, DataType, Kind, decimal
from gpu_cep.lang.ast import AGGREGATES, Call, Span

Body = Callable[[Call, tuple[Bound, ...], Scope], Bound]

MANY = 255
# What is written like a function, and is bound elsewhere.
_OF_EVENTS = ("prev", *(name for name in AGGREGATES if name != "count_distinct"))
SIGNED = NUMERIC | {Kind.DURATION}
ORDERED = SIGNED | INSTANT | {Kind.BOOLEAN}


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A function that kernels compute.

    `body`: turns a call and its bound arguments into operations.
    `minimum`, `maximum`: the numbers of arguments that it takes.
    """

    body: Body
    minimum: int = 1
    maximum: int = 1


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function that the host computes, of an attribute and constants.

    `kinds`: the kinds that the attribute may have. `type`: the type of the result.
    `constants`: the types of the constants behind the attribute.
    `optional`: how many of these may be left out.
    """

    kinds: frozenset[Kind]
    type: DataType
    constants: tuple[DataType, ...] = ()
    optional: int = 0


def apply(call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    """Return the bound form of a function call over its bound arguments."""
    name = ALIASES.get(call.function, call.function)
    own = {function.name: function for function in scope.functions}
    function = KERNEL_FUNCTIONS.get(name) or HOST_FUNCTIONS.get(name) or own.get(name)
    if function is None and (instead := foreign_functions.written_here(name, call, of_rows=scope.of_rows)):
        scope.faults.error(f"unknown function {call.function!r}", call.span, instead)
        return FAULTY
    if function is None:
        scope.faults.unknown("function", call.function, (*own, *KERNEL_FUNCTIONS, *HOST_FUNCTIONS, *_OF_EVENTS), call.span)
        return FAULTY
    minimum, maximum = _arity(function)
    if not minimum <= len(arguments) <= maximum:
        scope.faults.error(f"{call.function}() takes {_count(minimum, maximum)}, not {len(arguments)}", call.span)
        return FAULTY
    if isinstance(function, KernelFunction):
        return function.body(call, arguments, scope)
    if isinstance(function, ScalarFunction):
        return called(function, call, arguments, scope)
    return _compute_column(name, function, call, arguments, scope)


def refuse_whole(call: Call, scope: Scope) -> bool:
    """Return whether a call is of a function that takes a unit or makes a list, and record it."""
    own = any(function.name == call.function for function in scope.functions)
    hint = None if own else foreign_functions.written_whole(call, of_rows=scope.of_rows)
    if hint is not None:
        scope.faults.error(f"unknown function {call.function!r}", call.span, hint)
    return hint is not None


def _arity(function: KernelFunction | HostFunction | ScalarFunction) -> tuple[int, int]:
    if isinstance(function, KernelFunction | ScalarFunction):
        return function.minimum, function.maximum
    maximum = 1 + len(function.constants)
    return maximum - function.optional, maximum


def _count(minimum: int, maximum: int) -> str:
    if maximum == MANY:
        return f"at least {minimum} arguments"
    if minimum == maximum:
        return f"{minimum} argument{'s' if minimum > 1 else ''}"
    return f"{minimum} {'or' if maximum == minimum + 1 else 'to'} {maximum} arguments"


def _misfit(call: Call, argument: Bound, scope: Scope) -> Bound:
    scope.faults.error(f"cannot apply {call.function}() to {describe(argument)}", call.span)
    return FAULTY


def _float_of_fraction(argument: Bound) -> Bound:
    """Return a literal with a fraction as a float, other expressions as they are.

    Without a decimal beside it such a literal is a float.
    """
    meeting = common_type((argument,))
    assert meeting is not None, "a type meets itself"
    return cast(argument, meeting)


def _magnitude(call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    value = _float_of_fraction(arguments[0])
    if value.type.kind not in SIGNED:
        return _misfit(call, value, scope)
    result = value.type if call.function == "abs" or value.type == FLOAT else INTEGER
    return operation(call.function, (value,), result, scope, call.span)


def _round_fraction(call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    value = _float_of_fraction(arguments[0])
    match value.type.kind:
        case Kind.INTEGER:
            return value
        case Kind.FLOAT:
            return operation(ALIASES.get(call.function, call.function), (value,), FLOAT, scope, call.span)
        case Kind.DECIMAL:
            return _DECIMAL_ROUNDING[ALIASES.get(call.function, call.function)](value) if value.type.scale > 0 else value
    return _misfit(call, value, scope)


def _one_digit_more(type: DataType) -> DataType:
    """Return a DECIMAL type that holds what values of another one are rounded to: 9.9 becomes 10.0."""
    return decimal(min(MAX_DIGITS, type.precision + 1), type.scale)


def _decimal_floor(value: Bound) -> Bound:
    """Return the expression ``x - ((x % 1 + 1) % 1)``; it is exact, where floats hold 15 digits only."""
    type = _one_digit_more(value.type)
    one = Constant(10**type.scale, type)
    above = Operation("add", (Operation("mod", (value, one), type), one), type)
    return Operation("sub", (value, Operation("mod", (above, one), type)), type)


def _decimal_ceil(value: Bound) -> Bound:
    """Return the expression ``-floor(-x)``."""
    below = _decimal_floor(Operation("neg", (value,), value.type))
    return Operation("neg", (below,), below.type)


def _decimal_round(value: Bound) -> Bound:
    """Return ``y - y % 1`` with ``y = x + sign(x) * 0.5``, which rounds half away from zero."""
    type = _one_digit_more(value.type)
    half = Operation("mul", (Operation("sign", (value,), decimal(1, 0)), Constant(10**type.scale // 2, type)), type)
    shifted = Operation("add", (value, half), type)
    return Operation("sub", (shifted, Operation("mod", (shifted, Constant(10**type.scale, type)), type)), type)


_DECIMAL_ROUNDING = {"floor": _decimal_floor, "ceil": _decimal_ceil, "round": _decimal_round}


def _root(call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    if arguments[0].type.kind not in NUMERIC | {Kind.NULL}:
        return _misfit(call, arguments[0], scope)
    return operation("sqrt", (cast(arguments[0], FLOAT),), FLOAT, scope, call.span)


def _choice(call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    meeting = _meeting(f"the arguments of {call.function}()", arguments, scope, call.span)
    if meeting is None:
        return FAULTY
    if meeting.kind is Kind.STRING and call.function in _TEXT_CHOICES:
        return _TEXT_CHOICES[call.function](cast_all(arguments, meeting), scope, call.span)
    if meeting.kind is Kind.STRING:
        supported = "supported are numbers, truth values, dates, timestamps and durations"
        scope.faults.refuse(f"{call.function}() of strings", supported, call.span)
        return FAULTY
    assert meeting.kind in ORDERED, "other types are no operands"
    return operation(call.function, cast_all(arguments, meeting), meeting, scope, call.span)


def _first_text(texts: tuple[Bound, ...], scope: Scope, span: Span | None) -> Bound:
    """Return ``coalesce`` of texts, which kernels cannot compute, as a CASE."""
    present = (apply_to_branches(text, is_null) for text in texts[:-1])
    return choose_case(tuple(Operation("not", (null,), BOOLEAN) for null in present), texts, scope, span)


def _text_unless_equal(texts: tuple[Bound, ...], scope: Scope, span: Span | None) -> Bound:
    """Return ``nullif`` of texts as a CASE."""
    text, other = texts
    return choose_case((compare("eq", text, other, scope, span),), (Constant(None, STRING), text), scope, span)


_TEXT_CHOICES = {"coalesce": _first_text, "nullif": _text_unless_equal}


def choose_case(conditions: tuple[Bound, ...], values: tuple[Bound, ...], scope: Scope, span: Span | None) -> Bound:
    """Return the value of the first condition that is true; the last value, that of ELSE, if none is."""
    meeting = _meeting("the values of CASE", values, scope, span)
    return FAULTY if meeting is None else operation("case", (*conditions, *cast_all(values, meeting)), meeting, scope, span)


def _meeting(what: str, values: tuple[Bound, ...], scope: Scope, span: Span | None) -> DataType | None:
    """Return the type in which values meet; record a fault and return None if there is none."""
    meeting = common_type(values)
    if meeting is None:
        scope.faults.error(f"{what} are of no common type: {' and '.join(describe(value) for value in values)}", span)
    return meeting


def _remainder(call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    return arithmetic("%", arguments[0], arguments[1], scope, call.span)


def _correlation(call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    """Return Pearson's correlation of two lists as an expression.

    It is the inner product of the centred lists over the root of the product of their sums of squares.
    """
    left, right = arguments
    if (valueless := without_value(arguments)) is not None:
        return valueless
    assert isinstance(left, Field | Aggregation), "no operation makes a list"
    assert isinstance(right, Field | Aggregation), "no operation makes a list"
    if left.type.length != right.type.length:
        lengths = f"{left.type.length} and {right.type.length}"
        scope.faults.error(f"corr() takes lists of one length, not of {lengths}", call.span)
        return FAULTY
    product = Operation("dot", arguments, FLOAT)
    scale = Operation("mul", (_variation(left, scope), _variation(right, scope)), FLOAT)
    return computed_once(Operation("div", (product, Operation("sqrt", (scale,), FLOAT)), FLOAT), call, scope)


def _variation(values: Field | Aggregation, scope: Scope) -> Bound:
    """Return the sum of squares of a centred list.

    It is NULL for a list without correlations: all its numbers are equal, or one is NULL.
    """
    assert values.column is not None, "a list is an attribute's"
    return replace(values, column=scope.compute(ComputedColumn("variation", values.column, (), FLOAT)), type=FLOAT)


def _compute_column(name: str, function: HostFunction, call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    subject, *parameters = arguments
    if FAULTY in arguments or _misfits(name, function, call, arguments, scope):
        return FAULTY
    if (valueless := without_value(arguments)) is not None:
        return valueless
    if isinstance(subject, Operation) and subject.name in _NAVIGATIONS:
        # a function of a value at another row is the value of the function there
        inner = _compute_column(name, function, call, (subject.arguments[0], *parameters), scope)
        return FAULTY if inner == FAULTY else replace(subject, arguments=(inner, *subject.arguments[1:]), type=inner.type)
    if not isinstance(subject, Field) or not all(isinstance(parameter, Constant) for parameter in parameters):
        supported = "its first argument must be an attribute, or such a function of one, and the others constants"
        scope.faults.refuse(f"{call.function}() of these arguments", supported, call.span)
        return FAULTY
    constants = tuple(_parameter(call, *pair, scope) for pair in zip(parameters, function.constants, strict=False))
    if FAULTY in constants:
        return FAULTY
    if subject.type.kind is Kind.NULL:
        return subject
    column = scope.compute(ComputedColumn(name, subject.column, constants, function.type))
    return replace(subject, column=column, type=function.type)


def _misfits(name: str, function: HostFunction, call: Call, arguments: tuple[Bound, ...], scope: Scope) -> bool:
    """Record a fault for each argument that function `name` never takes, also beside a NULL, and return whether there is one."""
    before, (subject, *parameters) = scope.faults.count, arguments
    if subject.type.kind not in function.kinds | {Kind.NULL}:
        _misfit(call, subject, scope)
    for given, wanted in zip(parameters, function.constants, strict=False):
        if isinstance(given, Constant) and not is_written_null(given):
            parameter = _parameter(call, given, wanted, scope)
            if name == "regexp_like" and parameter != FAULTY:
                _check_regexp(parameter, call, scope)
    return scope.faults.count > before


def _check_regexp(pattern: Constant, call: Call, scope: Scope) -> None:
    """Record a fault if a text is no regular expression."""
    fault = scope.regexp_fault(str(pattern.value))
    if fault is not None:
        scope.faults.error(f"{pattern.value!r} is no regular expression: {fault}", call.span)


def _parameter(call: Call, given: Bound, wanted: DataType, scope: Scope) -> Constant:
    fitting = {wanted.kind, Kind.INTEGER, Kind.DECIMAL} if wanted == FLOAT else {wanted.kind}
    parameter = cast(given, wanted)
    if given.type.kind in fitting and isinstance(parameter, Constant):
        return parameter
    scope.faults.error(f"{call.function}() takes a constant of type {wanted}, not {describe(given)}", call.span)
    return FAULTY


# Operations of row patterns that lead to one row.
_NAVIGATIONS = frozenset({"prev", "next", "running first", "running last", "final first", "final last"})
ALIASES = {"ceiling": "ceil", "pow": "power", "substr": "substring"}

KERNEL_FUNCTIONS = {
    "abs": KernelFunction(_magnitude),
    "sign": KernelFunction(_magnitude),
    "floor": KernelFunction(_round_fraction),
    "ceil": KernelFunction(_round_fraction),
    "round": KernelFunction(_round_fraction),
    "sqrt": KernelFunction(_root),
    "least": KernelFunction(_choice, 2, MANY),
    "greatest": KernelFunction(_choice, 2, MANY),
    "coalesce": KernelFunction(_choice, 1, MANY),
    "nullif": KernelFunction(_choice, 2, 2),
    "mod": KernelFunction(_remainder, 2, 2),
    "corr": KernelFunction(_correlation, 2, 2),
}

_TEXT = frozenset({Kind.STRING})
_CALENDAR = frozenset(INSTANT)
_CLOCK = frozenset({Kind.TIMESTAMP})

HOST_FUNCTIONS = {
    **{name: HostFunction(NUMERIC, FLOAT) for name in ("exp", "ln", "log10", "log2", "sin", "cos", "tan")},
    "power": HostFunction(NUMERIC, FLOAT, (FLOAT,)),
    **{name: HostFunction(_TEXT, STRING) for name in ("lower", "upper", "trim")},
    "length": HostFunction(_TEXT, INTEGER),
    "regexp_like": HostFunction(_TEXT, BOOLEAN, (STRING,)),
    "substring": HostFunction(_TEXT, STRING, (INTEGER, INTEGER), optional=1),
    **{name: HostFunction(_CALENDAR, INTEGER) for name in ("year", "month", "day", "dayofweek")},
    **{name: HostFunction(_CLOCK, INTEGER) for name in ("hour", "minute", "second")},
}

BUILT_IN = frozenset({*KERNEL_FUNCTIONS, *HOST_FUNCTIONS, *ALIASES})
