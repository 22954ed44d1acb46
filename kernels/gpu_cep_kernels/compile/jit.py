"""Compile kernels and scalar rules; outside this folder nothing imports numba.

A *rule* is a plain scalar function, the one place where a piece of semantics
stands. A *kernel* is declared once. Both drivers follow from its
declaration (see :mod:`gpu_cep_kernels.compile.launch` and
:mod:`gpu_cep_kernels.device.interface`).
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir

from gpu_cep_kernels.compile import entries, kernel_cache, pipelines
from gpu_cep_kernels.compile.source_keys import PACKAGE, describe_code, source_key

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Kernels allocate nothing, as on CUDA: without numba's run time there is no reference counting in hot loops either.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
# Only kernels call rules: without an entry for Python, which unpacks all tables, they compile in half the time.
_OPTIONS_OF_RULES = _OPTIONS | {"nopython": True, "no_cpython_wrapper": True}


def _source_of(value: Any) -> tuple[types.FunctionType, str] | None:
    """Return the function that a kernel's global stands for, and how it is compiled.

    It is None if the global is no function of this package.
    """
    if isinstance(value, Kernel):
        return cast(types.FunctionType, value.body), "kernel"
    if isinstance(value, numba.core.dispatcher.Dispatcher):
        return value.py_func, repr(sorted(value.targetoptions.items()))
    if isinstance(value, types.FunctionType) and value.__module__.partition(".")[0] == PACKAGE:
        return value, "function"
    return None


@cache
def _compilers_key() -> str:
    """Return the digest of this folder's code that shapes compiled kernels."""
    modules = [sys.modules[__name__], pipelines, entries]
    codes = [module.__loader__.get_code(module.__name__) for module in modules]  # type: ignore[union-attr]
    return hashlib.sha256(repr([_OPTIONS, *map(describe_code, codes)]).encode()).hexdigest()


def _kernel_key(kernel: Kernel[Any, Any]) -> str:
    """Return the key of all that a kernel is compiled from, whatever the types and the device."""
    return f"{source_key(kernel.body, _source_of)} {_compilers_key()}"


def _bind(function: Any, key: str, names: dict[str, Any]) -> Any:
    """Return a copy of `function` with `names` for globals.

    Its closure has one cell, which holds `key`: numba's cache for CUDA looks there.
    """
    keyed = types.FunctionType(
        function.__code__.replace(co_freevars=("_key",)),
        names,
        function.__name__,
        function.__defaults__,
        (types.CellType(key),),
    )
    keyed.__module__, keyed.__doc__, keyed.__annotations__ = function.__module__, function.__doc__, function.__annotations__
    return keyed


class _Rule(numba.core.registry.CPUDispatcher):
    """Hold a rule in two forms: kernels call the compiled one, Python calls the source."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)

    def add_overload(self, cres: Any) -> None:
        """Keep a compiled form, which has no entry for Python."""
        self.overloads[tuple(cres.signature.args)] = cres


def rule(function: Function) -> Function:
    """Declare a scalar rule, which is inlined into the kernels that call it."""
    return cast(Function, _Rule(function, targetoptions=_OPTIONS_OF_RULES | {"forceinline": True}, pipeline_class=pipelines.RuleCompiler))


def subroutine(function: Function) -> Function:
    """Declare a rule that is called and not inlined.

    It is for what is long and seldom needed: it is compiled once for all its callers.
    """
    return cast(Function, _Rule(function, targetoptions=_OPTIONS_OF_RULES, pipeline_class=pipelines.RuleCompiler))


def exact_product(left: float, right: float) -> float:
    """Return ``left * right``, rounded by itself.

    On CUDA a plain product may be fused with a sum, and both rounded once.
    """
    return left * right


def exact_remainder(left: float, right: float) -> float:
    """Return the exact remainder of ``left / right``, with the sign of `left`; on CUDA ``%`` rounds the quotient."""
    return np.fmod(left, right)


def call_scalar(address: int, ints: Any, floats: Any, nulls: Any, first: int, target: int) -> int:
    """Call a function that :func:`compile_scalar` made; return 0, or 2 if it raised. It runs on the CPU alone.

    The arguments are in registers from `first` on; the result goes to register `target`.
    """
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)(int(address))
    return int(function(ints.ctypes.data, floats.ctypes.data, nulls.ctypes.data, nulls.strides[0], int(first), int(target)))


# not strict: annotations would make the signatures differ
@numba.extending.overload(exact_product, strict=False)
def _product_on_cpu(left: Any, right: Any) -> Callable[[float, float], float]:
    """Return what numba compiles for :func:`exact_product` on the CPU."""
    return lambda left, right: left * right


@numba.extending.overload(exact_remainder, strict=False)
def _remainder_on_cpu(left: Any, right: Any) -> Callable[[float, float], float]:
    """Return what numba compiles for :func:`exact_remainder` on the CPU."""
    return lambda left, right: np.fmod(left, right)


@numba.extending.intrinsic
def _call_address(typing: Any, address: Any, ints: Any, floats: Any, nulls: Any, step: Any, first: Any, target: Any) -> Any:
    """Return code that calls the C function at an address; all arguments and the result are 64-bit integers."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = context.get_value_type(numba.types.int64)
        function = ir.FunctionType(word, [word] * 6).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), values[1:])

    return numba.types.int64(address, ints, floats, nulls, step, first, target), generate


