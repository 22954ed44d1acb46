"""Compile large kernels beside a query that has nothing compiled yet: one takes seconds, and one thread compiles at a time.

large.json lists them with the types of their arguments. ``python -m benchmarks.gpu.large_kernels`` writes it.
A run names those that it may launch as soon as it knows them. Processes compile them while the run compiles what it
launches before. It waits for what they have begun, and compiles itself what they have not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gpu_cep_kernels.compile import jit
from gpu_cep_kernels.compile.forms import Form, compile_for_cpu, name_of, object_named, read_forms, signature_of
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.compile.processes import can_start, end_with_parent, forget_ended, fork_others, start_beside

FORMS = Path(__file__).with_name("large.json")


@cache
def forms() -> dict[str, Form]:
    """Return the form that queries mostly need of each large kernel, by the kernel's name."""
    return {form.kernel: form for form in read_forms(FORMS)}


def compile_beside(kernels: tuple[jit.Kernel[..., Any], ...], threads: int) -> None:
    """Start processes that compile those kernels of the list that are not on disk: one less than the run has threads, at most.

    Each tuple of kernels is looked at once in a process. Nothing happens in the simulator, where nothing can be kept, or in an
    application whose file is not Python.
    """
    forget_ended()
    _look_once(kernels, threads)


@cache
def _look_once(kernels: tuple[jit.Kernel[..., Any], ...], threads: int) -> None:
    processes = 0 if jit.simulated() or not can_start() else min(threads, available_threads()) - 1
    asked = missing(kernels) if processes > 0 else []
    if asked:
        start_beside("gpu_cep_kernels.compile.large", (min(processes, len(asked)), *asked))


def missing(kernels: Iterable[jit.Kernel[..., Any]]) -> list[str]:
    """Return the names of those kernels of the list that are not on disk, and that no process compiles."""
    listed = [forms()[name] for name in map(name_of, kernels) if name in forms()]
    return [form.kernel for form in listed if _is_missing(form)]


def _is_missing(form: Form) -> bool:
    dispatcher = object_named(form.kernel).compiled
    return bool(dispatcher._cache.is_missing(signature_of(form), dispatcher.targetctx.codegen()))


def main(argv: Sequence[str]) -> None:
    """Compile the kernels that are named, in as many processes as the first argument says; what fails is left to the query."""
    processes, asked = int(argv[0]), [forms()[name] for name in argv[1:]]
    forked = list[int]()
    if processes > 1 and hasattr(os, "fork"):
        for form in asked:
            import_module(form.kernel.partition(":")[0])
        # before there is a thread, which would not be forked
        forked = fork_others(processes - 1)
    end_with_parent()
    for form in asked:
        with suppress(Exception):
            compile_for_cpu(form, wait=False)
    for each in forked:
        os.waitpid(each, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
