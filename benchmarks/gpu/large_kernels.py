"""The kernels that take longest to compile for the CPU, which are compiled beside the first query that needs them.

``python -m benchmarks.gpu.large_kernels`` runs what ``gpu-cep warmup`` does, compiles each kernel that ran, and writes
those that take a second or more to kernels/gpu_cep_kernels/compile/large.json: each for the types that it is called with most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from benchmarks.gpu.ahead import seconds_on_cpu
from gpu_cep.cli.warmup import run_query, small_queries
from gpu_cep_kernels.compile.forms import form_of, write_forms
from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.compile.large import FORMS

# Seconds of processor time, rules that other kernels have brought along not among them: another process takes half of that to start.
LARGE = 0.8
Called = Counter[tuple[Kernel[..., Any], tuple[Any, ...]]]


@contextmanager
def noting_calls() -> Iterator[Called]:
    """Count the calls of each kernel with arguments of each list of types."""
    called, call = Called(), Kernel.__call__

    def noted(kernel: Kernel[..., Any], *given: Any) -> Any:
        called[kernel, tuple(map(kernel.compiled.typeof_pyval, given))] += 1
        return call(kernel, *given)

    with patch.object(Kernel, "__call__", noted):
        yield called


def used() -> Called:
    """Return how often each kernel is called with which types, by what ``gpu-cep warmup`` runs."""
    with noting_calls() as called:
        for small in small_queries():
            run_query(small)
    return called


def main() -> None:
    """Write the list, those that take longest first."""
    found, seen = [], set[Kernel[..., Any]]()
    for (kernel, types), _ in used().most_common():
        if kernel not in seen:
            seen.add(kernel)
            found.append((seconds_on_cpu(kernel, types), form_of(kernel, types, on_cpu=True)))
    write_forms(FORMS, [form for seconds, form in sorted(found, key=lambda each: -each[0]) if seconds >= LARGE])


if __name__ == "__main__":
    main()
