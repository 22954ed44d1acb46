"""Compile a user's function such that kernels can call it on the CPU, by its address."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numba
from numba.core.registry import CPUDispatcher

from gpu_cep_kernels.compile.pipelines import collecting_nothing


@dataclass(frozen=True, slots=True)
class CompiledScalar:
    """Hold a caller's compiled function; it can be called as long as this object lives.

    - address: where :func:`gpu_cep_kernels.compile.operations.call_scalar` finds it.
    - result: the kind of its result (i, f or b, as in :func:`compile_scalar`).
    - code: numba's object, which owns the code.
    """

    address: int
    result: str
    code: Any


_KINDS = {"i": numba.types.int64, "f": numba.types.float64, "b": numba.types.boolean}
_REGISTERS = (numba.types.CPointer(numba.types.int64), numba.types.CPointer(numba.types.float64), numba.types.CPointer(numba.types.uint8))
# neither Python nor C calls the function itself
_OPTIONS = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def compile_scalar(body: Callable[..., Any], kinds: str) -> CompiledScalar:
    """Return `body` compiled for arguments of `kinds` (i: int64, f: float64, b: truth value), to be called from registers.

    An argument that is NULL gives NULL, and so does a result of None. Division is
    Python's; integers wrap around.

    Raises
    ------
    TypeError
        Numba cannot compile it, or its result is no number; one line says why.
    """
    function: Any = CPUDispatcher(body, targetoptions=_OPTIONS)
    omitted = list(inspect.signature(body).parameters.values())[len(kinds) :]
    parameters = (*(_KINDS[kind] for kind in kinds), *(numba.types.Omitted(parameter.default) for parameter in omitted))
    try:
        with collecting_nothing():
            function.compile(parameters)
            result = _result_kind(function.overloads[parameters].signature.return_type)
            code = numba.cfunc(numba.types.int64(*_REGISTERS, *[numba.types.int64] * 3))(_from_registers(function, kinds, result))
    except numba.core.errors.NumbaError as fault:
        raise TypeError(_reason(fault)) from fault
    return CompiledScalar(cast(int, code.address), result, code)


def _result_kind(result: Any) -> str:
    """Return the kind (i, f or b) of a result of a numba type; raise TypeError if it has none."""
    value = result.type if isinstance(result, numba.types.Optional) else result
    if value == numba.types.boolean:
        return "b"
    if value in numba.types.real_domain:
        return "f"
    if value in numba.types.integer_domain and value != numba.types.uint64:
        return "i"
    raise TypeError(f"it returns {result}, which is neither a number of at most 64 bits nor a truth value")


def _reason(fault: Exception) -> str:
    """Return the first line of numba's message that says what is wrong."""
    lines = [line.strip() for line in _COLOURS.sub("", str(fault)).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in nopython mode", "- Resolution failure", "During: "))]
    return said[0].rstrip(":") if said else type(fault).__name__


def _from_registers(function: Any, kinds: str, result: str) -> Callable[..., int]:
    """Return a function that calls `function` on registers, `step` apart, and writes its result to one."""
    arguments, count, is_float = _arguments_of(kinds), len(kinds), result == "f"

    def call(ints: Any, floats: Any, nulls: Any, step: int, first: int, target: int) -> int:
        missing, raised = False, 0
        for k in range(first, first + count):
            missing = missing or nulls[k * step] != 0
        if not missing:
            try:
                value = function(*arguments(ints, floats, step, first))
                if value is None:
                    missing = True
                elif is_float:
                    floats[target * step] = value
                else:
                    ints[target * step] = value
            except Exception:
                raised = 2
        nulls[target * step] = missing
        return raised

    return call


@cache
def _arguments_of(kinds: str) -> Any:
    """Return a function that gives the registers of these kinds, from `first` on, as a tuple; numba has nothing to compile for it."""
    given = numba.types.Tuple([_KINDS[kind] for kind in kinds])

    def arguments(typing: Any, ints: Any, floats: Any, step: Any, first: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            ints, floats, step, first = values
            registers = {"i": ints, "f": floats, "b": ints}
            places = [builder.mul(builder.add(first, first.type(place)), step) for place in range(len(kinds))]
            read = [builder.load(builder.gep(registers[kind], [place])) for kind, place in zip(kinds, places, strict=True)]
            taken = [builder.icmp_signed("!=", word, word.type(0)) if kind == "b" else word for kind, word in zip(kinds, read, strict=True)]
            return context.make_tuple(builder, signature.return_type, taken)

        return given(ints, floats, step, first), generate

    return numba.extending.intrinsic(arguments)
