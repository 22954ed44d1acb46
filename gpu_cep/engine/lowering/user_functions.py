"""Check the functions that the caller brings, and compile them."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_cep.analysis.bound_expressions import ScalarFunction
from gpu_cep.analysis.functions import BUILT_IN
from gpu_cep.analysis.types import BOOLEAN, FLOAT, INTEGER, DataType, Kind
from gpu_cep.errors import Diagnostic, PatternError
from gpu_cep.identity import while_alive
from gpu_cep.lang.ast import AGGREGATES
from gpu_cep.lang.literals import names_no_function
from gpu_cep.plan.programs import ScalarCall
from gpu_cep_kernels.compile.forks import free_after_fork

if TYPE_CHECKING:
    from gpu_cep_kernels.compile.scalars import CompiledScalar

_KINDS = {Kind.INTEGER: "i", Kind.FLOAT: "f", Kind.BOOLEAN: "b"}
_RESULTS = {"i": INTEGER, "f": FLOAT, "b": BOOLEAN}
_TAKEN = BUILT_IN.union(AGGREGATES, ("prev",))

_compiling = free_after_fork()


def scalar_functions(functions: Mapping[str, Callable[..., Any]] | None) -> tuple[ScalarFunction, ...]:
    """Return the functions of a call's ``functions=``, by their names in lower case.

    Raises
    ------
    PatternError
        A value is not a function, takes no fixed number of arguments, or has a
        name that queries already know. All such faults are named at once.
    """
    if functions is None:
        return ()
    if not isinstance(functions, Mapping):
        raise PatternError(f"functions must map names to functions, not be {functions!r}")
    faults = [fault for name, function in functions.items() if (fault := _find_fault(name, function)) is not None]
    names = [name.lower() for name in functions if isinstance(name, str)]
    faults += [f"functions: {name!r} is there twice, for names of functions do not tell cases apart" for name in _repeated_names(names)]
    if faults:
        raise PatternError([Diagnostic(fault) for fault in faults])
    return tuple(_scalar_function(name.lower(), _python_function(function)) for name, function in functions.items())


def result_type(function: ScalarFunction, parameters: tuple[DataType, ...]) -> DataType:
    """Return the type of the result of `function` for arguments of these types.

    Raises TypeError with the reason if it cannot be compiled for them.
    """
    return _RESULTS[_compile(function, parameters).result]


def address_of(call: ScalarCall) -> int:
    """Return the address of a function's compiled form in this process."""
    return _compile(call.function, call.parameters).address


def _compile(function: ScalarFunction, parameters: tuple[DataType, ...]) -> CompiledScalar:
    """Return the compiled form of a function for arguments of these types, which lives as long as the function."""
    kinds = "".join(_KINDS[parameter.kind] for parameter in parameters)
    with _compiling:
        forms = _forms_of(function)
        if kinds not in forms:
            forms[kinds] = _latest_form(function, kinds)
        return forms[kinds]


@while_alive
def _forms_of(function: ScalarFunction) -> dict[str, CompiledScalar]:
    """Return the compiled forms of a function by the kinds of their arguments; tables of plans that call it hold their addresses."""
    return {}


# Each call brings its functions as new objects, and a service may bring new functions with each call.
@lru_cache(maxsize=64)
def _latest_form(function: ScalarFunction, kinds: str) -> CompiledScalar:
    """Return what was compiled of an equal function, if that is not long ago, or is compiled now."""
    from gpu_cep_kernels.compile.scalars import compile_scalar

    return compile_scalar(function.body, kinds)


def _find_fault(name: object, function: object) -> str | None:
    """Return what is wrong with a function or its name; None if nothing is."""
    if not isinstance(name, str) or not name.isidentifier():
        return f"functions: {name!r} is no name of a function"
    if name.lower() in _TAKEN:
        return f"functions: {name!r} is the name of a built-in function"
    if names_no_function(name):
        return f"functions: {name!r} is a keyword of the language, so that {name}(x) would not call it; give it another name"
    if not callable(function):
        return f"functions: {name!r} is {function!r}, which cannot be called"
    if not isinstance(_python_function(function), FunctionType):
        return f"functions: {name!r} must be a Python function (def or lambda), not {type(function).__name__}"
    kinds = {parameter.kind for parameter in inspect.signature(_python_function(function)).parameters.values()}
    if not kinds or not kinds <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        return f"functions: {name!r} must take a fixed number of arguments by position, at least one"
    return None


def _repeated_names(names: list[str]) -> list[str]:
    """Return the names that occur more than once."""
    return sorted({name for name in names if names.count(name) > 1})


def _python_function(function: Any) -> Any:
    """Return the Python function that numba compiled, or `function` itself."""
    return getattr(function, "py_func", function)


def _scalar_function(name: str, body: Callable[..., Any]) -> ScalarFunction:
    """Return the function with its digest and number of parameters."""
    parameters = inspect.signature(body).parameters.values()
    required = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
    digest = hashlib.sha256("\n".join(_describe(body, ())).encode()).hexdigest()
    return ScalarFunction(name, digest, max(1, required), len(parameters), body)


def _describe(value: object, seen: tuple[object, ...]) -> Iterator[str]:
    """Yield the text that a value's digest is made of; it is the same in every process.

    Values that a function reads belong to it. `seen` are the functions being described.
    """
    value = _python_function(value)
    if isinstance(value, FunctionType):
        if not any(value is other for other in seen):
            yield from _describe_function(value, (*seen, value))
    elif isinstance(value, CodeType):
        yield from (value.co_code.hex(), repr(value.co_names), repr(value.co_varnames))
        for constant in value.co_consts:
            yield from _describe(constant, seen)
    elif isinstance(value, tuple):
        for member in value:
            yield from _describe(member, seen)
    elif isinstance(value, np.ndarray):
        yield from (str(value.dtype), repr(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest())
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, bool | int | float | complex | str | bytes | np.generic) or value is None:
        yield repr(value)
    else:
        # numba compiles what is left by what it is, if at all
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _describe_function(function: FunctionType, seen: tuple[object, ...]) -> Iterator[str]:
    """Yield the text of a function: of its code, its defaults, and the values that it reads."""
    read = inspect.getclosurevars(function)
    yield from _describe(function.__code__, seen)
    yield from _describe(function.__defaults__, seen)
    for name, value in sorted({**read.globals, **read.nonlocals}.items()):
        yield name
        yield from _describe(value, seen)
