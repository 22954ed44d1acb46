"""Compilation of kernels and scalar rules; the only file that imports numba.

A *rule* is a plain scalar function, the one place where a piece of semantics
stands. A *kernel* is a body over a slice ``[low, high)`` of its index range
(events, candidates, streams, matches): the CPU driver hands it long slices
in threads, a CUDA thread is a slice of one.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# Kernels allocate nothing, as on CUDA: without numba's run time there is no reference counting in hot loops either.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


@cache
def _digest() -> str:
    """A digest of all sources of this package."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def _keyed(function: Any) -> Any:
    """`function` with the digest of all sources as a closure cell.

    Numba's disk cache looks at the caller's file only, but at its closure too:
    with the digest there, a rule changed in another file is never served stale.
    """
    code = function.__code__
    if code.co_freevars:
        raise TypeError(f"{function.__name__}: a kernel must not be a closure")
    keyed = types.FunctionType(
        code.replace(co_freevars=("_digest",)), function.__globals__, function.__name__, function.__defaults__, (types.CellType(_digest()),)
    )
    keyed.__module__, keyed.__qualname__, keyed.__doc__ = function.__module__, function.__qualname__, function.__doc__
    keyed.__annotations__ = function.__annotations__
    return keyed


def rule(function: Function) -> Function:
    """A scalar rule: inlined into the kernels that call it."""
    return cast(Function, numba.njit(forceinline=True, **_OPTIONS)(function))


def kernel(function: Function) -> Function:
    """A kernel: compiled on first use for each set of array types, then kept on disk."""
    return cast(Function, numba.njit(nogil=True, cache=True, **_OPTIONS)(_keyed(function)))
