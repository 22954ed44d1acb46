"""A device whose arrays, like CuPy's, never mix with the host's: NumPy inside, with everything refused that CuPy would refuse.

An array of its module is no NumPy array: what takes NumPy arrays, compiled
kernels and Arrow included, cannot take it by mistake. Reductions give arrays
of no dimension, not scalars. Those that CuPy would compile for seconds on the
machine are refused. What the arrays take of the device's memory is counted.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from threading import RLock
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.interface import HostArray
from gpu_cep_kernels.device.selection import SimulatedDevice
from tests.cupy_signatures import refusal

# What explicitly takes an array of the host to the device.
_UPLOADS = ("array", "asarray", "ascontiguousarray")
# CuPy's pool gives out memory in pieces of so many bytes.
_PIECE = 512
# What functions of CuPy's take beside their results, bytes per element: copies, the scratch of radix sorts and scans.
_WORKSPACES = {"argsort": 24, "flatnonzero": 8, "nonzero": 8, "cumsum": 1, "unique": 48}
_BY_FLAGS = 16  # indexing with flags
# The types of which CuPy comes with sums compiled; others are converted on the way.
_SUMMED = ("int64", "uint64", "float32", "float64")


class Ledger:
    """Bytes of the device's memory that arrays hold, and the most that they have held; an array and its views are counted once.

    The peak includes what functions of CuPy's hold while they run.
    """

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self._held: dict[int, weakref.ref[HostArray]] = {}
        # a thread of its own uploads; an array that is let go calls back in the midst of anything
        self._lock = RLock()

    def note(self, array: HostArray) -> None:
        """Count the memory that an array lies in, for as long as it is there."""
        owner = _owner(array)
        if owner is None or id(owner) in self._held:
            return
        number, size = id(owner), -(-owner.nbytes // _PIECE) * _PIECE

        def release(_: object) -> None:
            with self._lock:
                del self._held[number]
                self.live -= size

        with self._lock:
            self._held[number] = weakref.ref(owner, release)
            self.live += size
            self.peak = max(self.peak, self.live)

    def lend(self, size: int) -> None:
        """So many bytes are held for a moment."""
        self.peak = max(self.peak, self.live + size)

    def restart(self) -> None:
        """Forget the peak so far."""
        self.peak = self.live

    def called(self, name: str, given: Any, result: Any) -> None:
        """A function of the module, an operator or a method was called with what the device and the host hold, and gave `result`."""

    def waited(self) -> None:
        """The host waits for the device, since it asks for a value."""


def _owner(array: HostArray) -> HostArray | None:
    """The array that a view is of; None where the memory is not NumPy's."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None else None


class StrictArray(NDArrayOperatorsMixin):
    """An array on the device."""

    def __init__(self, held: HostArray, module: StrictModule) -> None:
        self._held = held
        self._module = module
        module.ledger.note(held)

    def __repr__(self) -> str:
        return f"StrictArray({self._held!r})"

    def __array__(self, *_: Any, **__: Any) -> HostArray:
        raise TypeError("a device array is not implicitly converted to NumPy's: download it")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        called, given = getattr(ufunc, method), opened(inputs)
        result = called(*given, **opened(options))
        self._module.ledger.called(ufunc.__name__, given, result)
        return _wrapped(result, self._module)

    def __array_function__(self, function: Any, _: Any, arguments: Any, options: Any) -> Any:
        return getattr(self._module, function.__name__)(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._module.reference is not None and not hasattr(self._module.reference.ndarray, name):
            raise AttributeError(f"CuPy's arrays have no attribute {name!r}")
        if name in ("any", "all"):
            raise AttributeError(f"CuPy compiles {name!r} on the machine")
        value = getattr(self._held, name)
        like = getattr(self._module.reference and self._module.reference.ndarray, name, None)
        return _guarded(value, self._module, like=like) if callable(value) else _wrapped(value, self._module)

    def __getitem__(self, index: Any) -> Any:
        held = opened(index)
        found = self._held[held]
        self._module.ledger.called("getitem", (self._held, held), found)
        picked = _wrapped(found, self._module)
        if isinstance(held, np.ndarray) and held.dtype == np.bool_:
            self._module.ledger.lend(_BY_FLAGS * held.size)
        return picked

    def __setitem__(self, index: Any, value: Any) -> None:
        held, filled = opened(index), opened(value)
        self._held[held] = filled
        self._module.ledger.called("setitem", (held, filled), self._held[held])

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Any]:
        return (_wrapped(part, self._module) for part in self._held)

    def __bool__(self) -> bool:
        self._module.ledger.waited()
        return bool(self._held)

    def __int__(self) -> int:
        self._module.ledger.waited()
        return int(self._held)

    def __index__(self) -> int:
        self._module.ledger.waited()
        return self._held.__index__()

    def __float__(self) -> float:
        self._module.ledger.waited()
        return float(self._held)


