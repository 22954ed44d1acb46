"""Define the operations that are compiled differently for each kind of processor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir


def exact_product(left: float, right: float) -> float:
    """Return ``left * right``, rounded by itself.

    On CUDA a plain product may be fused with a sum, and both rounded once.
    """
    return left * right


def exact_remainder(left: float, right: float) -> float:
    """Return the exact remainder of ``left / right``, with the sign of `left`; on CUDA ``%`` rounds the quotient."""
    return np.fmod(left, right)


def count_ones(word: np.uint32) -> int:
    """Return how many bits of a uint32 are set, which a card has an instruction for."""
    return int(word).bit_count()


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
def _population(typing: Any, word: Any) -> Any:
    """Return code that counts the bits of a uint32 that are set."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.zext(builder.ctpop(values[0]), context.get_value_type(numba.types.int64))

    return numba.types.int64(numba.types.uint32), generate


@numba.extending.overload(count_ones, strict=False)
def _ones_on_cpu(word: Any) -> Callable[[Any], int]:
    """Return what numba compiles for :func:`count_ones` on the CPU."""
    count = cast(Callable[..., int], _population)
    return lambda word: count(np.uint32(word))


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


def overload_on_cuda() -> None:
    """Tell numba what it compiles for these operations on a card."""
    from numba import cuda
    from numba.cuda import libdevice
    from numba.cuda.extending import overload  # type: ignore[attr-defined]

    @overload(exact_product, target="cuda", strict=False)
    def _product_on_cuda(left: Any, right: Any) -> Callable[[float, float], float]:
        return lambda left, right: libdevice.dmul_rn(left, right)

    @overload(count_ones, target="cuda", strict=False)
    def _ones_on_cuda(word: Any) -> Callable[[Any], int]:
        return lambda word: np.int64(cuda.popc(np.uint32(word)))  # type: ignore[attr-defined, return-value]

    @overload(call_scalar, target="cuda", strict=False)
    def _call_on_cuda(address: Any, ints: Any, floats: Any, nulls: Any, first: Any, target: Any) -> Callable[..., int]:
        return lambda address, ints, floats, nulls, first, target: 2

    @overload(exact_remainder, target="cuda", strict=False)
    def _remainder_on_cuda(left: Any, right: Any) -> Callable[[float, float], float]:
        return lambda left, right: libdevice.fmod(left, right)
