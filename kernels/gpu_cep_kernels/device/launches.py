"""Launch kernels by CUDA's driver, with their arguments laid out here.

Numba lays out arguments object by object for each launch, which takes longer than most kernels run.
So it is asked to compile a kernel for arguments of some types, once, and what it compiled is
launched.
"""

from __future__ import annotations

import struct
import threading
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import Kernel, device_view

# CUDA's limit is 32,764 bytes of parameters; each takes a word here.
_MOST_WORDS = 1 << 12
_WORD = 8


def lay_out(value: Any, words: list[int], types: list[Any]) -> None:
    """Append the parameters of an argument to `words`, as numba's kernels take them, and to `types` what its type depends on.

    An array is seven words for one axis and two more for each other one: neither owner nor parent,
    elements, bytes of one, address, shape and strides. A tuple is its parts. A number is one word,
    of which its type takes the first bytes.

    Raises
    ------
    TypeError
        It is no array, tuple or number.
    """
    kind = type(value)
    if isinstance(value, tuple):
        types.append((kind, len(value)))
        for part in value:
            lay_out(part, words, types)
    elif kind is int or kind is bool:
        words.append(value)
        types.append(kind)
    elif kind is float:
        words.append(_first_word(struct.pack("<d", value)))
        types.append(kind)
    elif isinstance(value, np.generic):
        words.append(_first_word(value.tobytes()))
        types.append(value.dtype)
    elif (flags := getattr(value, "flags", None)) is not None:
        words += (0, 0, value.size, value.itemsize, value.data.ptr, *value.shape, *value.strides)
        types.append((value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous))
    else:
        raise TypeError(f"a kernel takes arrays, tuples and numbers, and no {kind.__name__}")


def _first_word(held: bytes) -> int:
    """Return up to eight bytes as a word that begins with them."""
    return int.from_bytes(held.ljust(_WORD, b"\0"), "little", signed=True)


class _Room(threading.local):
    """Hold a thread's parameters of one launch, and their addresses; CUDA reads both during the call."""

    def __init__(self) -> None:
        self.words = np.empty(_MOST_WORDS, np.int64)
        self._addresses = self.words.ctypes.data + _WORD * np.arange(_MOST_WORDS)
        self.address = self._addresses.ctypes.data


class Launches:
    """Launch kernels on the current device, of which there is one; `driver` is CuPy's module of CUDA's driver."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._functions: dict[tuple[Kernel[Any, Any], tuple[Any, ...]], int] = {}
        self._room = _Room()

    def launch(self, kernel: Kernel[Any, Any], blocks: int, threads: int, stream: int, size: int, arguments: tuple[Any, ...]) -> None:
        """Launch a kernel on `size` indices with so many blocks of so many threads, in the stream at the address `stream`."""
        words, types = [int(size)], list[Any]()
        lay_out(arguments, words, types)
        asked = kernel, tuple(types)
        function = self._functions.get(asked)
        if function is None:
            function = self._functions[asked] = _compiled(kernel, words[0], arguments)
        self._room.words[: len(words)] = words
        self._driver.launchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, self._room.address, 0)


def _compiled(kernel: Kernel[Any, Any], size: int, arguments: tuple[Any, ...]) -> int:
    """Return CUDA's handle of the form of a kernel for arguments of these types, in the current context."""
    dispatcher = kernel.cuda
    form = dispatcher.compile(tuple(dispatcher.typeof_pyval(value) for value in (size, as_numba_takes(arguments))))
    form.bind()
    return int(form._codelibrary.get_cufunc().handle)


def as_numba_takes(value: Any) -> Any:
    """Return arguments with their arrays, alone or in (named) tuples, as views that numba knows the types of."""
    if hasattr(value, "__cuda_array_interface__"):
        return device_view(value)
    if isinstance(value, tuple):
        parts = [as_numba_takes(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
