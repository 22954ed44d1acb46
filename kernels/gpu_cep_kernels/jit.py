"""Compilation of kernels and scalar rules; the only file that imports numba.

A *rule* is a plain scalar function, the one place where a piece of semantics
stands. A *kernel* is declared once and both drivers follow from its
declaration (see :mod:`gpu_cep_kernels.launch` and
:mod:`gpu_cep_kernels.device`).
"""

from __future__ import annotations

import hashlib
import inspect
import types
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numba
import numpy as np

from gpu_cep_kernels import entries

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Kernels allocate nothing, as on CUDA: without numba's run time there is no reference counting in hot loops either.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


@cache
def _digest() -> str:
    """A digest of all sources of this package."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def _keyed(function: Any, key: str, names: dict[str, Any] | None = None) -> Any:
    """`function` with `key` as a closure cell, and `names` for globals if given.

    Numba's disk cache looks at the caller's file only, but at its closure too:
    with the digest of all sources there, a rule changed in another file is
    never served stale.
    """
    code = function.__code__
    if code.co_freevars:
        raise TypeError(f"{function.__name__}: a kernel must not be a closure")
    keyed = types.FunctionType(
        code.replace(co_freevars=("_key",)),
        function.__globals__ if names is None else names,
        function.__name__,
        function.__defaults__,
        (types.CellType(key),),
    )
    keyed.__module__, keyed.__qualname__, keyed.__doc__ = function.__module__, function.__qualname__, function.__doc__
    keyed.__annotations__ = function.__annotations__
    return keyed


def rule(function: Function) -> Function:
    """A scalar rule: inlined into the kernels that call it."""
    return cast(Function, numba.njit(forceinline=True, **_OPTIONS)(function))


def subroutine(function: Function) -> Function:
    """A rule that is called, not inlined: for what is long and seldom needed, so that it is compiled once for all its callers."""
    return cast(Function, numba.njit(**_OPTIONS)(function))


def exact_product(left: float, right: float) -> float:
    """``left * right``, rounded once: on CUDA a plain product may be contracted with a sum to one fused operation."""
    return left * right


def exact_remainder(left: float, right: float) -> float:
    """The exact remainder of ``left / right``, with the sign of `left`: on CUDA ``%`` rounds the quotient."""
    return np.fmod(left, right)


# not strict: annotations would make the signatures differ
@numba.extending.overload(exact_product, strict=False)
def _product_on_cpu(left: Any, right: Any) -> Callable[[float, float], float]:
    return lambda left, right: left * right


@numba.extending.overload(exact_remainder, strict=False)
def _remainder_on_cpu(left: Any, right: Any) -> Callable[[float, float], float]:
    return lambda left, right: np.fmod(left, right)


# What a CUDA thread does, by whether the kernel is parallel, and whether it has a slot or returns something.
_ENTRIES = {
    (True, False): entries.for_each,
    (True, True): entries.for_each_slotted,
    (False, False): entries.once,
    (False, True): entries.once_with_result,
}


class Kernel(Generic[Arguments, Result]):
    """A kernel: called, it runs compiled on the CPU, in the calling thread.

    A *parallel* kernel's parameters begin with ``low, high``: it works on the
    indices [low, high) of its range (events, windows, streams, matches), each
    on its own, and indexes every array absolutely. The CPU hands long slices
    to threads; on CUDA a thread has a slice of one. A third parameter `slot`
    tells such calls at work at the same time apart: their rows of scratch.
    It returns nothing.

    A *sequential* kernel passes over a whole batch and carries what it found
    along, or carries on a search. A device uses a parallel primitive in its
    place (:mod:`gpu_cep_kernels.primitives`), but can run it, in one thread.
    """

    def __init__(self, body: Callable[Arguments, Result], parallel: bool) -> None:
        self.body = body
        self.parallel = parallel
        self.__name__, self.__doc__ = body.__name__, body.__doc__
        names = tuple(inspect.signature(body).parameters)
        if parallel != (names[:2] == ("low", "high")):
            raise TypeError(f"{body.__name__}: parallel kernels, and no others, begin with the parameters low, high")
        self.slotted = names[2:3] == ("slot",)
        self.returns = inspect.signature(body).return_annotation not in (None, "None")
        if parallel and self.returns:
            raise TypeError(f"{body.__name__}: a parallel kernel returns nothing")

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return cast(Result, self.compiled(*args, **kwargs))

    @cached_property
    def compiled(self) -> Any:
        """The CPU's form: compiled on first use for each set of array types, then kept on disk."""
        return numba.njit(nogil=True, cache=True, **_OPTIONS)(_keyed(self.body, _digest()))

    @cached_property
    def cuda(self) -> Any:
        """The CUDA form: ``cuda[blocks, threads, stream](size, arguments)``, one thread per index as far as threads go.

        `arguments` is a tuple of all arguments but low, high and slot. A
        sequential kernel takes 1 for `size`, or, if it returns something, an
        array for that. Under the simulator the uncompiled body runs.
        """
        cuda = _cuda()
        entry = _ENTRIES[self.parallel, self.slotted or self.returns]
        body = plain(self) if simulated() else self.compiled
        keyed = _keyed(entry, f"{_digest()} {self.body.__module__}.{self.__name__}", {"cuda": cuda, "body": body})
        # a file of its own in the cache, since processes that write to one at the same time may mix up what is in it
        keyed.__name__ = keyed.__qualname__ = self.__name__
        return cuda.jit(keyed) if simulated() else cuda.jit(cache=True)(keyed)


def kernel(function: Callable[Arguments, Result]) -> Kernel[Arguments, Result]:
    """Declare a parallel kernel."""
    return Kernel(function, parallel=True)


def sequential(function: Callable[Arguments, Result]) -> Kernel[Arguments, Result]:
    """Declare a sequential kernel."""
    return Kernel(function, parallel=False)


def plain(declared: Kernel[Any, Any]) -> Callable[..., Any]:
    """The kernel as the Python function that was written, rules and all, uncompiled."""
    return _plain(declared.body)


@cache
def _plain(function: Any) -> Callable[..., Any]:
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
    """numba.cuda, prepared for these kernels."""
    from numba import cuda

    if not simulated():
        from numba.cuda import libdevice
        from numba.cuda.extending import overload  # type: ignore[attr-defined]

        @overload(exact_product, target="cuda", strict=False)
        def _product_on_cuda(left: Any, right: Any) -> Callable[[float, float], float]:
            return lambda left, right: libdevice.dmul_rn(left, right)

        @overload(exact_remainder, target="cuda", strict=False)
        def _remainder_on_cuda(left: Any, right: Any) -> Callable[[float, float], float]:
            return lambda left, right: libdevice.fmod(left, right)

    return cuda


def device_view(array: Any) -> Any:
    """An array of another library on the device, as CUDA kernels take it; nothing is copied, and no stream is waited for."""
    return _cuda().as_cuda_array(array, sync=False)


@cache
def external_stream(pointer: int) -> Any:
    """Another library's CUDA stream, as a launch takes it; one object for each, so that numba knows a launch again."""
    return _cuda().external_stream(pointer)
