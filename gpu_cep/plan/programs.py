"""Compile bound expressions to programs for the kernels' interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpu_cep.analysis.bound_expressions import (
    Aggregation,
    Binding,
    Bound,
    Constant,
    Constants,
    Endpoint,
    Field,
    Operation,
    ScalarFunction,
    split_case,
)
from gpu_cep.analysis.types import TICKS_PER_SECOND, DataType, Kind
from gpu_cep.errors import UnsupportedError

Instruction = tuple[str, int, int, int]

# The most columns of a bank: the bits of one word mark which values of a row are NULL.
BANK_COLUMNS = 64

_INT_OR_FLOAT = frozenset(
    "add sub mul mod neg abs sign least greatest coalesce nullif eq ne lt le gt ge is_null".split()
)  # fmt: skip
_FLOAT_ONLY = frozenset("div floor ceil round sqrt".split())
_LOGIC = frozenset("and or not".split())
# What is decided for each distinct text; what stands around it is computed for each event.
_TEXT_PREDICATES = _LOGIC | frozenset("eq ne lt le gt ge is_null in like".split())


@dataclass(frozen=True, slots=True)
class ScalarCall:
    """A function of the caller's, with the types of the arguments that it is called with."""

    function: ScalarFunction
    parameters: tuple[DataType, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression: instructions ``(operation, target, first, second)`` over registers.

    `code`: the instructions; operations are given by name.
    `int_constants`, `float_constants`: the constants that they load, by number.
    `lookups`: the text predicates that ``lookup`` reads, by number.
    The engine decides each of them for all distinct values of its column.
    `calls`: the functions that ``call`` calls, by number.
    `registers`: the number of registers.
    `result`: the register of the result. `is_float`: whether it is a float register.
    """

    code: tuple[Instruction, ...]
    int_constants: tuple[int, ...]
    float_constants: tuple[float, ...]
    lookups: tuple[Bound, ...]
    calls: tuple[ScalarCall, ...]
    registers: int
    result: int
    is_float: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a program finds a value.

    `is_float`, `is_vector`: the part of the bank that holds it: ints, floats or lists.
    `column`: its column in that part.
    `role`: the event whose row is read.
    `is_aggregate`: `column` is then an aggregate's number, and `role` the last event that it counts.
    `may_fail`: whether some of the values that it aggregates may be impossible to compute.
    """

    is_float: bool
    column: int
    role: int
    is_aggregate: bool = False
    is_vector: bool = False
    may_fail: bool = False


Leaf = Field | Aggregation | Binding | Endpoint
Placement = Callable[[Leaf], Slot]


@dataclass(slots=True)
class _Emitter:
    """The instructions emitted so far, with the constants, lookups and calls that they refer to."""

    place: Placement
    code: list[Instruction] = field(default_factory=list)
    ints: dict[int, int] = field(default_factory=dict)
    floats: dict[str, tuple[int, float]] = field(default_factory=dict)
    lookups: dict[Bound, int] = field(default_factory=dict)
    calls: list[ScalarCall] = field(default_factory=list)
    registers: int = 0

    def emit(self, operation: str, first: int = 0, second: int = 0) -> int:
        """Append an instruction, and return the register of its result."""
        self.code.append((operation, self.registers, first, second))
        self.registers += 1
        return self.registers - 1

    def skip_to_here(self, place: int) -> None:
        """Let the skip at a place of the code pass over all instructions behind it."""
        operation, target, first, _ = self.code[place]
        self.code[place] = operation, target, first, len(self.code) - place - 1


def is_float(data_type: DataType) -> bool:
    """Return whether values of this type are float64 in the machine; all others are int64."""
    return data_type.kind is Kind.FLOAT


def compile_program(expression: Bound, place: Placement) -> Program:
    """Return the program of a bound expression; ``place(leaf)`` is where the program finds a leaf's value."""
    emitter = _Emitter(place)
    result = _compile(expression, emitter)
    return Program(
        code=tuple(emitter.code),
        int_constants=tuple(emitter.ints),
        float_constants=tuple(value for _, value in emitter.floats.values()),
        lookups=tuple(emitter.lookups),
        calls=tuple(emitter.calls),
        registers=emitter.registers,
        result=result,
        is_float=is_float(expression.type),
    )


def _compile(expression: Bound, emitter: _Emitter) -> int:
    """Emit the instructions that compute an expression; return the register of its value."""
    match expression:
        case Constant():
            return _compile_constant(expression, emitter)
        case Operation() if string_predicate_column(expression) is not None:
            return _compile_lookup(expression, emitter)
        case Operation():
            return _compile_operation(expression, emitter)
        case Field() | Aggregation() | Binding() | Endpoint():
            slot = emitter.place(expression)
            if slot.is_aggregate:
                return _compile_aggregate(expression, slot, emitter)
            if slot.is_vector:
                return emitter.emit("load_vector", slot.column, slot.role)
            if slot.column >= BANK_COLUMNS:
                kind = "float" if slot.is_float else "other"
                raise UnsupportedError(f"the query combines more than {BANK_COLUMNS} attributes of {kind} types; supported: {BANK_COLUMNS}")
            return emitter.emit("load_float" if slot.is_float else "load_int", slot.column, slot.role)
    raise TypeError(f"no program for {type(expression).__name__}")


def _compile_aggregate(leaf: Leaf, slot: Slot, emitter: _Emitter) -> int:
    load = _aggregate_load(leaf)
    if slot.may_fail and load != "load_aggregate_int":
        # this load alone tells of values that could not be computed
        emitter.emit("load_aggregate_int", slot.column, slot.role)
    return emitter.emit(load, slot.column, slot.role)


def _aggregate_load(leaf: Leaf) -> str:
    if isinstance(leaf, Aggregation) and leaf.function in ("count", "count_distinct"):
        return "load_count"
    return "load_aggregate_float" if is_float(leaf.type) else "load_aggregate_int"


def _compile_constant(constant: Constant, emitter: _Emitter) -> int:
    if constant.value is None:
        return emitter.emit("null")
    if isinstance(constant.value, str):
        raise UnsupportedError(
            f"text {constant.value!r} is combined with more than one text attribute; supported: text attributes compared with each other, "
            "or one of them with constants"
        )
    if is_float(constant.type):
        value = float(constant.value)
        # by repr, -0.0 differs from 0.0 and NaN equals itself
        index, _ = emitter.floats.setdefault(repr(value), (len(emitter.floats), value))
        return emitter.emit("const_float", index)
    return emitter.emit("const_int", emitter.ints.setdefault(int(constant.value), len(emitter.ints)))


def _compile_lookup(predicate: Operation, emitter: _Emitter) -> int:
    leaf = next(_fields(predicate))
    code = _compile(leaf, emitter)
    return emitter.emit("lookup", code, emitter.lookups.setdefault(predicate, len(emitter.lookups)))


def _compile_operation(operation: Operation, emitter: _Emitter) -> int:
    """Emit the instructions of an operation that is no predicate on text; return the register of its result."""
    name, arguments = operation.name, operation.arguments
    if name == "in":
        return _compile_chain("or", _equalities(operation), emitter)
    if name == "cast":
        return _compile_cast(operation, emitter)
    if name == "case":
        return _compile_case(operation, emitter)
    if operation.function is not None:
        return _compile_call(operation, operation.function, emitter)
    if name in _LOGIC or name in ("least", "greatest", "coalesce"):
        suffix = "" if name in _LOGIC else _suffix(operation.type)
        return _compile_chain(name + suffix, arguments, emitter)
    registers = [_compile(argument, emitter) for argument in arguments]
    if name == "dot":
        return emitter.emit(name, *registers)
    if name not in _INT_OR_FLOAT | _FLOAT_ONLY:
        raise TypeError(f"no instruction for operation {name!r}")
    suffix = "_float" if name in _FLOAT_ONLY else _suffix(arguments[0].type)
    return emitter.emit(name + suffix, registers[0], registers[-1])


def _equalities(membership: Operation) -> tuple[Operation, ...]:
    subject, listed = membership.arguments
    assert isinstance(listed, Constants), "IN looks among constants"
    return tuple(Operation("eq", (subject, Constant(value, listed.type)), membership.type) for value in listed.values)


def _compile_case(case: Operation, emitter: _Emitter) -> int:
    """Emit a CASE: the result is NULL until a value is moved to its register, then the rest is skipped."""
    conditions, (*values, otherwise) = split_case(case)
    result, move, moved = emitter.emit("null"), f"coalesce{_suffix(case.type)}", []
    for condition, value in zip(conditions, values, strict=True):
        truth = _compile(condition, emitter)
        unless = len(emitter.code)
        emitter.code.append(("skip_unless", truth, truth, 0))
        register = _compile(value, emitter)
        emitter.code.append((move, result, register, register))
        moved.append(len(emitter.code))
        emitter.code.append(("skip", result, result, 0))
        emitter.skip_to_here(unless)
    register = _compile(otherwise, emitter)
    emitter.code.append((move, result, register, register))
    for place in moved:
        emitter.skip_to_here(place)
    return result


def _compile_call(operation: Operation, function: ScalarFunction, emitter: _Emitter) -> int:
    """Emit a call; arguments that are not in consecutive registers are moved there first."""
    registers = [_compile(argument, emitter) for argument in operation.arguments]
    if registers != list(range(registers[0], registers[0] + len(registers))):
        pairs = zip(operation.arguments, registers, strict=True)
        registers = [emitter.emit(f"coalesce{_suffix(argument.type)}", register, register) for argument, register in pairs]
    call = ScalarCall(function, tuple(argument.type for argument in operation.arguments))
    if call not in emitter.calls:
        emitter.calls.append(call)
    return emitter.emit("call", registers[0], emitter.calls.index(call))


def _suffix(data_type: DataType) -> str:
    return "_float" if is_float(data_type) else "_int"


def _compile_chain(instruction: str, arguments: tuple[Bound, ...], emitter: _Emitter) -> int:
    """Emit a left-deep chain of a binary instruction, or one unary instruction."""
    result = _compile(arguments[0], emitter)
    if len(arguments) == 1:
        return emitter.emit(instruction, result, result) if instruction == "not" else result
    for argument in arguments[1:]:
        result = emitter.emit(instruction, result, _compile(argument, emitter))
    return result


def scale_factor(source: DataType, target: DataType) -> int:
    """Return the factor that turns an int64 value of type `source` into one of type `target`."""
    if target.kind is Kind.DECIMAL:
        return int(10 ** (target.scale - (source.scale if source.kind is Kind.DECIMAL else 0)))
    if source.kind is Kind.DATE:
        return 86_400 * TICKS_PER_SECOND[target.unit]
    return TICKS_PER_SECOND[target.unit] // TICKS_PER_SECOND[source.unit]


def _compile_cast(cast: Operation, emitter: _Emitter) -> int:
    (source,) = cast.arguments
    if source.type.kind is Kind.NULL:
        return emitter.emit("null")
    register = _compile(source, emitter)
    if is_float(source.type) == is_float(cast.type) and is_float(cast.type):
        return register
    if is_float(cast.type):
        converted = emitter.emit("float_of_int", register)
        if source.type.kind is not Kind.DECIMAL or source.type.scale == 0:
            return converted
        divisor = _compile_constant(Constant(float(10**source.type.scale), cast.type), emitter)
        return emitter.emit("div_float", converted, divisor)
    factor = scale_factor(source.type, cast.type) if source.type != cast.type else 1
    if factor == 1:
        return register
    return emitter.emit("mul_int", register, emitter.emit("const_int", emitter.ints.setdefault(factor, len(emitter.ints))))


def _fields(expression: Bound) -> Iterator[Leaf]:
    match expression:
        case Operation():
            for argument in expression.arguments:
                yield from _fields(argument)
        case Field() | Aggregation() | Binding() | Endpoint():
            yield expression


def leaves(expression: Bound) -> tuple[Leaf, ...]:
    """Return the distinct fields, aggregates, bindings and endpoints that the expression reads, in order."""
    return tuple(dict.fromkeys(_fields(expression)))


def string_predicate_column(expression: Bound) -> int | None:
    """Return the STRING column on which alone a truth value depends, or None.

    Such a predicate is decided once for each distinct value.
    """
    if not _is_of_truths(expression):
        return None
    found = leaves(expression)
    return found[0].column if len(found) == 1 and found[0].type.kind is Kind.STRING else None


def _is_of_truths(expression: Bound) -> bool:
    """Return whether an expression is a predicate on texts and truth values, as all within it are."""
    if not isinstance(expression, Operation) or expression.name not in _TEXT_PREDICATES:
        return False
    return all(_is_text_or_truth(argument) for argument in expression.arguments)


def _is_text_or_truth(argument: Bound) -> bool:
    """Return whether an operand is made of truth values, or is no constant of another kind, such as a number."""
    match argument:
        case Operation():
            return _is_of_truths(argument)
        case Constant(value=value, type=data_type):
            return value is None or data_type.kind in (Kind.STRING, Kind.BOOLEAN)
    return True


def string_comparisons(expression: Bound) -> tuple[tuple[int, ...], ...]:
    """Return the groups of STRING columns that the expression compares with each other; each needs one ordered dictionary."""
    match expression:
        case Operation(arguments=arguments) if expression.name == "case":
            return tuple(group for argument in arguments for group in string_comparisons(argument))
        case Operation() if string_predicate_column(expression) is None:
            own = tuple(
                leaf.column for argument in expression.arguments if argument.type.kind is Kind.STRING
                for leaf in leaves(argument) if leaf.column is not None and leaf.type.kind is Kind.STRING
            )  # fmt: skip
            nested = tuple(group for argument in expression.arguments for group in string_comparisons(argument))
            return ((own,) if len(own) > 1 and not _equates_one_column(expression) else ()) + nested
    return ()


def _equates_one_column(expression: Operation) -> bool:
    """Return whether the expression is an equality, or its opposite, of two events' values of one column."""
    match expression:
        case Operation("eq" | "ne", (Field(column=left), Field(column=right))):
            return left == right
    return False
