"""Give a function a digest of all that its compiled form is made of."""

from __future__ import annotations

import enum
import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

PACKAGE = __name__.partition(".")[0]

SourceOf = Callable[[Any], tuple[types.FunctionType, str] | None]

# Flag of code objects whose first constant is a docstring. Before Python 3.13 there is none, and the first one is a docstring or None.
_HAS_DOCSTRING = 0x4000000


def source_key(function: Callable[..., Any], source_of: SourceOf) -> str:
    """Return the digest of a function and of all that it reaches, wherever in the package that is.

    These are the functions that it names, and those that they name. Values of global
    constants count, too, and so do fields of NamedTuples and members of
    enumerations, and the modules of functions. Docstrings, comments, annotations and
    places in files do not. `source_of` gives for a global, such as a rule, its function and how that is
    compiled, or None.

    Raises
    ------
    TypeError
        A function names a global of a kind that cannot be told apart by its value.
    """
    return hashlib.sha256("\n".join(_descriptions(function, source_of)).encode()).hexdigest()


def _descriptions(function: Callable[..., Any], source_of: SourceOf) -> Iterator[str]:
    """Yield a description of each function that is reached, in the order in which it is.

    Functions are named by their number in this order.
    """
    numbers: dict[Any, int] = {function: 0}
    reached: list[Any] = [function]

    def describe_global(value: Any) -> str:
        source = source_of(value)
        if source is None:
            return describe(value)
        function, options = source
        if function not in numbers:
            numbers[function] = len(reached)
            reached.append(function)
        return f"function {numbers[function]} {options}"

    for each in reached:
        names = {name: describe_global(value) for name, value in _named_globals(each.__code__, each.__globals__)}
        cells = [describe_global(cell.cell_contents) for cell in each.__closure__ or ()]
        defaults = [describe_global(value) for value in each.__defaults__ or ()]
        # what is kept on disk names the modules of its functions: it cannot be loaded once one has moved
        yield repr((each.__module__, describe_code(each.__code__), sorted(names.items()), cells, defaults))


def _named_globals(code: types.CodeType, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the globals that code may read; where one is a module of the package, what it may read there, too."""
    read = set(_names(code))
    for name in sorted(read & names.keys()):
        value = names[name]
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == PACKAGE:
            yield from ((f"{name}.{inner}", getattr(value, inner)) for inner in sorted(read & vars(value).keys()))
        else:
            yield name, value


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that code and the functions inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@cache
def describe_code(code: types.CodeType) -> str:
    """Return a text of what the code does, without its place in a file and its docstring."""
    constants = code.co_consts
    documented = code.co_flags & _HAS_DOCSTRING if sys.version_info >= (3, 13) else not code.co_name.startswith("<")
    if documented and constants and isinstance(constants[0], str):
        constants = (None, *constants[1:])
    return repr(
        (
            (code.co_name, code.co_flags & ~inspect.CO_NESTED, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_code, code.co_exceptiontable),
            [describe_code(constant) if isinstance(constant, types.CodeType) else describe(constant) for constant in constants],
        )
    )


def describe(value: Any) -> str:
    """Return a text for a value: the same in every process, and different for different values.

    Raises
    ------
    TypeError
        The value is of a kind for which no such text is known.
    """
    if isinstance(value, enum.Enum):
        return f"{describe(type(value))}.{value.name}"
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} [{', '.join(map(describe, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"set {sorted(map(describe, value))}"
    if isinstance(value, dict):
        return f"dict {sorted((describe(key), describe(each)) for key, each in value.items())}"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, np.dtype):
        return f"dtype {value!r}"
    if isinstance(value, type):
        return _describe_class(value)
    if isinstance(value, (types.ModuleType, np.ufunc)):
        # not its repr, which says where a module's file is
        return f"{type(value).__name__} {value.__name__}"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) or _is_generic(value):
        return f"{type(value).__name__} {getattr(value, '__module__', '')} {getattr(value, '__qualname__', repr(value))}"
    raise TypeError(f"{value!r}: kernels cannot be kept on disk by this, of which no digest is known")


def _is_generic(value: Any) -> bool:
    """Return whether a value is one of typing's objects, which only annotations name."""
    return type(value).__module__ in ("typing", "types")


def _describe_class(value: type) -> str:
    """Return a text of a class: its name, and its members or fields."""
    named = f"class {value.__module__}.{value.__qualname__}"
    if issubclass(value, enum.Enum):
        return f"{named} {[(member.name, repr(member.value)) for member in value]}"
    return f"{named} {getattr(value, '_fields', '')}"


def describe_types(arguments: Iterable[Any]) -> str:
    """Return numba types as a text; tuples with names also show their fields and their class."""
    return f"[{', '.join(map(_describe_type, arguments))}]"


def _describe_type(each: Any) -> str:
    """Return one numba type as a text."""
    members = getattr(each, "types", None)
    if members is None:
        return str(each)
    named = getattr(each, "instance_class", None)
    return f"{type(each).__name__} {'' if named is None else _describe_class(named)} {describe_types(members)}"