@numba.extending.overload(call_scalar, strict=False, jit_options={"forceinline": True})
def _call_on_cpu(address: Any, ints: Any, floats: Any, nulls: Any, first: Any, target: Any) -> Callable[..., int]:
    """Return what numba compiles for :func:`call_scalar` on the CPU."""
    call = cast(Callable[..., int], _call_address)
    return lambda address, ints, floats, nulls, first, target: call(
        address, ints.ctypes.data, floats.ctypes.data, nulls.ctypes.data, nulls.strides[0], first, target
    )


# What a CUDA thread runs, by whether a kernel is parallel, and whether it has a slot or returns something.
_ENTRIES = {
    (True, False): entries.for_each,
    (True, True): entries.for_each_slotted,
    (False, False): entries.once,
    (False, True): entries.once_with_result,
}


class Kernel(Generic[Arguments, Result]):
    """Hold a kernel; calling it runs the compiled form on the CPU, in the calling thread.

    The parameters of a *parallel* kernel begin with ``low, high``. It works on the
    indices [low, high) of its range: events, windows, streams or matches. Each is
    judged by itself. It indexes every array absolutely, and returns nothing. The CPU gives
    long slices to threads; on CUDA a thread has a slice of one index. A third
    parameter `slot` numbers the calls that run at the same time. Each has its own
    row of scratch by it.

    A *sequential* kernel passes over a whole batch and carries what it found
    along, or resumes a search. A device mostly uses a parallel primitive in its
    place (:mod:`gpu_cep_kernels.device.primitives`). It can run it in one thread.

    `writes` names the parameters, or parts of them (``table.column``), in which a
    kernel leaves its results. `scratch` names those whose content does not matter
    afterwards. A kernel writes nothing else.
    """

    def __init__(self, body: Callable[Arguments, Result], parallel: bool, writes: tuple[str, ...], scratch: tuple[str, ...]) -> None:
        self.body = body
        self.parallel = parallel
        self.writes, self.scratch = writes, scratch
        self.__name__, self.__doc__ = body.__name__, body.__doc__
        names = tuple(inspect.signature(body).parameters)
        if parallel != (names[:2] == ("low", "high")):
            raise TypeError(f"{body.__name__}: parallel kernels, and no others, begin with the parameters low, high")
        unknown = [name for name in (*writes, *scratch) if name.split(".")[0] not in names]
        if unknown:
            raise TypeError(f"{body.__name__}: no parameters of a kernel: {', '.join(unknown)}")
        self.slotted = names[2:3] == ("slot",)
        self.returns = inspect.signature(body).return_annotation not in (None, "None")
        if parallel and self.returns:
            raise TypeError(f"{body.__name__}: a parallel kernel returns nothing")

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return cast(Result, self.compiled(*args, **kwargs))

    @cached_property
    def compiled(self) -> Any:
        """Return the CPU's form: compiled on first use for each set of array types, then kept on disk."""
        if self.body.__closure__:
            raise TypeError(f"{self.__name__}: a kernel must not be a closure")
        dispatcher = numba.njit(nogil=True, pipeline_class=pipelines.KernelCompiler, **_OPTIONS)(self.body)
        dispatcher._cache = kernel_cache.KernelCache(f"{self.body.__module__.rpartition('.')[2]}.{self.__name__}", _kernel_key(self))
        return dispatcher

    @cached_property
    def cuda(self) -> Any:
        """Return the CUDA form, to be called as ``cuda[blocks, threads, stream](size, arguments)``.

        It runs one thread per index, as far as there are threads. `arguments` is a tuple
        of all arguments but low, high and slot. A sequential kernel takes 1 for `size`,
        or an array for its result if it returns something. Under the simulator the
        uncompiled body runs.
        """
        cuda = _cuda()
        entry = _ENTRIES[self.parallel, self.slotted or self.returns]
        body = plain(self) if simulated() else self.compiled
        keyed = _bind(entry, _kernel_key(self), {"cuda": cuda, "body": body})
        # a file of its own in the cache, since processes that write to one at the same time may mix up what is in it
        keyed.__name__ = keyed.__qualname__ = f"{self.body.__module__.rpartition('.')[2]}.{self.__name__}"
        dispatcher = cuda.jit(keyed)
        if not simulated():
            dispatcher._cache = kernel_cache.cuda_cache(keyed)
        return dispatcher


