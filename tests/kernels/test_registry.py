"""Every kernel: it has a test, touches no reference count, and compiles for CUDA."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import pkgutil
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numba
import pyarrow as pa
import pytest

import gpu_cep
import gpu_cep_kernels
from gpu_cep_kernels.jit import Kernel

OPTIONS = ("error_model", "_nrt")


def modules():
    return [importlib.import_module(f"gpu_cep_kernels.{found.name}") for found in pkgutil.iter_modules(gpu_cep_kernels.__path__)]


def kernels():
    """The kernels (and not the rules inlined into them) by name."""
    return {
        name: value
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, Kernel) and value.body.__module__ == module.__name__
    }


KERNELS = kernels()


def imported(path):
    tree = ast.parse(path.read_text())
    return {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}


# Held to the oracle, through the engine.
BY_CONFORMANCE = {"enumerate_chain"}


def test_every_kernel_has_a_test():
    tested = set().union(*(imported(path) for path in Path(__file__).parent.glob("*.py")))
    assert KERNELS.keys() - tested == BY_CONFORMANCE
    assert len(KERNELS) > 20


QUERIES = [
    ("PATTERN SEQ(A a, B b+) WITHIN 10", {}),
    ("PATTERN SEQ(A a, B b+) WITHIN 10", {"partition_by": "k", "order_by": "k", "ties": "position"}),
    ("PATTERN SEQ(A a, b{2,}) WHERE a.x < b.x AND a.y + b.y > 0 AND (b.x * 2 > 3 OR b.y > 1) WITHIN 10", {"partition_by": "k"}),
    ("PATTERN SEQ(AND(A a, B b+), c) WHERE a.x + b.x < c.x WITHIN 9 EVENTS", {"strategy": "skip_till_any_match"}),
    (
        "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x AND a.y + b.y > 0 WITHIN 10",
        {"strategy": "skip_till_any_match", "algorithm": "lazy_chain"},
    ),
    ("PATTERN a+ WHERE a.y > 0.5 AND a.x > 1 WITHIN 3 RETURN sum(a.x), sum(a.y), min(a.y), max(a.x), count(a.x), avg(a.y) * 2", {}),
]


@cache
def signatures():
    """The types that each kernel was compiled for while some queries ran."""
    size = 60
    events = pa.table(
        {
            "ts": [e * 7 % 31 for e in range(size)],
            "type": ["A", "B", "C"] * (size // 3),
            "k": [None if e % 9 == 0 else e % 3 for e in range(size)],
            "x": [None if e % 10 == 0 else e % 5 for e in range(size)],
            "y": [e % 4 / 2 for e in range(size)],
        }
    )
    for pattern, options in QUERIES:
        for output in ("matches", "count"):
            for prune in (True, ["summary"]):
                gpu_cep.match(events, pattern, output=output, prune=prune, threads=1, **options)
    return {name: list(function.compiled.signatures) for name, function in KERNELS.items()}


# Not on the road of a query on the CPU: the statistics themselves are for tests and reports, the other for devices.
ELSEWHERE = {"summary_statistics", "mark_disorder"}


def test_the_queries_run_every_kernel():
    assert {name for name, compiled in signatures().items() if not compiled} <= ELSEWHERE


@pytest.mark.parametrize("name", KERNELS)
def test_no_kernel_counts_references(name):
    """Reference counting in a hot loop costs three times the loop."""
    function = KERNELS[name]
    options = {option: function.compiled.targetoptions[option] for option in OPTIONS}
    for signature in signatures()[name][:1]:
        compiled = numba.njit(**options)(function.body)
        compiled.compile(signature)
        assert all("NRT_" not in text for text in compiled.inspect_llvm().values())


# A product that was, or may be, contracted with a sum; libdevice's fmod multiplies by 2**54, which is exact.
FUSIBLE = re.compile(r"fma\.|mul\.f(?!.* 0d4350000000000000;)")

WHEELS = ("numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvrtc")


def missing_wheels():
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    return [wheel for wheel in WHEELS if wheel not in installed]


@pytest.mark.skipif(bool(missing_wheels()), reason=f"not installed: {', '.join(missing_wheels())}")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_for_cuda(monkeypatch, name):
    """PTX for compute capability 9.0, with no device and no driver; nothing is contracted to a fused multiply-add."""
    import numba.cuda.dispatcher
    from numba import cuda, types

    monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))
    for signature in signatures()[name][:1]:
        kernel = KERNELS[name]
        handed = types.Tuple(signature[2 + kernel.slotted :] if kernel.parallel else signature)
        first = types.Array(types.int64, 1, "C") if kernel.returns else types.int64
        ptx, _ = cuda.compile(kernel.cuda.py_func, types.void(first, handed), cc=(9, 0), output="ptx", abi="numba")
        assert ".target sm_90" in ptx
        assert not re.search(FUSIBLE, ptx)