class StrictModule:
    """NumPy's functions over strict arrays: those, and with those parameters, that the module `reference` has too.

    Without a reference all functions of NumPy are there. `ledger` counts what
    the arrays hold.
    """

    ndarray = StrictArray

    def __init__(self, reference: Any = None, ledger: Ledger | None = None) -> None:
        self.reference = reference
        self.ledger = ledger or Ledger()

    def __getattr__(self, name: str) -> Any:
        if self.reference is not None and not hasattr(self.reference, name):
            raise AttributeError(f"CuPy has no {name!r}")
        value = getattr(np, name)
        if isinstance(value, type) or not callable(value):
            return value
        return _guarded(value, self, uploads=name in _UPLOADS, like=getattr(self.reference, name, None))

    def asnumpy(self, array: StrictArray) -> HostArray:
        """A copy on the host."""
        self.ledger.waited()
        return _of_device(array).copy()


class StrictDevice(SimulatedDevice):
    """The simulator, with arrays that only an upload makes from the host's, and only a download makes the host's."""

    name = "CUDA simulator with strict arrays"

    def __init__(self, reference: Any = None, ledger: Ledger | None = None) -> None:
        super().__init__(StrictModule(reference, ledger))

    def upload(self, array: HostArray) -> StrictArray:
        """A copy."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"an upload takes arrays of the host, not {type(array).__name__}")
        return StrictArray(array.copy(), self.xp)

    def download(self, array: StrictArray) -> HostArray:
        """A copy."""
        self.xp.ledger.waited()
        return _of_device(array).copy()

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        """Run the kernel on what the arrays hold."""
        super().launch(kernel, int(size), *opened(arguments))


def _of_device(array: Any) -> HostArray:
    if not isinstance(array, StrictArray):
        raise TypeError(f"a download takes arrays of the device, not {type(array).__name__}")
    return array._held


def opened(value: Any, uploads: bool = False) -> Any:
    """What NumPy takes in place of `value`: strict arrays opened, arrays of the host refused."""
    if isinstance(value, StrictArray):
        return value._held
    if isinstance(value, np.ndarray) and not uploads:
        raise TypeError("an array of the host among those of the device: upload it")
    if isinstance(value, tuple):
        parts = [opened(part, uploads) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [opened(part, uploads) for part in value]
    if isinstance(value, dict):
        return {name: opened(part, uploads) for name, part in value.items()}
    return value


def _wrapped(value: Any, module: StrictModule) -> Any:
    """A result of NumPy's as the device gives it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(np.asarray(value), module)
    if isinstance(value, tuple):
        return tuple(_wrapped(part, module) for part in value)
    return value


def _guarded(function: Callable[..., Any], module: StrictModule, uploads: bool = False, like: Any = None) -> Callable[..., Any]:
    """`function` over strict arrays, called as `like` may be called."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        _check_parameters(like, arguments, options)
        of_array = getattr(function, "__self__", None)
        if function.__name__ == "sum" and isinstance(of_array, np.ndarray):
            _check_sum(of_array, arguments, options)
        given = opened(arguments, uploads)
        found = function(*given, **opened(options, uploads))
        module.ledger.called(function.__name__, (*given, of_array) if isinstance(of_array, np.ndarray) else given, found)
        result = _wrapped(found, module)
        if function.__name__ in _WORKSPACES:
            module.ledger.lend(_WORKSPACES[function.__name__] * np.size(opened(arguments)[0]))
        return result

    return call


def _check_sum(summed: HostArray, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse a sum that CuPy compiles with a library: all but those of one type, or over the first axis."""
    kind = options.get("dtype", summed.dtype)
    compiled = options.keys() <= {"dtype"} and kind == summed.dtype and summed.dtype.name in _SUMMED
    if arguments or not (compiled or options.get("axis") == 0):
        raise TypeError(f"CuPy compiles this sum of {summed.dtype} on the machine")


def _check_parameters(like: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse what is no parameter of `like`, as far as its signature is known."""
    refused = "" if like is None else refusal(like, len(arguments), tuple(options))
    if refused:
        raise TypeError(f"CuPy's {like.__name__}: {refused}")
