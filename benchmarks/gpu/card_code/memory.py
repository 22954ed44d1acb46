"""Place arrays beside memory that nothing may touch, so that what reads or writes beyond an array ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from gpu_cep_kernels.device.interface import HostArray

_PAGE = mmap.PAGESIZE
_MPROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_NO_ACCESS = 0


def guarded(array: HostArray, at_end: bool) -> HostArray:
    """Return a copy of an array of the same layout, with no access to the page after it (`at_end`), or to the one before it."""
    room = -(-array.nbytes // _PAGE) * _PAGE
    memory = mmap.mmap(-1, room + 2 * _PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (begin, begin + _PAGE + room):
        if _MPROTECT(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = _PAGE + (room - array.nbytes if at_end else 0)
    copy: HostArray = np.ndarray(array.shape, array.dtype, memory, offset, _dense_strides(array))
    copy[...] = array
    return copy


def _dense_strides(array: HostArray) -> tuple[int, ...]:
    """Return the strides of an array's copy without gaps, whose axes have the same order."""
    strides: tuple[int, ...] = np.empty_like(array, order="K", subok=False).strides
    return strides


def misaligned(arrays: list[Any]) -> list[str]:
    """Return what arrays lie at no multiple of their elements' sizes: a card refuses to read those."""
    return [f"{each.dtype}{list(each.shape)}" for each in arrays if each.ctypes.data % each.dtype.itemsize]