class Declare(Protocol):
    """Make a function a kernel."""

    def __call__(self, function: Callable[Arguments, Result], /) -> Kernel[Arguments, Result]:
        """Return the kernel."""


def kernel(*, writes: tuple[str, ...], scratch: tuple[str, ...] = ()) -> Declare:
    """Return the decorator that declares a parallel kernel, and what it writes."""

    def declare(function: Callable[Arguments, Result], /) -> Kernel[Arguments, Result]:
        return Kernel(function, True, writes, scratch)

    return declare


def sequential(*, writes: tuple[str, ...], scratch: tuple[str, ...] = ()) -> Declare:
    """Return the decorator that declares a sequential kernel, and what it writes."""

    def declare(function: Callable[Arguments, Result], /) -> Kernel[Arguments, Result]:
        return Kernel(function, False, writes, scratch)

    return declare


def plain(declared: Kernel[Any, Any]) -> Callable[..., Any]:
    """Return a kernel as an uncompiled Python function, and all rules that it calls likewise."""
    return _plain(declared.body)


@cache
def _plain(function: Any) -> Callable[..., Any]:
    """Return a copy of a function that calls uncompiled rules."""
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = names.get(name)
        if isinstance(value, numba.core.dispatcher.Dispatcher):
            names[name] = _plain(value.py_func)
    return types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)


def simulated() -> bool:
    """Whether CUDA kernels run on numba's simulator: NUMBA_ENABLE_CUDASIM was set when numba was imported."""
    return bool(numba.config.ENABLE_CUDASIM)  # type: ignore[attr-defined]


@cache
def _cuda() -> Any:
    """Return numba.cuda, prepared for these kernels."""
    from numba import cuda

    if not simulated():
        from numba.cuda import libdevice
        from numba.cuda.extending import overload  # type: ignore[attr-defined]

        @overload(exact_product, target="cuda", strict=False)
        def _product_on_cuda(left: Any, right: Any) -> Callable[[float, float], float]:
            return lambda left, right: libdevice.dmul_rn(left, right)

        @overload(call_scalar, target="cuda", strict=False)
        def _call_on_cuda(address: Any, ints: Any, floats: Any, nulls: Any, first: Any, target: Any) -> Callable[..., int]:
            return lambda address, ints, floats, nulls, first, target: 2

        @overload(exact_remainder, target="cuda", strict=False)
        def _remainder_on_cuda(left: Any, right: Any) -> Callable[[float, float], float]:
            return lambda left, right: libdevice.fmod(left, right)

    return cuda


def device_view(array: Any) -> Any:
    """Return another library's array on the device as CUDA kernels take it.

    Nothing is copied, and no stream is waited for.
    """
    return _cuda().as_cuda_array(array, sync=False)


@cache
def external_stream(pointer: int) -> Any:
    """Return another library's CUDA stream as a launch takes it.

    There is one object for each stream, so that numba recognises a repeated launch.
    """
    return _cuda().external_stream(pointer)


@dataclass(frozen=True, slots=True)
class CompiledScalar:
    """Hold a caller's compiled function; it can be called as long as this object lives.

    - address: where :func:`call_scalar` finds it.
    - result: the kind of its result (i, f or b, as in :func:`compile_scalar`).
    - code: numba's object, which owns the code.
    """

    address: int
    result: str
    code: Any


_KINDS = {"i": numba.types.int64, "f": numba.types.float64, "b": numba.types.boolean}
_REGISTERS = (numba.types.CPointer(numba.types.int64), numba.types.CPointer(numba.types.float64), numba.types.CPointer(numba.types.uint8))
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
    function = numba.njit(body)
    omitted = list(inspect.signature(body).parameters.values())[len(kinds) :]
    parameters = (*(_KINDS[kind] for kind in kinds), *(numba.types.Omitted(parameter.default) for parameter in omitted))
    try:
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
    arguments, count, is_float = _gathered(kinds), len(kinds), result == "f"

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


def _gathered(kinds: str) -> Any:
    """Return a function that gives the registers of these kinds, from `first` on, as a tuple."""
    gathered = numba.njit(lambda ints, floats, step, first: ())
    for place, kind in enumerate(kinds):
        gathered = _with_register(gathered, place, kind)
    return gathered


def _with_register(others: Any, place: int, kind: str) -> Any:
    """Return a function that gives the tuple of `others` and one register more, `place` behind the first."""
    if kind == "f":
        return numba.njit(lambda ints, floats, step, first: (*others(ints, floats, step, first), floats[(first + place) * step]))
    if kind == "b":
        return numba.njit(lambda ints, floats, step, first: (*others(ints, floats, step, first), ints[(first + place) * step] != 0))
    return numba.njit(lambda ints, floats, step, first: (*others(ints, floats, step, first), ints[(first + place) * step]))
