"""Kernels compiled for CUDA with neither device nor driver: PTX, machine code, and what it takes of a multiprocessor.

Needs the wheels of numba-cuda, NVVM and nvJitLink.
"""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numba
import numpy as np

from gpu_cep_kernels.compile.jit import Kernel, plain
from tests.kernel_cases import CASES, KernelCase

WHEELS = ("numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvrtc", "nvidia-nvjitlink")
Capability = tuple[int, int]
CAPABILITIES: tuple[Capability, ...] = ((8, 0), (9, 0))

# The parameters of a kernel's entry: arrays of bytes, or numbers of so many bits.
_ENTRY = re.compile(r"\.entry [^(]*\((?P<parameters>[^)]*)\)")
_PARAMETER = re.compile(r"\.param (?:\.align \d+ )?\.[a-z](?P<bits>\d+) \w+(?:\[(?P<count>\d+)\])?")
# A product that was, or may be, contracted with a sum, but for libdevice's fmod, which multiplies by 2**54 exactly; reference counts;
# a uint64 that is rounded, as numba does to compare it with a number that may be negative.
_FORBIDDEN = re.compile(r"fma\.|mul\.f(?!.* 0d4350000000000000;)|NRT_|cvt\.rn\.f64\.u64")
_REGISTERS = re.compile(r"used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True, slots=True)
class Resources:
    """What one thread takes: registers, and bytes of stack; and the bytes that are spilled to memory and loaded again."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int


@dataclass(frozen=True, slots=True)
class MachineCode:
    """A kernel in the machine code of one architecture."""

    cubin: bytes
    resources: Resources


def missing_wheels() -> list[str]:
    """Return the packages that compiling needs and that are not installed."""
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    return [wheel for wheel in WHEELS if wheel not in installed]


def arguments_of(case: KernelCase) -> tuple[Any, ...]:
    """Return arguments for few events; kernels that help to make them run uncompiled, so that asking for types compiles nothing."""
    with mock.patch.object(Kernel, "__call__", lambda kernel, *given: plain(kernel)(*given)), np.errstate(all="ignore"):
        return case.make(3, np.random.default_rng(0), 1).arguments


@cache
def types_of(case: KernelCase) -> Any:
    """Return the types with which the kernel's CUDA form is called: the size, or an array for its result, and a tuple of all arguments."""
    arguments = arguments_of(case)
    first = numba.int64[::1] if case.kernel.returns else numba.int64
    return numba.void(first, numba.typeof(arguments))


def distinct_cases() -> list[KernelCase]:
    """Return the first case of each kernel and each set of argument types."""
    distinct: dict[tuple[str, str], KernelCase] = {}
    for case in CASES:
        distinct.setdefault((case.kernel.__name__, str(types_of(case))), case)
    return list(distinct.values())


def ptx(case: KernelCase, capability: Capability) -> str:
    """Return the PTX of a case's kernel for a compute capability."""
    return ptx_of(case.kernel, types_of(case), capability)


def ptx_of(kernel: Kernel[..., Any], types: Any, capability: Capability) -> str:
    """Return a kernel's PTX for a compute capability; its CUDA form is called with arguments of certain `types`."""
    from numba.cuda import compiler

    device = SimpleNamespace(compute_capability=capability)
    # the rules that a kernel calls are compiled for the current device
    with mock.patch("numba.cuda.dispatcher.get_current_device", return_value=device):
        text, _ = compiler.compile(kernel.cuda.py_func, types, cc=capability, output="ptx", device=False, abi="numba")
    return str(text)


def llvm_code_of(kernel: Kernel[..., Any], types: Any, capability: Capability) -> list[str]:
    """Return the modules of LLVM code that NVVM takes of a kernel, callers before those that they call, instead of its PTX."""
    taken = list[str]()

    def take(texts: list[str], **_: Any) -> bytes:
        taken.extend(texts)
        return b""

    with mock.patch("numba.cuda.codegen.nvvm.compile_ir", take):
        ptx_of(kernel, types, capability)
    return taken


def forbidden(text: str) -> set[str]:
    """Return what PTX has of what no kernel may have: products not rounded by themselves, uint64 that are, and reference counts."""
    return set(_FORBIDDEN.findall(text))


def parameter_bytes(text: str) -> int:
    """Return the bytes that a launch hands to the kernel of some PTX, without what alignment adds."""
    entry = _ENTRY.search(text)
    assert entry is not None, "PTX of a kernel has an entry"
    found = _PARAMETER.finditer(entry["parameters"])
    return sum(int(each["bits"]) // 8 * int(each["count"] or 1) for each in found)


def machine_code(text: str, capability: Capability) -> MachineCode:
    """Return PTX as machine code, and what the linker says of it."""
    from cuda.bindings import nvjitlink

    major, minor = capability
    options = [f"-arch=sm_{major}{minor}", "-O3", "-verbose"]
    source = text.encode()
    linker = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, source, len(source), "kernel")
        nvjitlink.complete(linker)
        log, cubin = bytearray(nvjitlink.get_info_log_size(linker)), bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_info_log(linker, log)
        nvjitlink.get_linked_cubin(linker, cubin)
    finally:
        nvjitlink.destroy(linker)
    return MachineCode(bytes(cubin), _resources(log.decode()))


def _resources(log: str) -> Resources:
    """Return what the entry takes with the library's functions that it calls: the linker speaks last of registers."""
    spills = [tuple(map(int, found)) for found in _SPILLS.findall(log)]
    stack, stores, loads = (max(column) for column in zip(*spills, strict=True))
    return Resources(int(_REGISTERS.findall(log)[-1]), stack, stores, loads)
