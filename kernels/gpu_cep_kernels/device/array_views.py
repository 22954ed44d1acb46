"""Keep the form in which kernels take an array of another library, for as long as the array is there.

Making it takes longer than a launch of a kernel without arrays: numba reads a dictionary and makes
four objects.
"""

from __future__ import annotations

import weakref
from typing import Any

from gpu_cep_kernels.compile.jit import device_view
from gpu_cep_kernels.device.interface import Array


class ArrayViews:
    """Hold the views of arrays that are still there, by the arrays' identities; threads may share it."""

    def __init__(self) -> None:
        self._views: dict[int, Any] = {}
        self._watched: dict[int, weakref.ref[Any]] = {}

    def __len__(self) -> int:
        """Return how many arrays are viewed."""
        return len(self._views)

    def of(self, value: Any) -> Any:
        """Return arguments with their arrays, alone or in (named) tuples, as kernels take them."""
        if id(value) in self._views:
            return self._views[id(value)]
        if hasattr(value, "__cuda_array_interface__"):
            return self._view(value)
        if isinstance(value, tuple):
            parts = [self.of(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    def _view(self, array: Array) -> Any:
        """Return a new view of an array; neither it nor this object keeps the array."""
        number, view = id(array), device_view(array)
        # another array may get the number once this one is gone, and no sooner
        self._watched[number] = weakref.ref(array, lambda _: self._forget(number))
        self._views[number] = view
        return view

    def _forget(self, number: int) -> None:
        """Drop the view of an array that is gone."""
        self._views.pop(number, None)
        self._watched.pop(number, None)
