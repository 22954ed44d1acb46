"""Compile kernels and scalar rules; outside this folder nothing imports numba.

A *rule* is a plain scalar function, the one place where a piece of semantics
stands. A *kernel* is declared once. Both drivers follow from its
declaration (see :mod:`gpu_cep_kernels.compile.launch` and
:mod:`gpu_cep_kernels.device.interface`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import types
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

import numba
import numpy as np

from gpu_cep_kernels.compile import entries, kernel_cache
from gpu_cep_kernels.compile.bundles import lay_out
from gpu_cep_kernels.compile.dispatchers import KernelDispatcher, RuleDispatcher
from gpu_cep_kernels.compile.operations import overload_on_cuda
from gpu_cep_kernels.compile.pipelines import ApartRuleCompiler, InlineRuleCompiler, KernelCompiler, RuleCompiler
from gpu_cep_kernels.compile.source_keys import PACKAGE, describe_code, source_key

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Kernels allocate nothing, as on CUDA: without numba's run time there is no reference counting in hot loops either.
_OPTIONS: dict[str, Any] = {"nopython": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_OPTIONS_OF_KERNELS = _OPTIONS | {"nogil": True}
# Only kernels call rules: without an entry for Python, which unpacks all tables, they compile in half the time.
_OPTIONS_OF_RULES = _OPTIONS | {"no_cpython_wrapper": True}


def _source_of(value: Any) -> tuple[types.FunctionType, str] | None:
    """Return the function that a kernel's global stands for, and how it is compiled.

    It is None if the global is no function of this package.
    """
    if isinstance(value, Kernel):
        return cast(types.FunctionType, value.body), "kernel"
    if isinstance(value, RuleDispatcher):
        return cast(types.FunctionType, value.py_func), value.compiled_how
    if isinstance(value, types.FunctionType) and value.__module__.partition(".")[0] == PACKAGE:
        return value, "function"
    return None


@cache
def compilers_key() -> str:
    """Return the digest of this folder's code that shapes compiled kernels."""
    named = ("bundles", "cuda_pipelines", "dispatchers", "elements", "entries", "indexes", "jit", "known_calls", "operations", "pipelines")
    # found, not imported: numba-cuda is loaded with one of them
    modules = [importlib.util.find_spec(f"{__package__}.{name}") for name in named]
    codes = [module.loader.get_code(module.name) for module in modules]  # type: ignore[union-attr]
    return hashlib.sha256(repr([describe_code(code) for code in codes]).encode()).hexdigest()


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


def rule(function: Function) -> Function:
    """Declare a scalar rule; LLVM decides where it is called, and where it is inlined."""
    return _declare_rule(function, RuleCompiler)


def inline_rule(function: Function) -> Function:
    """Declare a scalar rule that the CPU inlines in every caller: its loop is short, and its values are at hand there."""
    return _declare_rule(function, InlineRuleCompiler)


def apart_rule(function: Function) -> Function:
    """Declare a scalar rule that the CPU inlines nowhere: it is called seldom, and would take registers from its callers' loops."""
    return _declare_rule(function, ApartRuleCompiler)


def _declare_rule(function: Function, compiler: type[RuleCompiler]) -> Function:
    return cast(Function, RuleDispatcher(function, targetoptions=_OPTIONS_OF_RULES, pipeline_class=compiler))


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
    row of scratch by it. No index is negative: it would count from no array's end.

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
        result: Result = self.compiled(*args, **kwargs)
        return result

    @cached_property
    def sources(self) -> str:
        """Return the digest of the kernel's code and of all that it reaches."""
        return source_key(self.body, _source_of)

    @cached_property
    def key(self) -> str:
        """Return the key of all that the kernel is compiled from and by, whatever the types and the device."""
        return f"{self.sources} {compilers_key()}"

    @cached_property
    def compiled(self) -> Any:
        """Return the CPU's form: compiled on first use for each set of array types, then kept on disk."""
        if self.body.__closure__:
            raise TypeError(f"{self.__name__}: a kernel must not be a closure")
        dispatcher = KernelDispatcher(self.body, targetoptions=_OPTIONS_OF_KERNELS, pipeline_class=KernelCompiler)
        dispatcher._cache = kernel_cache.KernelCache(f"{self.body.__module__.rpartition('.')[2]}.{self.__name__}", self.key)
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
        keyed = _bind(entry, self.key, {"cuda": cuda, "body": body, "uint32": np.uint32, "by_address": _by_address()})
        # a file of its own in the cache, since processes that write to one at the same time may mix up what is in it
        keyed.__name__ = keyed.__qualname__ = f"{self.body.__module__.rpartition('.')[2]}.{self.__name__}"
        if simulated():
            return cuda.jit(keyed)
        # numba-cuda compiles to PTX in any case, which nothing reads if it then links by lto
        dispatcher = cuda.jit(keyed, lto=False)
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
    """Return whether CUDA kernels run on numba's simulator: NUMBA_ENABLE_CUDASIM was set when numba was imported."""
    return bool(numba.config.ENABLE_CUDASIM)  # type: ignore[attr-defined]


@cache
def _cuda() -> Any:
    """Return numba.cuda, prepared for these kernels."""
    from numba import cuda

    if not simulated():
        from gpu_cep_kernels.compile.cuda_pipelines import compile_kernels_lean, share_forms_of_rules

        overload_on_cuda()
        compile_kernels_lean()
        share_forms_of_rules()
    return cuda


@cache
def _by_address() -> Callable[[Any], Any]:
    """Return what an entry does to a tuple of arguments before it hands them to rules: on a card, named tuples are laid out in memory."""
    if simulated():
        return lambda arguments: arguments
    from numba.cuda.extending import intrinsic

    return cast(Callable[[Any], Any], intrinsic(lay_out))


def device_view(array: Any) -> Any:
    """Return another library's array on the device as CUDA kernels take it.

    Nothing is copied, and no stream is waited for. The result does not keep the array.
    """
    return _cuda().from_cuda_array_interface(array.__cuda_array_interface__, owner=None, sync=False)
