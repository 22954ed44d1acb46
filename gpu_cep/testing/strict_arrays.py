"""A device whose arrays, like CuPy's, never mix with the host's: NumPy inside, with everything refused that CuPy would refuse.

An array of its module is no NumPy array: what takes NumPy arrays, compiled
kernels and Arrow included, cannot take it by mistake. Reductions give arrays
of no dimension, not scalars.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gpu_cep_kernels.device import HostArray
from gpu_cep_kernels.devices import SimulatedDevice
from gpu_cep_kernels.jit import Kernel

# What explicitly takes an array of the host to the device.
_UPLOADS = ("array", "asarray", "ascontiguousarray")


class StrictArray(NDArrayOperatorsMixin):
    """An array on the device."""

    def __init__(self, held: HostArray, reference: Any) -> None:
        self._held = held
        self._reference = reference

    def __repr__(self) -> str:
        return f"StrictArray({self._held!r})"

    def __array__(self, *_: Any, **__: Any) -> HostArray:
        raise TypeError("a device array is not implicitly converted to NumPy's: download it")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        called = getattr(ufunc, method)
        return _wrapped(called(*_held(inputs), **_held(options)), self._reference)

    def __array_function__(self, function: Any, _: Any, arguments: Any, options: Any) -> Any:
        return getattr(StrictModule(self._reference), function.__name__)(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._reference is not None and not hasattr(self._reference.ndarray, name):
            raise AttributeError(f"CuPy's arrays have no attribute {name!r}")
        value = getattr(self._held, name)
        return _guarded(value, self._reference) if callable(value) else _wrapped(value, self._reference)

    def __getitem__(self, index: Any) -> Any:
        return _wrapped(self._held[_held(index)], self._reference)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._held[_held(index)] = _held(value)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Any]:
        return (_wrapped(part, self._reference) for part in self._held)

    def __bool__(self) -> bool:
        return bool(self._held)

    def __int__(self) -> int:
        return int(self._held)

    def __index__(self) -> int:
        return self._held.__index__()

    def __float__(self) -> float:
        return float(self._held)


class StrictModule:
    """NumPy's functions over strict arrays: those, and with those parameters, that the module `reference` has too.

    Without a reference all functions of NumPy are there.
    """

    ndarray = StrictArray

    def __init__(self, reference: Any = None) -> None:
        self._reference = reference

    def __getattr__(self, name: str) -> Any:
        if self._reference is not None and not hasattr(self._reference, name):
            raise AttributeError(f"CuPy has no {name!r}")
        value = getattr(np, name)
        if isinstance(value, type) or not callable(value):
            return value
        return _guarded(value, self._reference, uploads=name in _UPLOADS, like=getattr(self._reference, name, None))

    def asnumpy(self, array: StrictArray) -> HostArray:
        """A copy on the host."""
        return _of_device(array).copy()


class StrictDevice(SimulatedDevice):
    """The simulator, with arrays that only an upload makes from the host's, and only a download makes the host's."""

    name = "CUDA simulator with strict arrays"

    def __init__(self, reference: Any = None) -> None:
        super().__init__(StrictModule(reference))

    def upload(self, array: HostArray) -> StrictArray:
        """A copy."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"an upload takes arrays of the host, not {type(array).__name__}")
        return StrictArray(array.copy(), self.xp._reference)

    def download(self, array: StrictArray) -> HostArray:
        """A copy."""
        return _of_device(array).copy()

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        """Run the kernel on what the arrays hold."""
        super().launch(kernel, int(size), *_held(arguments))


def _of_device(array: Any) -> HostArray:
    if not isinstance(array, StrictArray):
        raise TypeError(f"a download takes arrays of the device, not {type(array).__name__}")
    return array._held


def _held(value: Any, uploads: bool = False) -> Any:
    """What NumPy takes in place of `value`: strict arrays opened, arrays of the host refused."""
    if isinstance(value, StrictArray):
        return value._held
    if isinstance(value, np.ndarray) and not uploads:
        raise TypeError("an array of the host among those of the device: upload it")
    if isinstance(value, tuple):
        parts = [_held(part, uploads) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_held(part, uploads) for part in value]
    if isinstance(value, dict):
        return {name: _held(part, uploads) for name, part in value.items()}
    return value


def _wrapped(value: Any, reference: Any) -> Any:
    """A result of NumPy's as the device gives it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(np.asarray(value), reference)
    if isinstance(value, tuple):
        return tuple(_wrapped(part, reference) for part in value)
    return value


def _guarded(function: Callable[..., Any], reference: Any, uploads: bool = False, like: Any = None) -> Callable[..., Any]:
    """`function` over strict arrays, called as `like` may be called."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        _check_parameters(like, arguments, options)
        return _wrapped(function(*_held(arguments, uploads), **_held(options, uploads)), reference)

    return call


def _check_parameters(like: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse what is no parameter of `like`, as far as its signature is known."""
    try:
        signature = inspect.signature(like)
    except (TypeError, ValueError):
        return
    signature.bind(*arguments, **options)
